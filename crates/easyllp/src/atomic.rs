//! REPORT: atomic file writes. A file appears whole or not at all.

use crate::error::{Cause, Error, Result};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Temporary files of this process that are neither renamed nor removed yet.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes temporary files and blocks further writes. Call it when the program is about to exit,
/// such as on an interrupt.
pub fn abandon_unfinished_files() {
    let unfinished = unfinished();
    for temporary in unfinished.iter() {
        // Nobody is left to tell if this fails.
        let _ = fs::remove_file(temporary);
    }
    // Never unlocked again: other threads wait here until the process is gone.
    std::mem::forget(unfinished);
}

fn unfinished() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Writes a whole file atomically: the name has either the new content or the old one.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes).map_err(|error| cannot_write(path, error))?;
    file.commit()
}

/// A file that is written under a temporary name and renamed into place when it is complete.
///
/// If it is dropped before [`commit`](Self::commit), the temporary file is removed and the old file
/// is unchanged.
#[derive(Debug)]
pub(crate) struct AtomicFile {
    path: PathBuf,
    temporary: PathBuf,
    file: BufWriter<File>,
    committed: bool,
}

impl AtomicFile {
    /// Opens a temporary file in the folder of `path`, so that both are on one disk and a rename moves no byte.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        /// Distinguishes files that threads of one process write at the same time.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let path = &destination(path)?;
        let Some(name) = path.file_name() else {
            return Err(cannot_write(path, "it does not name a file"));
        };
        loop {
            let mut hidden = OsString::from(".");
            hidden.push(name);
            hidden.push(format!(".tmp-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
            let temporary = path.with_file_name(hidden);
            let mut unfinished = unfinished();
            match OpenOptions::new().write(true).create_new(true).open(&temporary) {
                Ok(file) => {
                    unfinished.push(temporary.clone());
                    let file = BufWriter::new(file);
                    return Ok(Self { path: path.into(), temporary, file, committed: false });
                }
                // Left by a process that was killed and had the same number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(cannot_write(path, error)),
            }
        }
    }

    /// Flushes the bytes to disk and renames the file into place.
    pub(crate) fn commit(mut self) -> Result<()> {
        let result = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        let mut unfinished = unfinished();
        let result = result.and_then(|()| fs::rename(&self.temporary, &self.path));
        if let Err(error) = result {
            drop(unfinished);
            return Err(cannot_write(&self.path, error));
        }
        self.committed = true;
        unfinished.retain(|temporary| *temporary != self.temporary);
        drop(unfinished);
        // Best effort, since not every file system can: what a power cut could undo is the rename, as a whole.
        #[cfg(unix)]
        if let Some(folder) = self.path.parent() {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            let _ = File::open(folder).and_then(|folder| folder.sync_all());
        }
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.committed {
            unfinished().retain(|temporary| *temporary != self.temporary);
            // Nobody is left to tell if this fails.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// The path that is written: a symbolic link is kept, and its target is replaced.
fn destination(path: &Path) -> Result<PathBuf> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() && !found.is_dir() => {
            Err(cannot_write(path, "it is a device or a pipe, not a regular file"))
        }
        Ok(_) if path.is_symlink() => fs::canonicalize(path).map_err(|error| cannot_write(path, error)),
        _ => Ok(path.into()),
    }
}

/// The library's error for a file that cannot be written.
pub(crate) fn cannot_write(path: &Path, source: impl Into<Cause>) -> Error {
    Error::CannotWrite { path: path.into(), source: source.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names in a folder, sorted.
    fn names(folder: &Path) -> Vec<OsString> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_file_appears_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "old").unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"ne").unwrap();
        file.flush().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        file.write_all(b"w").unwrap();
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn a_file_that_is_dropped_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "old").unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn two_writers_of_one_file_do_not_mix() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut files = [AtomicFile::create(&path).unwrap(), AtomicFile::create(&path).unwrap()];
        for (file, text) in files.iter_mut().zip(["first", "second"]) {
            file.write_all(text.as_bytes()).unwrap();
        }
        for file in files {
            file.commit().unwrap();
        }
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn what_cannot_be_written_is_refused_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing").join("file");
        let message = AtomicFile::create(&missing).unwrap_err().in_full();
        assert!(message.starts_with(&format!("cannot write {}: ", missing.display())), "{message}");
        assert!(AtomicFile::create(Path::new("/")).is_err());
        assert!(AtomicFile::create(Path::new("")).is_err());

        // A folder stands where the file should be.
        let taken = folder.path().join("taken");
        fs::create_dir(&taken).unwrap();
        assert!(AtomicFile::create(&taken).unwrap().commit().is_err());
        assert_eq!(names(folder.path()), ["taken"]);
    }
}
