//! Extract single files from an archive, with checks.
//!
//! Archives are untrusted: only members with exactly the expected names are extracted, under fixed
//! names, and an archive cannot cause memory or disk to be reserved.

use super::download::{DownloadError, cannot_write, sha256};
use flate2::read::GzDecoder;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use tar::{Archive, EntryType};

/// Limits on the size of an expected member and on the bytes decompressed in total, so that a small
/// archive cannot run forever.
const LARGEST: [u64; 2] = [256 << 20, 4 << 30];

/// Extracts members of a .tar.gz: those with an expected path, under their name in the folder, if
/// their SHA-256 matches.
///
/// Each is written atomically; everything else in the archive is ignored.
pub(super) fn unpack_tar_gz(
    archive: &Path,
    wanted: &[(&str, &str, &str)],
    folder: &Path,
) -> Result<(), DownloadError> {
    unpack_within(LARGEST, archive, wanted, folder)
}

fn unpack_within(
    [largest_member, largest_archive]: [u64; 2],
    archive: &Path,
    wanted: &[(&str, &str, &str)],
    folder: &Path,
) -> Result<(), DownloadError> {
    let bad = |reason: String| DownloadError::BadArchive { path: archive.into(), reason };
    let broken = |error: io::Error| bad(error.to_string());
    let opened = File::open(archive)
        .map_err(|error| easyllp::Error::CannotRead { path: archive.into(), source: error.into() })?;
    fs::create_dir_all(folder).map_err(|error| cannot_write(folder, error))?;
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
        easyllp::files::write_whole(&folder.join(name), &bytes)?;
    }
    match missing.first() {
        Some((path, _, _)) => Err(bad(format!("it has no {path}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;
    use tar::EntryType::{Char, Directory, Fifo, GNULongName, GNUSparse, Link, Symlink, XHeader};
    use tar::{Builder, Header};

    /// SHA-256 of `first` and of `second`.
    const WANTED: [(&str, &str, &str); 2] = [
        ("in/first.bin", "first", "a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e"),
        ("in/second.bin", "second", "16367aacb67a4a017c8da8ab95682ccb390863780f7114dda0a0e0c55644c7c4"),
    ];
    const BOTH: &[&str] = &["first", "second"];
    const FIRST: Member<'static> = (b"in/first.bin", EntryType::Regular, b"first");
    const SECOND: Member<'static> = (b"in/second.bin", EntryType::Regular, b"second");

    /// Path, kind and bytes.
    type Member<'m> = (&'m [u8], EntryType, &'m [u8]);

    fn file<'m>(path: &'m [u8], bytes: &'m [u8]) -> Member<'m> {
        (path, EntryType::Regular, bytes)
    }

    /// A valid header, to be damaged by a test.
    fn header(path: &[u8], kind: EntryType, n_bytes: u64) -> Header {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..path.len()].copy_from_slice(path);
        header.set_entry_type(kind);
        header.set_size(n_bytes);
        header.set_mode(0o644);
        if kind != EntryType::Regular {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        header
    }

    fn archive_of(members: &[Member]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (path, kind, bytes) in members {
            builder.append(&header(path, *kind, bytes.len() as u64), *bytes).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// What unpacking an archive into a folder says, and the names of all that is in the folder afterwards.
    fn unpack(archive: &[u8]) -> (Result<(), String>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let (path, out) = (folder.path().join("archive.tar.gz"), folder.path().join("out"));
        fs::write(&path, archive).unwrap();
        let result = unpack_within([1 << 20, 4 << 20], &path, &WANTED, &out);
        let start = format!("{} is not the archive that was published: ", path.display());
        let reason = |error: DownloadError| error.to_string().strip_prefix(&start).unwrap().to_owned();
        // Those that come out are files: a folder in the folder would be no name of ours.
        let entries = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        assert!(names.iter().all(|name| fs::read(out.join(name)).unwrap() == name.as_bytes()), "{names:?}");
        (result.map_err(reason), names)
    }

    /// Checks that an archive is refused for a reason, and that no more than `left` comes out of it.
    #[track_caller]
    fn assert_refused(archive: &[u8], reason: &str, left: &[&str]) {
        let (result, names) = unpack(archive);
        let message = result.unwrap_err();
        assert!(message.contains(reason), "{message}");
        assert_eq!(names, left, "{message}");
    }

    #[track_caller]
    fn assert_unpacked(members: &[Member]) {
        let (result, names) = unpack(&packed(&archive_of(members)));
        assert_eq!(result, Ok(()));
        assert_eq!(names, BOTH);
    }

    #[test]
    fn wanted_members_come_out_and_nothing_else() {
        assert_unpacked(&[file(b"readme", b"hello"), SECOND, file(b"other/first.bin", b"decoy"), FIRST]);
        // The first of two members with one name counts.
        let other = file(FIRST.0, b"First");
        assert_unpacked(&[FIRST, other, SECOND]);
        let no_first = "it has no in/first.bin";
        let sum = "the SHA-256 of in/first.bin is ";
        let mut cases = vec![
            (vec![other, FIRST], sum, &[][..]),
            (vec![SECOND, other], " instead of a7937b64", &BOTH[1..]),
            (vec![file(FIRST.0, b"")], sum, &[]),
            (vec![], no_first, &[]),
        ];
        // Names that are almost right, and what is no regular file: it is not followed.
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
        cases.extend(tricks.map(|trick| (vec![file(trick, FIRST.2), SECOND], no_first, &BOTH[1..])));
        for kind in [Symlink, Link, Directory, Fifo, Char, GNUSparse, GNULongName, XHeader] {
            let odd = (FIRST.0, kind, FIRST.2);
            cases.push((vec![odd, SECOND], no_first, &BOTH[1..]));
            // It does not hide the file that comes after it.
            assert_unpacked(&[odd, SECOND, FIRST]);
        }
        for (members, reason, left) in cases {
            assert_refused(&packed(&archive_of(&members)), reason, left);
        }
    }

    #[test]
    fn sizes_are_bounded() {
        // A header that promises more than it has, up to all that a header can.
        for n_bytes in [(1 << 20) + 1, 1 << 40, u64::MAX] {
            assert_refused(&packed(header(FIRST.0, FIRST.1, n_bytes).as_bytes()), "", &[]);
        }
        let large = header(FIRST.0, FIRST.1, (1 << 20) + 1);
        assert_refused(&packed(large.as_bytes()), "in/first.bin has 1048577 bytes, more than 1048576", &[]);
        // Much of what nobody wants, packed into little: first as a member, then as a name.
        let zeros = vec![0; 8 << 20];
        for kind in [EntryType::Regular, GNULongName, XHeader] {
            let archive = packed(&archive_of(&[(b"zeros", kind, &zeros), FIRST]));
            assert_refused(&archive, "unexpected EOF", &[]);
        }
    }

    #[test]
    fn broken_archives_are_refused_wherever_they_break() {
        let archive = archive_of(&[FIRST, SECOND]);
        let whole = packed(&archive);
        let cut = (0..whole.len()).step_by(5).map(|length| whole[..length].to_vec());
        // The header and the bytes of the first member.
        let changed = (0..517).step_by(11).map(|place| {
            let mut changed = archive.clone();
            changed[place] ^= 0x11;
            packed(&changed)
        });
        for (place, broken) in cut.chain(changed).enumerate() {
            let (result, names) = unpack(&broken);
            assert_eq!(result.is_ok(), names == BOTH, "{place}: {result:?}, {names:?}");
        }
        assert_refused(b"", "", &[]);
        assert_refused(b"no archive at all", "invalid gzip header", &[]);
        assert_refused(&packed(b"no archive at all"), "", &[]);
    }

    #[test]
    fn what_was_there_is_replaced_and_what_cannot_be_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (path, first) = (folder.path().join("archive.tar.gz"), folder.path().join("first"));
        let unpack = || {
            unpack_tar_gz(&path, &WANTED[..1], folder.path()).map_err(|error| match error {
                DownloadError::File(error) => error.in_full(),
                other => panic!("{other}"),
            })
        };
        let message = unpack().unwrap_err();
        assert!(message.starts_with(&format!("cannot read {}: ", path.display())), "{message}");
        fs::write(&path, packed(&archive_of(&[FIRST]))).unwrap();
        fs::write(&first, "old").unwrap();
        unpack().unwrap();
        assert_eq!(fs::read(&first).unwrap(), b"first");
        // A folder stands where the file should be.
        fs::remove_file(&first).unwrap();
        fs::create_dir(&first).unwrap();
        let message = unpack().unwrap_err();
        assert!(message.starts_with(&format!("cannot write {}: ", first.display())), "{message}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
