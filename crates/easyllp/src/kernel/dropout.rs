//! Dropout: a share of a layer's outputs is set to 0 in training, and the others are scaled up.
//!
//! Whether an output is dropped is a hash of a key and its position: no state, any order, any
//! number of threads.

#![expect(clippy::inline_always, reason = "a loop is only vectorised with all of its body in it")]

use super::vectorised;

/// A dropout rate, prepared for the loop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dropout {
    /// Outputs with hashes below this are dropped.
    threshold: u32,
    /// The factor of the others.
    scale: f32,
    keys: [u32; 2],
}

impl Dropout {
    /// Drops this share, from 0 to below 1, by the random numbers of a draw and a layer.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of 2³², and halves of a draw"
    )]
    pub(crate) fn new(share: f32, draw: u64, layer: usize) -> Self {
        let threshold = (f64::from(share) * (2.0_f64).powi(32)) as u32;
        let draw = draw.wrapping_add((layer as u64).wrapping_mul(0xd1b5_4a32_d192_ed03));
        Self { threshold, scale: 1.0 / (1.0 - share), keys: [draw as u32, (draw >> 32) as u32] }
    }

    /// The factor of the output at a position.
    #[inline(always)]
    fn factor(self, place: u32) -> f32 {
        // Two rounds of a mixer with little bias (Wellons 2018, `lowbias32`), each under a key of its own.
        let hash = mix(mix(place ^ self.keys[0]) ^ self.keys[1]);
        if hash < self.threshold { 0.0 } else { self.scale }
    }
}

#[inline(always)]
fn mix(mut hash: u32) -> u32 {
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x7feb_352d);
    hash ^= hash >> 15;
    hash = hash.wrapping_mul(0x846c_a68b);
    hash ^ (hash >> 16)
}

/// Multiplies each value by its factor.
pub(crate) fn drop_out(dropout: Dropout, values: &mut [f32]) {
    vectorised(
        #[inline(always)]
        || each(dropout, values),
    );
}

#[inline(always)]
fn each(dropout: Dropout, values: &mut [f32]) {
    for (place, value) in (0_u32..).zip(values) {
        *value *= dropout.factor(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::every_arch;

    #[test]
    fn leaves_out_its_share_and_keeps_the_mean() {
        for share in [0.0, 0.1, 0.5, 0.9] {
            let mut values = vec![1.0; 100_000];
            drop_out(Dropout::new(share, 77, 1), &mut values);
            let kept = values.iter().filter(|value| **value > 0.0).count() as f32 / 1e5;
            let mean = values.iter().sum::<f32>() / 1e5;
            assert!((kept - (1.0 - share)).abs() < 0.01, "{share}: {kept}");
            assert!((mean - 1.0).abs() < 0.05, "{share}: {mean}");
        }
    }

    #[test]
    fn draws_layers_and_neighbours_are_independent() {
        let mask = |draw, layer| {
            let mut values = vec![1.0; 10_000];
            drop_out(Dropout::new(0.5, draw, layer), &mut values);
            values
        };
        let same = |a: &[f32], b: &[f32]| a.iter().zip(b).filter(|(a, b)| a.to_bits() == b.to_bits()).count();
        let first = mask(1, 0);
        for other in [mask(2, 0), mask(1, 1), mask(1 << 32, 0)] {
            assert!(same(&first, &other).abs_diff(5000) < 200);
        }
        for shift in [1, 2, 16, 128] {
            assert!(same(&first[shift..], &first).abs_diff((10_000 - shift) / 2) < 200);
        }
    }

    #[test]
    fn every_kind_of_vectors_gives_the_same_bytes() {
        for length in [1, 15, 100] {
            let of = |arch: pulp::Arch| {
                let mut values: Vec<f32> = (0..length).map(|i| i as f32).collect();
                arch.dispatch(
                    #[inline(always)]
                    || each(Dropout::new(0.3, 5, 2), &mut values),
                );
                values
            };
            for arch in every_arch() {
                assert_eq!(of(pulp::Arch::Scalar), of(arch), "{arch:?} {length}");
            }
        }
    }
}
