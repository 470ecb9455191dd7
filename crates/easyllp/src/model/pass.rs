//! Why a model is asked for scores.

/// Why a model is asked for scores: to say them, or to learn from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// Scores as they are meant: the same for the same row, whatever the batch.
    Score,
    /// Scores that `backward` will be asked about; a model with dropout leaves out a part of itself.
    Learn {
        /// What random numbers are to be drawn from. No two batches of a training share it.
        draw: u64,
    },
}

/// The `draw` of each chunk of a training, out of one random number of its seed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) fn new(start: u64) -> Self {
        Self(start)
    }

    /// The draw of the chunk with this number, counted through the whole training.
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
