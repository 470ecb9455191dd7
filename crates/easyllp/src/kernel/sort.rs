//! A stable radix sort of line numbers, at a cost that follows their number and not how they are spread.

#![expect(clippy::cast_possible_truncation, reason = "halves and digits of 64 bits are cut out on purpose")]

/// Bits that one pass sorts by: the counters of a pass fit in the first cache.
const DIGIT: u32 = 11;

/// A line number and where it came from: the line in the high half, so that the order of numbers is that of lines.
pub(crate) fn pack(line: u32, place: u32) -> u64 {
    u64::from(line) << 32 | u64::from(place)
}

/// Where a packed line came from.
pub(crate) fn place(item: u64) -> usize {
    (item & u64::from(u32::MAX)) as usize
}

/// The line of a packed line.
pub(crate) fn line(item: u64) -> usize {
    (item >> 32) as usize
}

/// Sorts items by line, those of one line in the order they came in. Lines are below `n_lines`; `scratch` is used up.
pub(crate) fn sort_by_line(items: &mut Vec<u64>, scratch: &mut Vec<u64>, n_lines: usize) {
    let bits = usize::BITS - n_lines.saturating_sub(1).leading_zeros();
    scratch.resize(items.len(), 0);
    for pass in 0..bits.div_ceil(DIGIT) {
        let shift = 32 + pass * DIGIT;
        let digit = |item: u64| (item >> shift) as usize & ((1 << DIGIT) - 1);
        let mut places = [0_usize; 1 << DIGIT];
        for &item in &*items {
            places[digit(item)] += 1;
        }
        let mut start = 0;
        for place in &mut places {
            start += std::mem::replace(place, start);
        }
        for &item in &*items {
            let place = &mut places[digit(item)];
            scratch[*place] = item;
            *place += 1;
        }
        std::mem::swap(items, scratch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The standard library's stable sort is the oracle; tables of one line and of all possible ones included.
        #[test]
        fn equals_the_standard_sort(
            lines in prop::collection::vec(any::<u32>(), 0..300),
            n_lines in prop::sample::select(vec![1_usize, 2, 2048, 2049, 1 << 22, (1 << 22) + 1, u32::MAX as usize]),
        ) {
            let limit = u32::try_from(n_lines).unwrap();
            let mut items: Vec<u64> = (0..).zip(&lines).map(|(place, line)| pack(line % limit, place)).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|&item| line(item));
            sort_by_line(&mut items, &mut Vec::new(), n_lines);
            prop_assert_eq!(items, expected);
        }
    }
}
