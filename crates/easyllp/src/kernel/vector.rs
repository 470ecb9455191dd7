//! Vectors to and from memory, of which the last of a line may be short.

#![expect(clippy::inline_always, reason = "code that is not inlined is not compiled for these vectors")]

use pulp::{Arch, MemMask, Simd};

/// The vectors for lines of `n` numbers. If they would be half empty at best, vectors of half the width do better: they are
/// read twice as fast.
pub(super) fn suited(arch: Arch, n: usize) -> Arch {
    #[cfg(target_arch = "x86_64")]
    if let (Arch::V4(_), 0..=8, Some(half)) = (arch, n, pulp::x86::V3::try_new()) {
        return Arch::V3(half);
    }
    arch
}

/// How much of a vector is meant: all, or its first numbers.
#[derive(Clone, Copy)]
pub(super) struct Part<S: Simd> {
    n: usize,
    mask: MemMask<S::m32s>,
}

impl<S: Simd> Part<S> {
    /// The first `n` numbers, or all if a vector has fewer.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "vectors have a few numbers")]
    pub(super) fn first(simd: S, n: usize) -> Self {
        let n = n.min(S::F32_LANES);
        // The mask alone: what pulp has beside it makes a call of every load.
        Self { n, mask: MemMask::new(simd.mask_between_m32s(0, n as u32).mask()) }
    }

    /// All of a vector.
    #[inline(always)]
    pub(super) fn all(simd: S) -> Self {
        Self::first(simd, S::F32_LANES)
    }
}

/// Reads a part of a vector, and zeros behind it.
#[inline(always)]
pub(super) fn load<S: Simd>(simd: S, from: &[f32], part: Part<S>) -> S::f32s {
    if part.n == S::F32_LANES {
        return S::as_simd_f32s(&from[..S::F32_LANES]).0[0];
    }
    let from = &from[..part.n];
    #[expect(unsafe_code, reason = "pulp's safe way is a call for every load")]
    // SAFETY: the mask lets the first `n` numbers through, and there are that many.
    unsafe {
        simd.mask_load_ptr_f32s(part.mask, from.as_ptr())
    }
}

/// Writes a part of a vector.
#[inline(always)]
pub(super) fn store<S: Simd>(simd: S, to: &mut [f32], part: Part<S>, value: S::f32s) {
    if part.n == S::F32_LANES {
        S::as_mut_simd_f32s(&mut to[..S::F32_LANES]).0[0] = value;
        return;
    }
    let to = &mut to[..part.n];
    #[expect(unsafe_code, reason = "pulp's safe way is a call for every store")]
    // SAFETY: the mask lets the first `n` numbers through, and there is room for that many.
    unsafe {
        simd.mask_store_ptr_f32s(part.mask, to.as_mut_ptr(), value);
    }
}

/// Adds a part of a vector.
#[inline(always)]
pub(super) fn add<S: Simd>(simd: S, to: &mut [f32], part: Part<S>, value: S::f32s) {
    store(simd, to, part, simd.add_f32s(load(simd, to, part), value));
}

/// Writes a part of each of `P` vectors, `step` numbers from one to the next.
#[inline(always)]
pub(super) fn store_lines<S: Simd, const P: usize>(
    simd: S,
    to: &mut [f32],
    step: usize,
    part: Part<S>,
    values: [S::f32s; P],
) {
    assert!((P - 1) * step + part.n <= to.len(), "there is room for all lines");
    let to = to.as_mut_ptr();
    #[expect(unsafe_code, reason = "with a check for each line, values would not stay in registers")]
    // SAFETY: the last line ends inside the slice, by the assert, and the mask lets no more than `n` numbers through.
    unsafe {
        if part.n == S::F32_LANES {
            for (p, &value) in values.iter().enumerate() {
                to.add(p * step).cast::<S::f32s>().write_unaligned(value);
            }
        } else {
            for (p, &value) in values.iter().enumerate() {
                simd.mask_store_ptr_f32s(part.mask, to.add(p * step), value);
            }
        }
    }
}

/// Adds a part of each of `P` vectors, `step` numbers from one to the next. They may overlap.
#[inline(always)]
pub(super) fn add_lines<S: Simd, const P: usize>(
    simd: S,
    to: &mut [f32],
    step: usize,
    part: Part<S>,
    values: [S::f32s; P],
) {
    assert!((P - 1) * step + part.n <= to.len(), "there is room for all lines");
    // What was just written in other pieces is slow to read, so that neighbours take turns.
    for first in 0..2 {
        for (p, &value) in values.iter().enumerate() {
            if p % 2 == first {
                #[expect(
                    unsafe_code,
                    reason = "with a check for each line, values would not stay in registers"
                )]
                // SAFETY: the last line ends inside the slice, by the assert, and the mask lets no more than `n`
                // numbers through.
                unsafe {
                    let to = to.as_mut_ptr().add(p * step);
                    if part.n == S::F32_LANES {
                        let to = to.cast::<S::f32s>();
                        to.write_unaligned(simd.add_f32s(to.read_unaligned(), value));
                    } else {
                        let sum = simd.add_f32s(simd.mask_load_ptr_f32s(part.mask, to), value);
                        simd.mask_store_ptr_f32s(part.mask, to, sum);
                    }
                }
            }
        }
    }
}
