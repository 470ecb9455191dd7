//! Single files out of an archive, checked.
//!
//! Archives are read as hostile: only members of exactly the wanted names are taken, under names that are ours, and
//! nothing is reserved or stored because an archive says so.

use super::checked::sha256;
use flate2::read::GzDecoder;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tar::{Archive, EntryType};
use thiserror::Error;

/// Bytes that a wanted member may have.
const LARGEST_MEMBER: u64 = 256 << 20;
/// Bytes that are unpacked in search of the wanted members: what keeps a small archive from taking for ever.
const LARGEST_ARCHIVE: u64 = 4 << 30;

/// Why an archive does not give what is wanted of it.
#[derive(Debug, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant is its documentation, and names its fields")]
pub enum ArchiveError {
    #[error("cannot read {path}: {reason}")]
    CannotRead { path: PathBuf, reason: String },
    #[error(transparent)]
    CannotWrite(#[from] easyllp::Error),
    #[error("{path} is not the archive that was published: {reason}; delete it and download it again")]
    BadArchive { path: PathBuf, reason: String },
}

/// Takes members out of a .tar.gz: those with a wanted path, under their name in the folder, if their SHA-256 is right.
///
/// Each is written whole or not at all, and everything else in the archive is ignored.
pub(super) fn unpack_tar_gz(
    archive: &Path,
    wanted: &[(&str, &str, &str)],
    folder: &Path,
) -> Result<(), ArchiveError> {
    unpack_within(LARGEST_MEMBER, LARGEST_ARCHIVE, archive, wanted, folder)
}

fn unpack_within(
    largest_member: u64,
    largest_archive: u64,
    archive: &Path,
    wanted: &[(&str, &str, &str)],
    folder: &Path,
) -> Result<(), ArchiveError> {
    let bad = |reason: String| ArchiveError::BadArchive { path: archive.into(), reason };
    let broken = |error: io::Error| bad(error.to_string());
    let opened = File::open(archive)
        .map_err(|error| ArchiveError::CannotRead { path: archive.into(), reason: error.to_string() })?;
    fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
    let mut unpacked = Archive::new(GzDecoder::new(opened).take(largest_archive));
    let mut missing = wanted.to_vec();
    // Raw, since what prolongs names would be read into memory however long it is. Our names need none of that.
    let mut entries = unpacked.entries().map_err(broken)?.raw(true);
    while !missing.is_empty() {
        let Some(entry) = entries.next() else { break };
        let entry = entry.map_err(broken)?;
        let is_it = |(path, _, _): &(&str, &str, &str)| *entry.path_bytes() == *path.as_bytes();
        let Some(place) = missing.iter().position(is_it) else { continue };
        if entry.header().entry_type() != EntryType::Regular {
            continue;
        }
        let (path, name, expected) = missing.swap_remove(place);
        let n_bytes = entry.size();
        if n_bytes > largest_member {
            return Err(bad(format!("{path} has {n_bytes} bytes, more than {largest_member}")));
        }
        let mut bytes = Vec::new();
        entry.take(n_bytes).read_to_end(&mut bytes).map_err(broken)?;
        let found = sha256(&mut &bytes[..]).map_err(broken)?;
        if found != expected {
            return Err(bad(format!("the SHA-256 of {path} is {found} instead of {expected}")));
        }
        let path = folder.join(name);
        easyllp::files::write_whole(&path, &bytes)?;
    }
    match missing.first() {
        Some((path, _, _)) => Err(bad(format!("it has no {path}"))),
        None => Ok(()),
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> ArchiveError {
    easyllp::Error::CannotWrite { path: path.into(), reason: error.to_string() }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::ffi::OsString;
    use std::io::Write;
    use tar::{Builder, Header};
    use tempfile::TempDir;

    /// SHA-256 of `first` and of `second`.
    const FIRST: &str = "a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e";
    const SECOND: &str = "16367aacb67a4a017c8da8ab95682ccb390863780f7114dda0a0e0c55644c7c4";
    const WANTED: [(&str, &str, &str); 2] =
        [("in/first.bin", "first", FIRST), ("in/second.bin", "second", SECOND)];

    /// A header that is right but for what a test makes of it.
    fn header(path: &[u8], kind: EntryType, n_bytes: u64) -> Header {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..path.len()].copy_from_slice(path);
        header.set_entry_type(kind);
        header.set_size(n_bytes);
        header.set_mode(0o644);
        header.set_cksum();
        header
    }

    /// An archive of regular files.
    fn archive_of(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (path, bytes) in members {
            builder.append(&header(path.as_bytes(), EntryType::Regular, bytes.len() as u64), *bytes).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// A folder with the archive in it, and what unpacking it into the folder `out` gives.
    fn unpack(archive: &[u8]) -> (TempDir, Result<(), ArchiveError>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("archive.tar.gz");
        fs::write(&path, archive).unwrap();
        let result = unpack_within(1 << 20, 4 << 20, &path, &WANTED, &folder.path().join("out"));
        (folder, result)
    }

    /// Everything under a folder, files and folders, sorted.
    fn names(folder: &Path) -> Vec<OsString> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                names.extend(self::names(&entry.path()));
            }
            names.push(entry.file_name());
        }
        names.sort();
        names
    }

    /// Checks that an archive is refused for a reason, and that no more than `left` comes out of it.
    fn assert_refused(archive: &[u8], reason: &str, left: &[&str]) {
        let (folder, result) = unpack(archive);
        let message = result.unwrap_err().to_string();
        let start = format!(
            "{} is not the archive that was published: ",
            folder.path().join("archive.tar.gz").display()
        );
        assert!(message.starts_with(&start), "{message}");
        assert!(message.contains(reason), "{message}");
        assert_eq!(names(&folder.path().join("out")), left);
    }

    #[test]
    fn wanted_members_come_out_and_nothing_else() {
        let archive = archive_of(&[
            ("in/readme.html", b"hello"),
            ("in/second.bin", b"second"),
            ("other/first.bin", b"decoy"),
            ("in/first.bin", b"first"),
        ]);
        let (folder, result) = unpack(&packed(&archive));
        result.unwrap();
        let out = folder.path().join("out");
        assert_eq!(names(&out), ["first", "second"]);
        assert_eq!(fs::read(out.join("first")).unwrap(), b"first");
        assert_eq!(fs::read(out.join("second")).unwrap(), b"second");
    }

    #[test]
    fn what_was_there_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("archive.tar.gz");
        fs::write(&path, packed(&archive_of(&[("in/first.bin", b"first")]))).unwrap();
        fs::write(folder.path().join("first"), "old").unwrap();
        unpack_tar_gz(&path, &WANTED[..1], folder.path()).unwrap();
        assert_eq!(fs::read(folder.path().join("first")).unwrap(), b"first");
        assert_eq!(names(folder.path()), ["archive.tar.gz", "first"]);
    }

