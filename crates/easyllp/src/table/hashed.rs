//! Hashed text: a hash per row, and the distinct values while there are few.

use rayon::slice::ParallelSliceMut;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use xxhash_rust::xxh3::xxh3_64;

/// A text column that stores a hash per row, and each distinct value once while there are at most
/// [`MOST_VALUES`](Self::MOST_VALUES). A log of millions of rows is read without a dictionary
/// look-up per cell.
#[derive(Debug, Clone, PartialEq)]
pub struct HashedText {
    hashes: Vec<u32>,
    values: Option<HashMap<u32, String, AsIs>>,
}

/// Keys are hashes already.
pub(crate) type AsIs = BuildHasherDefault<HashIsKey>;

impl Default for HashedText {
    fn default() -> Self {
        Self { hashes: Vec::new(), values: Some(HashMap::default()) }
    }
}

impl HashedText {
    /// With more distinct values than this, they are not kept.
    pub const MOST_VALUES: usize = 4096;

    /// Reserves memory for this number of rows, if it is available.
    #[cfg(feature = "tables")]
    pub(super) fn reserve(&mut self, n_rows: usize) {
        let _ = self.hashes.try_reserve_exact(n_rows);
    }

    /// Adds rows with their text; missing values are empty text.
    pub fn extend<'v>(&mut self, values: impl IntoIterator<Item = &'v str>) {
        if self.values.is_none() {
            return self.hashes.extend(values.into_iter().map(hash_of));
        }
        let mut adding = self.adding();
        values.into_iter().for_each(|value| adding.push(value));
    }

    /// For rows that are added one by one.
    pub(super) fn adding(&mut self) -> Adding<'_> {
        // No slot holds a hash that belongs there.
        let mut recent = [0; SLOTS];
        recent.iter_mut().zip(0..).for_each(|(hash, slot): (&mut u32, u32)| *hash = !slot);
        Adding { text: self, recent }
    }

    /// Adds rows by their index in a dictionary; `None` is a missing value.
    #[cfg(feature = "tables")]
    pub(super) fn extend_coded(
        &mut self,
        dictionary: &[&str],
        places: impl ExactSizeIterator<Item = Option<usize>>,
    ) {
        // The last entry is the missing value's.
        let missing = dictionary.len();
        let hashes: Vec<u32> = dictionary.iter().chain(&[""]).map(|value| hash_of(value)).collect();
        let mut is_used = vec![false; hashes.len()];
        self.hashes.extend(places.map(|place| {
            let place = place.unwrap_or(missing);
            is_used[place] = true;
            hashes[place]
        }));
        for ((value, hash), _) in
            dictionary.iter().chain(&[""]).zip(hashes).zip(is_used).filter(|(_, is_used)| *is_used)
        {
            self.see(hash, value);
        }
    }

    /// The number of distinct values.
    pub fn n_distinct(&self) -> usize {
        self.values.as_ref().map_or_else(
            || {
                let mut hashes = self.hashes.clone();
                hashes.par_sort_unstable();
                hashes.dedup();
                hashes.len()
            },
            HashMap::len,
        )
    }

    /// One hash per row.
    pub(crate) fn hashes(&self) -> &[u32] {
        &self.hashes
    }

    /// The value with this hash, if values are kept.
    pub(crate) fn value(&self, hash: u32) -> Option<&str> {
        self.values.as_ref()?.get(&hash).map(String::as_str)
    }

    /// The distinct values, sorted, if they are kept.
    pub(crate) fn values(&self) -> Option<Vec<String>> {
        let mut values: Vec<String> = self.values.as_ref()?.values().cloned().collect();
        values.sort_unstable();
        Some(values)
    }

    fn see(&mut self, hash: u32, value: &str) {
        let Some(values) = &mut self.values else { return };
        values.entry(hash).or_insert_with(|| value.to_owned());
        if values.len() > Self::MOST_VALUES {
            self.values = None;
        }
    }
}

const SLOTS: usize = 1024;

/// Adds rows to a column, with a cache of recent values: most values occur again soon.
pub(super) struct Adding<'t> {
    text: &'t mut HashedText,
    /// By its lowest bits, the last hash that came.
    recent: [u32; SLOTS],
}

impl Adding<'_> {
    pub(super) fn push(&mut self, value: &str) {
        let hash = hash_of(value);
        self.text.hashes.push(hash);
        let recent = &mut self.recent[hash as usize % SLOTS];
        if *recent != hash {
            *recent = hash;
            self.text.see(hash, value);
        }
    }
}

impl<'v> FromIterator<&'v str> for HashedText {
    fn from_iter<I: IntoIterator<Item = &'v str>>(values: I) -> Self {
        let mut column = Self::default();
        column.extend(values);
        column
    }
}

/// The hash of a value. It is the same on every machine, since models store weights by it. Among a
/// thousand values, two collide in one column of ten thousand; they are then treated as one value.
pub(crate) fn hash_of(value: &str) -> u32 {
    (xxh3_64(value.as_bytes()) >> 32) as u32
}

/// A hasher for keys that are hashes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HashIsKey(u32);

impl Hasher for HashIsKey {
    fn finish(&self) -> u64 {
        // A table looks at the highest bits as well as at the lowest.
        u64::from(self.0) << 32 | u64::from(self.0)
    }

    fn write_u32(&mut self, hash: u32) {
        self.0 = hash;
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are u32");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_kept_and_many_are_not() {
        let text: Vec<String> = (0..=HashedText::MOST_VALUES).map(|value| value.to_string()).collect();
        let few: HashedText = text[..1000].iter().map(String::as_str).chain(["3", "3"]).collect();
        assert_eq!((few.hashes().len(), few.n_distinct()), (1002, 1000));
        let many: HashedText = text.iter().map(String::as_str).collect();
        assert_eq!((many.n_distinct(), many.values()), (4097, None));
    }

    #[cfg(feature = "tables")]
    #[test]
    fn a_dictionary_gives_the_same_column() {
        let plain: HashedText = ["b", "", "a", "b"].into_iter().collect();
        let mut coded = HashedText::default();
        coded.extend_coded(&["a", "unused", "b"], [Some(2), None, Some(0), Some(2)].into_iter());
        assert_eq!(coded, plain);
        coded.extend(["c"]);
        assert_eq!(coded, ["b", "", "a", "b", "c"].into_iter().collect());
    }
}
