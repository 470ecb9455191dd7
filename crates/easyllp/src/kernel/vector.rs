//! Vectors to and from memory, of which the last of a line may be short.

use pulp::Simd;

/// Reads `n` numbers into a vector, and zeros behind them.
#[inline(always)]
pub(super) fn load<S: Simd>(simd: S, from: &[f32], n: usize) -> S::f32s {
    if n == S::F32_LANES {
        S::as_simd_f32s(&from[..S::F32_LANES]).0[0]
    } else {
        simd.partial_load_f32s(&from[..n])
    }
}

/// Writes the first `n` numbers of a vector.
#[inline(always)]
pub(super) fn store<S: Simd>(simd: S, to: &mut [f32], n: usize, value: S::f32s) {
    if n == S::F32_LANES {
        S::as_mut_simd_f32s(&mut to[..S::F32_LANES]).0[0] = value;
    } else {
        simd.partial_store_f32s(&mut to[..n], value);
    }
}

/// Adds the first `n` numbers of a vector.
#[inline(always)]
pub(super) fn add<S: Simd>(simd: S, to: &mut [f32], n: usize, value: S::f32s) {
    store(simd, to, n, simd.add_f32s(load(simd, to, n), value));
}
