//! Random numbers: one seed per run, one stream per stage, so that stages do not affect each other.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// The stages that draw random numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stream {
    Bagging = 1,
    Split = 2,
    Surrogate = 3,
    Shuffle = 4,
    Noise = 6,
    Diagnose = 5,
    Weights = 7,
    Dropout = 8,
    Embeddings = 9,
    Bootstrap = 10,
    Likeness = 11,
    Picks = 12,
}

/// The random numbers of one stage of the run with this seed.
pub(crate) fn stream(seed: u64, stage: Stream) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stage as u64);
    rng
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    #[test]
    fn stages_draw_different_numbers_and_the_same_again() {
        let draw = |seed, stage| stream(seed, stage).random::<u64>();
        assert_eq!(draw(7, Stream::Bagging), draw(7, Stream::Bagging));
        assert_ne!(draw(7, Stream::Bagging), draw(7, Stream::Split));
        assert_ne!(draw(7, Stream::Bagging), draw(8, Stream::Bagging));
    }
}
