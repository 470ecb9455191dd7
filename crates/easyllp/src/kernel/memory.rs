//! Reduce memory latency for tables that are larger than any cache.

#![expect(clippy::inline_always, reason = "a prefetch is one instruction")]

use ndarray::{Array1, Array2, s};

/// Prefetches these numbers.
#[inline(always)]
pub(crate) fn prefetch<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for line in values.chunks(64 / size_of::<T>().clamp(1, 64)) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        #[expect(unsafe_code, reason = "an instruction with a pointer")]
        // SAFETY: prefetching reads nothing that the program sees, and the pointer is that of a slice.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}

/// A table of zeros whose lines are aligned to cache lines, if their lengths allow it: a line of 16
/// numbers across two cache lines would cost two memory accesses. Large tables use huge pages.
pub(crate) fn table_of_zeros(n_lines: usize, width: usize) -> Array2<f32> {
    const CACHE_LINE: usize = 64;
    let length = n_lines * width;
    let mut space = vec![0.0_f32; length + CACHE_LINE / size_of::<f32>()];
    wish_for_large_pages(&mut space);
    let start = space.as_ptr().align_offset(CACHE_LINE);
    let table = Array1::from_vec(space).slice_move(s![start..start + length]);
    table.into_shape_with_order((n_lines, width)).expect("as long as its shape says")
}

/// Requests huge pages for a large table, best before its first use: lines are accessed in no
/// order, and with small pages each access also costs a page look-up. The system may ignore the
/// request.
pub(crate) fn wish_for_large_pages<T>(table: &mut [T]) {
    /// Smaller tables do not gain from huge pages.
    const WORTH_IT: usize = 8 << 20;
    #[cfg(target_os = "linux")]
    if size_of_val(table) >= WORTH_IT {
        let page = 4096;
        let start = table.as_mut_ptr().cast::<u8>();
        let offset = start.align_offset(page);
        #[expect(unsafe_code, reason = "a system call with a pointer")]
        // SAFETY: the range lies within a slice that is borrowed mutably, and the advice changes no byte of it.
        unsafe {
            libc::madvise(start.add(offset).cast(), size_of_val(table) - offset, libc::MADV_HUGEPAGE);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (table, WORTH_IT);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_begin_with_a_cache_line() {
        for (n_lines, width) in [(0, 4), (1, 1), (3, 16), (200_000, 16)] {
            let mut table = table_of_zeros(n_lines, width);
            assert!(table.is_empty() || table.as_ptr().align_offset(64) == 0);
            assert_eq!(table.dim(), (n_lines, width));
            assert!(
                table.as_slice_mut().is_some_and(|values| values.iter().all(|value| value.to_bits() == 0))
            );
        }
    }

    #[test]
    fn wishes_change_no_byte() {
        for length in [0, 1, 1000, 5 << 20] {
            let mut table: Vec<u32> = (0..length).collect();
            wish_for_large_pages(&mut table[length as usize / 3..]);
            prefetch(&[0.0; 33]);
            prefetch(&[(); 3]);
            prefetch(&[[0_u8; 100]; 3]);
            assert!(table.into_iter().eq(0..length));
        }
    }
}
