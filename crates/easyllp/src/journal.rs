//! REPORT: work that is done stays done. Each finished piece is a record in a file of its own, which is there as a whole
//! or not at all: killed at any moment and started again, a run repeats at most what was under way.

use crate::atomic::{cannot_write, write_whole};
use crate::error::Result;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// A folder of records, each under a key that says what it is the result of.
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
}

impl Journal {
    /// The journal in this folder, which is made if it is not there.
    pub fn open(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// The record under a key; none if there is none, or one that is damaged.
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        let mut bytes = std::fs::read(self.path(key)).ok()?;
        let head = head(key, &[]).len();
        let record = bytes.get(head..)?;
        if bytes[..head] != self::head(key, record) {
            return None;
        }
        bytes.drain(..head);
        Some(bytes)
    }

    /// Puts down a record, in the place of one that may be there.
    pub fn put(&self, key: &str, record: &[u8]) -> Result<()> {
        write_whole(&self.path(key), &[&head(key, record)[..], record].concat())
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{:016x}.record", xxh3_64(key.as_bytes())))
    }
}

/// What stands before a record: its checksum and its key, since two keys might share a name.
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
}