    #[test]
    fn names_that_are_almost_right_are_not_taken() {
        let tricks: [&[u8]; 8] = [
            b"./in/first.bin",
            b"/in/first.bin",
            b"in//first.bin",
            b"in/../in/first.bin",
            b"../first",
            b"first",
            b"in\\first.bin",
            b"in/first.bin\xff",
        ];
        for trick in tricks {
            let mut builder = Builder::new(Vec::new());
            builder.append(&header(trick, EntryType::Regular, 5), &b"first"[..]).unwrap();
            builder.append(&header(b"in/second.bin", EntryType::Regular, 6), &b"second"[..]).unwrap();
            assert_refused(&packed(&builder.into_inner().unwrap()), "it has no in/first.bin", &["second"]);
        }
    }

    #[test]
    fn only_regular_files_are_taken() {
        for kind in [
            EntryType::Symlink,
            EntryType::Link,
            EntryType::Directory,
            EntryType::Fifo,
            EntryType::Char,
            EntryType::GNUSparse,
            EntryType::GNULongName,
            EntryType::XHeader,
        ] {
            let mut link = header(b"in/first.bin", kind, 5);
            link.set_link_name("/etc/passwd").unwrap();
            link.set_cksum();
            let mut builder = Builder::new(Vec::new());
            builder.append(&link, &b"first"[..]).unwrap();
            builder.append(&header(b"in/second.bin", EntryType::Regular, 6), &b"second"[..]).unwrap();
            // The link is not followed, and does not hide the file that comes after it.
            let without = builder.get_ref().clone();
            assert_refused(&packed(&without), "it has no in/first.bin", &["second"]);
            builder.append(&header(b"in/first.bin", EntryType::Regular, 5), &b"first"[..]).unwrap();
            let (folder, result) = unpack(&packed(&builder.into_inner().unwrap()));
            result.unwrap();
            assert_eq!(names(&folder.path().join("out")), ["first", "second"]);
        }
    }

