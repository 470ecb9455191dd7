//! The purpose of a forward pass.

/// The purpose of a forward pass: prediction or training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// Prediction: deterministic scores that do not depend on the batch.
    Score,
    /// Training: `backward` will follow, and dropout is active.
    Learn {
        /// The seed of random numbers. No two batches of a training run share it.
        draw: u64,
    },
}

/// Derives the `draw` of each chunk of a training run from one random number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) fn new(start: u64) -> Self {
        Self(start)
    }

    /// The draw of this chunk, counted over the whole training run.
    ///
    /// SplitMix64 (Steele, Lea & Flood 2014): a bijection, so that different chunks have different draws.
    pub(crate) fn of_chunk(self, chunk: u64) -> u64 {
        let mut state = self.0.wrapping_add(chunk.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        state ^ (state >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_draw_the_numbers_of_splitmix64() {
        // The first outputs of the reference implementation with seed 1234567.
        let draws = Draws::new(1_234_567);
        assert_eq!(draws.of_chunk(1), 6_457_827_717_110_365_317);
        assert_eq!(draws.of_chunk(2), 3_203_168_211_198_807_973);
    }
}
