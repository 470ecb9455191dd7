//! A journal of finished work. Each record is in a file of its own, written atomically: a run that
//! is killed and started again repeats only unfinished work. [`Journal::pack`] gathers the records
//! of a finished run in one file.

use crate::atomic::{cannot_write, write_whole};
use crate::error::Result;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// A folder of records of finished work, each under a key that identifies the work.
///
/// ```
/// use easyllp::files::Journal;
///
/// let folder = std::env::temp_dir().join(format!("easyllp-journal-{}", std::process::id()));
/// let journal = Journal::open(&folder)?;
/// assert_eq!(journal.get("linear, l2 0.1"), None);
/// journal.put("linear, l2 0.1", b"0.25")?;
/// assert_eq!(Journal::open(&folder)?.get("linear, l2 0.1"), Some(b"0.25".to_vec()));
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Journal {
    folder: PathBuf,
    /// The packed records, by file name.
    packed: Arc<Files>,
}

/// Contents of record files, by number.
type Files = BTreeMap<u64, Vec<u8>>;

/// The extension of a record's own file.
const RECORD: &str = "record";

impl Journal {
    /// Opens the journal in this folder, and creates the folder if needed.
    pub fn open(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder).map_err(|error| cannot_write(folder, error))?;
        Ok(Self { folder: folder.to_owned(), packed: Arc::new(packed(&pack_path(folder))) })
    }

    /// The record under a key; `None` if it is missing or damaged.
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        let own = std::fs::read(self.path(key)).ok().and_then(|bytes| checked(key, &bytes));
        own.or_else(|| checked(key, self.packed.get(&number(key))?))
    }

    /// Writes a record, replacing an earlier one.
    pub fn put(&self, key: &str, record: &[u8]) -> Result<()> {
        write_whole(&self.path(key), &[&head(key, record)[..], record].concat())
    }

    /// Moves all records into one file and removes their own files. If it is killed, no record is
    /// lost.
    pub fn pack(&self) -> Result<()> {
        let path = pack_path(&self.folder);
        // Another run may have packed since this journal was opened.
        let mut files = packed(&path);
        let mut moved = Vec::new();
        let entries = std::fs::read_dir(&self.folder).map_err(|error| cannot_write(&self.folder, error))?;
        for file in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let name = file.file_stem().and_then(|name| name.to_str());
            let number = name.and_then(|name| u64::from_str_radix(name, 16).ok());
            let is_record = file.extension().is_some_and(|extension| extension == RECORD);
            if let (Some(number), true, Ok(bytes)) = (number, is_record, std::fs::read(&file)) {
                files.insert(number, bytes);
                moved.push(file);
            }
        }
        if moved.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        for (number, content) in &files {
            bytes.extend(number.to_le_bytes());
            bytes.extend((content.len() as u64).to_le_bytes());
            bytes.extend(content);
        }
        write_whole(&path, &bytes)?;
        for file in moved {
            std::fs::remove_file(&file).map_err(|error| cannot_write(&file, error))?;
        }
        Ok(())
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{:016x}.{RECORD}", number(key)))
    }
}

fn number(key: &str) -> u64 {
    xxh3_64(key.as_bytes())
}

fn pack_path(folder: &Path) -> PathBuf {
    folder.join("records.pack")
}

/// The complete files of a pack: each is a number, a length and the content.
fn packed(path: &Path) -> Files {
    let bytes = std::fs::read(path).unwrap_or_default();
    let mut files = Files::new();
    let mut rest = &bytes[..];
    while let Some((number, length_and_more)) = rest.split_first_chunk::<8>() {
        let Some((length, content)) = length_and_more.split_first_chunk::<8>() else { break };
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let Some((content, more)) = content.split_at_checked(length) else { break };
        files.insert(u64::from_le_bytes(*number), content.to_vec());
        rest = more;
    }
    files
}

/// The content of a record file, if it is complete and has this key.
fn checked(key: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let (head, record) = bytes.split_at_checked(self::head(key, &[]).len())?;
    (head == self::head(key, record)).then(|| record.to_vec())
}

/// The header of a record: its checksum and its key, since two keys might share a file name.
fn head(key: &str, record: &[u8]) -> Vec<u8> {
    let mut head = xxh3_64(record).to_le_bytes().to_vec();
    head.extend(key.as_bytes());
    head.push(b'\n');
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_records_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        journal.put("a", b"record").unwrap();
        journal.put("b", b"").unwrap();
        assert_eq!(journal.get("b"), Some(Vec::new()));
        let path = journal.path("a");
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(journal.get("a"), None, "{length} bytes");
        }
        for place in 0..whole.len() {
            let mut changed = whole.clone();
            changed[place] ^= 1;
            std::fs::write(&path, changed).unwrap();
            assert_eq!(journal.get("a"), None, "byte {place}");
        }
        // A record under another key's name.
        std::fs::rename(journal.path("b"), &path).unwrap();
        assert_eq!(journal.get("a"), None);
        journal.put("a", b"again").unwrap();
        assert_eq!(journal.get("a"), Some(b"again".to_vec()));
    }
    #[test]
    fn a_pack_has_all_records_in_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let n_files = || std::fs::read_dir(folder.path()).unwrap().count();
        let journal = Journal::open(folder.path()).unwrap();
        journal.pack().unwrap();
        assert_eq!(n_files(), 0);
        let key = |n: usize| format!("cell {n}");
        for n in 0..50 {
            journal.put(&key(n), &vec![7; n]).unwrap();
        }
        journal.pack().unwrap();
        assert_eq!(n_files(), 1);
        let reopened = Journal::open(folder.path()).unwrap();
        for n in 0..50 {
            assert_eq!(reopened.get(&key(n)), Some(vec![7; n]));
        }
        assert_eq!(reopened.get("cell 50"), None);
        // A newer record comes first, and the next pack has it; so does a journal that was opened before the first one.
        reopened.put(&key(3), b"new").unwrap();
        assert_eq!(reopened.get(&key(3)), Some(b"new".to_vec()));
        journal.put(&key(50), b"more").unwrap();
        journal.pack().unwrap();
        assert_eq!(n_files(), 1);
        let reopened = Journal::open(folder.path()).unwrap();
        assert_eq!(reopened.get(&key(3)), Some(b"new".to_vec()));
        assert_eq!(reopened.get(&key(50)), Some(b"more".to_vec()));
        assert_eq!(reopened.get(&key(49)), Some(vec![7; 49]));
    }

    #[test]
    fn a_damaged_pack_loses_what_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let keys = ["a", "b", "c"];
        for key in keys {
            journal.put(key, key.as_bytes()).unwrap();
        }
        journal.pack().unwrap();
        let path = pack_path(folder.path());
        let whole = std::fs::read(&path).unwrap();
        let found = || {
            let journal = Journal::open(folder.path()).unwrap();
            keys.map(|key| journal.get(key).map(|record| assert_eq!(record, key.as_bytes())).is_some())
        };
        assert_eq!(found(), [true; 3]);
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let n_found = found().into_iter().filter(|is_found| *is_found).count();
            assert_eq!(n_found, length * 3 / whole.len(), "{length} bytes");
        }
        for place in 0..whole.len() {
            let mut changed = whole.clone();
            changed[place] ^= 1;
            std::fs::write(&path, changed).unwrap();
            assert_ne!(found(), [true; 3], "byte {place}");
        }
    }
}