    #[test]
    fn the_first_of_two_members_with_one_name_counts() {
        let right_first =
            [("in/first.bin", &b"first"[..]), ("in/first.bin", b"FIRST"), ("in/second.bin", b"second")];
        let (folder, result) = unpack(&packed(&archive_of(&right_first)));
        result.unwrap();
        assert_eq!(fs::read(folder.path().join("out").join("first")).unwrap(), b"first");
        let wrong_first =
            [("in/first.bin", &b"FIRST"[..]), ("in/first.bin", b"first"), ("in/second.bin", b"second")];
        assert_refused(&packed(&archive_of(&wrong_first)), "the SHA-256 of in/first.bin is ", &[]);
    }

    #[test]
    fn a_wrong_member_is_not_written() {
        let archive = archive_of(&[("in/second.bin", b"second"), ("in/first.bin", b"First")]);
        assert_refused(&packed(&archive), &format!(" instead of {FIRST}; delete it"), &["second"]);
        assert_refused(
            &packed(&archive_of(&[("in/first.bin", b"")])),
            "the SHA-256 of in/first.bin is ",
            &[],
        );
    }

    #[test]
    fn sizes_are_bounded() {
        // A header that promises more than it has, up to all that a header can.
        for n_bytes in [(1 << 20) + 1, 1 << 40, u64::MAX] {
            let archive = header(b"in/first.bin", EntryType::Regular, n_bytes).as_bytes().to_vec();
            let (folder, result) = unpack(&packed(&archive));
            result.unwrap_err();
            assert!(names(&folder.path().join("out")).is_empty());
        }
        let large = header(b"in/first.bin", EntryType::Regular, (1 << 20) + 1).as_bytes().to_vec();
        assert_refused(&packed(&large), "in/first.bin has 1048577 bytes, more than 1048576", &[]);
        // Much of what nobody wants, packed into little: first as a member, then as a name.
        let zeros = vec![0; 8 << 20];
        for kind in [EntryType::Regular, EntryType::GNULongName, EntryType::XHeader] {
            let mut builder = Builder::new(Vec::new());
            builder.append(&header(b"zeros", kind, zeros.len() as u64), &zeros[..]).unwrap();
            builder.append(&header(b"in/first.bin", EntryType::Regular, 5), &b"first"[..]).unwrap();
            assert_refused(&packed(&builder.into_inner().unwrap()), "unexpected EOF", &[]);
        }
    }

    #[test]
    fn broken_archives_are_refused_wherever_they_break() {
        let archive = archive_of(&[("in/first.bin", b"first"), ("in/second.bin", b"second")]);
        let assert_whole_or_refused = |packed: &[u8], what: &str| {
            let (folder, result) = unpack(packed);
            let names = names(&folder.path().join("out"));
            assert_eq!(result.is_ok(), names == ["first", "second"], "{what}: {result:?}, {names:?}");
        };
        let whole = packed(&archive);
        for length in (0..whole.len()).step_by(5) {
            assert_whole_or_refused(&whole[..length], &format!("{length} bytes"));
        }
        // The header and the bytes of the first member.
        for place in (0..517).step_by(11) {
            let mut changed = archive.clone();
            changed[place] ^= 0x11;
            assert_whole_or_refused(&packed(&changed), &format!("byte {place}"));
        }
        assert_refused(b"", "", &[]);
        assert_refused(b"no archive at all", "invalid gzip header", &[]);
        assert_refused(&packed(b""), "it has no in/first.bin", &[]);
        assert_refused(&packed(b"no archive at all"), "", &[]);
    }

    #[test]
    fn what_cannot_be_read_or_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("archive.tar.gz");
        let message = unpack_tar_gz(&path, &WANTED, folder.path()).unwrap_err().to_string();
        assert!(message.starts_with(&format!("cannot read {}: ", path.display())), "{message}");
        // A folder stands where the file should be.
        fs::write(&path, packed(&archive_of(&[("in/first.bin", b"first")]))).unwrap();
        let taken = folder.path().join("first");
        fs::create_dir(&taken).unwrap();
        let message = unpack_tar_gz(&path, &WANTED, folder.path()).unwrap_err().to_string();
        assert!(message.starts_with(&format!("cannot write {}: ", taken.display())), "{message}");
        assert_eq!(names(folder.path()), ["archive.tar.gz", "first"]);
    }
}
