//! A tile of a matrix product that stays in registers: the innermost loop of every convolution.
//!
//! A tile has `P` lines of `V` vectors. Its terms come in segments, such as the lines of a window, of equal length and at
//! equal distances:
//!
//! ```text
//! tile[p][v] = Σ_s Σ_t lhs[s·lhs_segment + t·lhs_term + p·lhs_line] · rhs[s·rhs_segment + t·rhs_term + v·lanes ..]
//! ```

#![expect(clippy::inline_always, reason = "code that is not inlined is not compiled for these vectors")]

use pulp::Simd;

/// Lines that a tile of `V` vectors may have: its sums, the `V` right factors and a left one fill the registers.
const fn most_lines<S: Simd>(vectors: usize) -> usize {
    let lines = (S::REGISTER_COUNT - 1 - vectors) / vectors;
    // Without vectors it is slow anyway, and few tiles are soon compiled.
    let most = if S::F32_LANES == 1 { 4 } else { 14 };
    if lines < most { lines } else { most }
}

/// Vectors in a line of a tile, at most. A left factor is loaded once for all of them, and loads take as long as sums; but
/// then fewer lines fit in the registers.
const fn most_vectors<S: Simd>() -> usize {
    if S::REGISTER_COUNT < 32 { 2 } else { 3 }
}

/// The factors of a product, and where the terms of a tile are found in them.
#[derive(Clone, Copy)]
pub(super) struct Factors<'a> {
    /// Single numbers, each of which meets a whole line.
    pub(super) lhs: &'a [f32],
    /// Vectors, of which the tile takes `V` in a row.
    pub(super) rhs: &'a [f32],
    pub(super) n_segments: usize,
    pub(super) n_terms: usize,
    pub(super) lhs_segment: usize,
    pub(super) lhs_term: usize,
    pub(super) lhs_line: usize,
    /// May point backwards, for a window that is read against the order of its lines.
    pub(super) rhs_segment: isize,
    pub(super) rhs_term: usize,
}

/// The sums of one tile, whose first terms are at these places.
#[inline(always)]
pub(super) fn tile<S: Simd, const P: usize, const V: usize>(
    simd: S,
    factors: &Factors,
    lhs_start: usize,
    rhs_start: usize,
) -> [[S::f32s; V]; P] {
    let &Factors { lhs, rhs, n_segments, n_terms, lhs_segment, lhs_term, lhs_line, rhs_segment, rhs_term } =
        factors;
    let mut sums = [[simd.splat_f32s(0.0); V]; P];
    if n_segments == 0 || n_terms == 0 {
        return sums;
    }
    let last_lhs = lhs_start + (n_segments - 1) * lhs_segment + (n_terms - 1) * lhs_term + (P - 1) * lhs_line;
    assert!(last_lhs < lhs.len(), "a tile stays inside its left factor");
    let last_start = rhs_start.checked_add_signed((n_segments - 1).cast_signed() * rhs_segment);
    let last_start = last_start.expect("a tile starts inside its right factor");
    let last_rhs = rhs_start.max(last_start) + (n_terms - 1) * rhs_term + V * S::F32_LANES;
    assert!(last_rhs <= rhs.len(), "a tile stays inside its right factor");
    #[expect(unsafe_code, reason = "a check for each term would cost as much as the product")]
    // SAFETY: places grow with segment (or fall evenly), term and line, so all lie between the first and the last,
    // which the asserts keep inside the slices. `f32s` is plain old data, and read without an alignment.
    unsafe {
        let mut lhs = lhs.as_ptr().add(lhs_start);
        let mut rhs = rhs.as_ptr().add(rhs_start);
        for _ in 0..n_segments {
            let (mut left, mut right) = (lhs, rhs);
            for _ in 0..n_terms {
                let right_factors: [S::f32s; V] = std::array::from_fn(
                    #[inline(always)]
                    |v| right.add(v * S::F32_LANES).cast::<S::f32s>().read_unaligned(),
                );
                for (p, line) in sums.iter_mut().enumerate() {
                    let left_factor = simd.splat_f32s(*left.add(p * lhs_line));
                    for (sum, &right_factor) in line.iter_mut().zip(&right_factors) {
                        *sum = simd.mul_add_e_f32s(left_factor, right_factor, *sum);
                    }
                }
                left = left.wrapping_add(lhs_term);
                right = right.wrapping_add(rhs_term);
            }
            lhs = lhs.wrapping_add(lhs_segment);
            rhs = rhs.wrapping_offset(rhs_segment);
        }
    }
    sums
}

/// One vector of each line of a tile.
#[inline(always)]
pub(super) fn column<T: Copy, const P: usize, const V: usize>(sums: &[[T; V]; P], v: usize) -> [T; P] {
    let mut column = [sums[0][v]; P];
    column.iter_mut().zip(sums).for_each(|(to, line)| *to = line[v]);
    column
}

/// Work that is cut into tiles.
pub(super) trait Tiled<S: Simd> {
    /// Does the tile of `P` lines of `V` vectors that starts at this line and this vector.
    fn tile<const P: usize, const V: usize>(&mut self, simd: S, line: usize, vector: usize);
}

/// Cuts vectors into blocks for the lines of tiles, as evenly as possible: the first vector of each, and how many.
#[inline(always)]
pub(super) fn blocks<S: Simd>(n_vectors: usize) -> impl Iterator<Item = (usize, usize)> {
    let n_blocks = n_vectors.div_ceil(most_vectors::<S>());
    (0..n_blocks).map(move |block| {
        let start = block * n_vectors / n_blocks;
        (start, (block + 1) * n_vectors / n_blocks - start)
    })
}

/// Cuts the lines of one block into tiles, as evenly as possible: a narrow rest would keep the registers half empty.
#[inline(always)]
pub(super) fn run_lines<S: Simd>(
    simd: S,
    work: &mut impl Tiled<S>,
    n_lines: usize,
    vector: usize,
    vectors: usize,
) {
    let n_tiles = n_lines.div_ceil(most_lines::<S>(vectors));
    let mut line = 0;
    for left in (1..=n_tiles).rev() {
        let lines = (n_lines - line).div_ceil(left);
        dispatch(simd, work, line, lines, vector, vectors);
        line += lines;
    }
}

/// From numbers to the tile compiled for them.
#[inline(always)]
fn dispatch<S: Simd>(
    simd: S,
    work: &mut impl Tiled<S>,
    line: usize,
    lines: usize,
    vector: usize,
    vectors: usize,
) {
    macro_rules! one_of {
        ($($p:literal),*) => {
            match (lines, vectors) {
                $(($p, 1) if $p <= const { most_lines::<S>(1) } => work.tile::<$p, 1>(simd, line, vector),)*
                $(($p, 2) if $p <= const { most_lines::<S>(2) } => work.tile::<$p, 2>(simd, line, vector),)*
                $(($p, 3) if const { 3 <= most_vectors::<S>() && $p <= most_lines::<S>(3) } => {
                    work.tile::<$p, 3>(simd, line, vector);
                })*
                _ => unreachable!("no tile has {lines} lines of {vectors} vectors"),
            }
        };
    }
    one_of!(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14);
}
