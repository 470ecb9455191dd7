//! Compare many bytes of text at a time.

/// A bit mask of the bytes that are equal to this one; the first byte is the lowest bit.
#[inline]
pub(crate) fn places_of(byte: u8, chunk: &[u8; 64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "instructions of a kind of processor")]
    // SAFETY: every x86-64 processor has SSE2.
    unsafe {
        places_by_sixteen(byte, chunk)
    }
    #[cfg(not(target_arch = "x86_64"))]
    places_one_by_one(byte, chunk)
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn places_one_by_one(byte: u8, chunk: &[u8; 64]) -> u64 {
    chunk.iter().rev().fold(0, |bits, &found| bits << 1 | u64::from(found == byte))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn places_by_sixteen(byte: u8, chunk: &[u8; 64]) -> u64 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
    let (words, _) = chunk.as_chunks::<8>();
    let word = |place: usize| i64::from_le_bytes(words[place]);
    (0..4).fold(0, |bits, quarter| {
        let sixteen = _mm_set_epi64x(word(2 * quarter + 1), word(2 * quarter));
        let is_it = _mm_movemask_epi8(_mm_cmpeq_epi8(sixteen, _mm_set1_epi8(byte.cast_signed())));
        bits | u64::from(is_it.cast_unsigned()) << (16 * quarter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_byte_has_its_bit(bytes in prop::collection::vec(prop::sample::select(vec![0, b',', 44 + 128, 255]), 64)) {
            let chunk: [u8; 64] = bytes.try_into().unwrap();
            for byte in [b',', 0, 255] {
                prop_assert_eq!(places_of(byte, &chunk), places_one_by_one(byte, &chunk));
                prop_assert_eq!(places_of(byte, &chunk) >> 9 & 1 == 1, chunk[9] == byte);
            }
        }
    }
}
