//! Synthetic clicks in the layout of Criteo's log: 13 numbers and 26 categories, with known
//! probabilities.
//!
//! Categories follow Zipf's law. The log-odds of a click are a sum of effects of single values, of
//! numbers and of pairs of categories; linear models cannot learn the pairs.

use easyllp::{Result, Rows};
use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal, Zipf};

const N_TRAIN: usize = 100_000;
const N_TEST: usize = 20_000;
const N_NUMBERS: usize = 13;
const N_FIELDS: usize = 26;
/// The number of values of a field.
const N_VALUES: u32 = 1 << 10;
/// The pairs of neighbouring fields with an interaction.
const N_PAIRS: usize = 10;
/// The log-odds of a click without any effect. With the effects of values and pairs about a third
/// of the views are clicked.
const AT_REST: f64 = -1.5;

/// Ad views with their click probabilities.
#[derive(Debug, Clone, PartialEq)]
pub struct Clicks {
    /// Numbers, one row each: standard normal.
    pub numbers: Array2<f32>,
    /// Categories, one row each: from 0 to 1,023.
    pub categories: Array2<u32>,
    /// Whether there was a click: 1 or 0.
    pub labels: Vec<u32>,
    /// The click probability.
    pub chances: Vec<f64>,
}

impl Clicks {
    /// The views as encoded rows, and their labels.
    pub(super) fn into_rows(self) -> Result<(Rows<'static>, Vec<u32>)> {
        Ok((Rows::new(self.numbers, self.categories, vec![N_VALUES; N_FIELDS])?, self.labels))
    }
}

/// The data set `synthetic-ctr`: training and test views, the same in every run.
pub fn clicks() -> [Clicks; 2] {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut effects = |n: usize, size: f64| -> Vec<f64> {
        (0..n)
            .map(|_| {
                let draw: f64 = StandardNormal.sample(&mut rng);
                size * draw
            })
            .collect()
    };
    let of_numbers = effects(N_NUMBERS, 0.3);
    let of_values = effects(N_FIELDS * N_VALUES as usize, 0.3);
    // A pair has an effect by the last bits of both values.
    let of_pairs = effects(N_PAIRS * 64, 0.7);
    let zipf = Zipf::new(f64::from(N_VALUES), 1.1).expect("a law of many values");
    let mut part = |n_rows: usize| {
        let mut dense = Array2::<f32>::zeros((n_rows, N_NUMBERS));
        let mut fields = Array2::<u32>::zeros((n_rows, N_FIELDS));
        let (mut labels, mut chances) = (Vec::with_capacity(n_rows), Vec::with_capacity(n_rows));
        for (mut numbers, mut values) in dense.rows_mut().into_iter().zip(fields.rows_mut()) {
            let mut log_odds = AT_REST;
            for (number, effect) in numbers.iter_mut().zip(&of_numbers) {
                *number = StandardNormal.sample(&mut rng);
                log_odds += effect * f64::from(*number);
            }
            for (field, value) in values.iter_mut().enumerate() {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "from 1 to N_VALUES"
                )]
                let drawn = zipf.sample(&mut rng) as u32 - 1;
                *value = drawn.min(N_VALUES - 1);
                log_odds += of_values[field * N_VALUES as usize + *value as usize];
            }
            for pair in 0..N_PAIRS {
                let kind = (values[2 * pair] % 8 * 8 + values[2 * pair + 1] % 8) as usize;
                log_odds += of_pairs[pair * 64 + kind];
            }
            let chance = 1.0 / (1.0 + (-log_odds).exp());
            labels.push(u32::from(rng.random::<f64>() < chance));
            chances.push(chance);
        }
        Clicks { numbers: dense, categories: fields, labels, chances }
    };
    [part(N_TRAIN), part(N_TEST)]
}
