//! A model of one's own: a score that is quadratic in each feature.
//!
//! ```sh
//! cargo run --release --package easyllp --example own_model
//! ```

use easyllp::fit::{OptimizerConfig, Penalty};
use easyllp::model::{Block, Gradient, Parameters, Pass, Updates};
use easyllp::{Bags, Error, FitConfig, Result, Rows, bagging, model::Model, rows::RowBatch};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis};
use std::num::NonZeroUsize;

/// f(x) = b + Σ_j (w_j x_j + v_j x_j²), for two classes.
#[derive(Debug, Clone)]
struct Quadratic(Parameters);

const WEIGHTS: usize = 0;
const SQUARES: usize = 1;
const INTERCEPT: usize = 2;

impl Quadratic {
    fn new(n_features: usize) -> Self {
        let block = |name: &'static str, n_lines, decays| {
            Block::new(name, Array2::zeros((n_lines, 1)), Updates::Dense, decays)
        };
        Self(Parameters::new(vec![
            block("weights", n_features, true),
            block("squares", n_features, true),
            block("intercept", 1, false),
        ]))
    }

    fn values(&self, block: usize) -> ArrayView2<'_, f32> {
        self.0.blocks()[block].values()
    }
}

impl Model for Quadratic {
    type Tape = ();

    fn n_scores(&self) -> usize {
        1
    }

    fn check(&self, rows: &Rows) -> Result<()> {
        let (expected, got) = (self.values(WEIGHTS).nrows(), rows.n_dense());
        if expected == got { Ok(()) } else { Err(Error::Shape { what: "dense features", expected, got }) }
    }

    fn parameters(&self) -> &Parameters {
        &self.0
    }

    fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.0
    }

    fn forward(&self, rows: &RowBatch, _: Pass, (): &mut (), mut scores: ArrayViewMut2<f32>) {
        let squares = rows.dense.mapv(|x| x * x);
        scores.assign(&(rows.dense.dot(&self.values(WEIGHTS)) + squares.dot(&self.values(SQUARES))));
        scores += self.values(INTERCEPT)[[0, 0]];
    }

    fn backward(&self, rows: &RowBatch, (): &mut (), dscores: ArrayView2<f32>, gradient: &mut Gradient) {
        let squares = rows.dense.mapv(|x| x * x);
        gradient.dense_mut(WEIGHTS).assign(&rows.dense.t().dot(&dscores));
        gradient.dense_mut(SQUARES).assign(&squares.t().dot(&dscores));
        gradient.dense_mut(INTERCEPT).row_mut(0).assign(&dscores.sum_axis(Axis(0)));
    }
}

#[expect(clippy::print_stdout, reason = "an example prints")]
pub(crate) fn main() -> Result<()> {
    // Rows on a grid; positive inside a ring, which no linear model finds.
    let place = |row: usize, column: usize| if column == 0 { row % 60 } else { row / 60 } as f32 / 30.0 - 1.0;
    let features = Array2::from_shape_fn((3600, 2), |(row, column)| place(row, column));
    let labels: Vec<u32> = features.rows().into_iter().map(|x| u32::from(x.dot(&x) < 0.6)).collect();
    let rows = Rows::dense(features)?;
    let bags = Bags::from_labels(bagging::random(3600, &bagging::Sizes::Fixed(4), 1)?, &labels, 2)?;

    let optimizer = OptimizerConfig {
        epochs: NonZeroUsize::new(60),
        lr: Some(0.05),
        l2: Some(Penalty::Value(0.0)),
        ..OptimizerConfig::default()
    };
    let config = FitConfig { optimizer, ..FitConfig::default() };
    let fitted = config.fitting(&rows, &bags).run_model(Quadratic::new(2))?;
    let probabilities = fitted.predict_proba(&rows)?;
    let right = labels.iter().zip(probabilities.rows()).filter(|(label, q)| (q[1] > 0.5) == (**label == 1));
    let share = right.count() as f64 / 3600.0;
    println!("{:.1} % of the rows are right, from counts of four", 100.0 * share);
    assert!(share > 0.9, "{share}");
    Ok(())
}
