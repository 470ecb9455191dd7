//! The mean loss plus the penalty as a function of one vector, computed from sums over the rows.

use super::cut;
use super::sums::{FeatureSums, LinearSums, Lines};
use crate::error::{Error, Result, check_length};
use crate::loss::TrainingLoss;
use crate::model::{LinearModel, Model, linear};
use rayon::prelude::*;

/// The objective of training, for rows in any number of parts. A point holds the parameters of all
/// features that occur.
pub(crate) struct LinearProblem<'l> {
    pub(crate) features: FeatureSums,
    pub(crate) loss: &'l dyn TrainingLoss,
    /// The penalty.
    pub(crate) l2: f64,
}

impl<'l> LinearProblem<'l> {
    pub(crate) fn new(features: FeatureSums, loss: &'l dyn TrainingLoss, l2: f64) -> Self {
        Self { features, loss, l2 }
    }

    /// Checks the shape of the model.
    pub(crate) fn check(&self, model: &LinearModel) -> Result<()> {
        let FeatureSums { n_dense, lines, targets, .. } = &self.features;
        let blocks = &model.parameters().0;
        check_length("scores", model.n_scores(), targets.len())?;
        let (n_dense, n_categories) = match *lines {
            Lines::Categories(n) => (*n_dense, n as usize),
            Lines::Columns(n) => (n as usize, 0),
        };
        check_length("dense features", blocks[linear::WEIGHTS].values.nrows(), n_dense)?;
        check_length("categories", blocks[linear::CATEGORIES].values.nrows(), n_categories)
    }

    /// The starting point. A model of zeros starts with the best constant scores as intercepts.
    pub(crate) fn start(&self, model: &LinearModel) -> Vec<f64> {
        let (n_dense, n_scores) = (self.features.n_dense, self.features.n_scores());
        let blocks = &model.parameters().0;
        let mut start: Vec<f64> = Vec::new();
        if n_dense > 0 {
            start.extend(blocks[linear::WEIGHTS].values.iter().copied().map(f64::from));
        }
        start.extend(blocks[linear::INTERCEPT].values.iter().copied().map(f64::from));
        for place in &self.features.places {
            let of_line = blocks[self.block()].values.row(place.line as usize);
            start.extend(of_line.iter().copied().map(f64::from));
        }
        if start.iter().all(|&parameter| parameter == 0.0) {
            start[n_dense * n_scores..][..n_scores].copy_from_slice(&self.best_constants());
        }
        start
    }

    /// Sets a model's parameters from a point.
    #[expect(clippy::cast_possible_truncation, reason = "a model's parameters are f32")]
    pub(crate) fn write_to(&self, point: &[f64], model: &mut LinearModel) {
        let n_scores = self.features.n_scores();
        let (weights, intercept, table) = cut(point, self.features.n_dense, n_scores);
        let blocks = &mut model.parameters_mut().0;
        for (block, values) in [(linear::WEIGHTS, weights), (linear::INTERCEPT, intercept)] {
            let to = blocks[block].values.iter_mut();
            to.zip(values).for_each(|(to, value)| *to = *value as f32);
        }
        let block = &mut blocks[self.block()].values;
        if self.l2 > 0.0 {
            block.fill(0.0);
        }
        for (place, values) in self.features.places.iter().zip(table.chunks_exact(n_scores)) {
            let to = block.row_mut(place.line as usize);
            to.into_iter().zip(values).for_each(|(to, value)| *to = *value as f32);
        }
    }

    /// The objective and its gradient, from the sum of losses at a point and its gradient.
    pub(crate) fn value(&self, loss: f64, point: &[f64], gradient: &mut [f64]) -> f64 {
        let (n_dense, n_scores) = (self.features.n_dense, self.features.n_scores());
        let (weights, intercept, table) = cut(point, n_dense, n_scores);
        let (of_dense, of_table) = gradient.split_at_mut((n_dense + 1) * n_scores);
        let (of_weights, of_intercept) = of_dense.split_at_mut(n_dense * n_scores);
        let n_rows = self.features.n_rows as f64;
        loss / n_rows
            + add_penalty(self.l2, weights, n_rows, of_weights)
            + add_penalty(0.0, intercept, n_rows, of_intercept)
            + add_penalty(self.l2, table, n_rows, of_table)
    }

    /// The point in the layout of all lines of the model, with zeros for lines that do not occur:
    /// the input of parts.
    pub(crate) fn spread(&self, point: &[f64]) -> Vec<f64> {
        let n_scores = self.features.n_scores();
        let (weights, intercept, table) = cut(point, self.features.n_dense, n_scores);
        let [of_weights, of_intercept, of_lines] = self.features.starts();
        let mut all = vec![0.0; self.features.n_parameters()];
        all[of_weights..][..weights.len()].copy_from_slice(weights);
        all[of_intercept..][..n_scores].copy_from_slice(intercept);
        for (place, values) in self.features.places.iter().zip(table.chunks_exact(n_scores)) {
            all[of_lines + place.line as usize * n_scores..][..n_scores].copy_from_slice(values);
        }
        all
    }

    /// Sets the gradient from the merged sums; returns the sum of losses.
    pub(crate) fn gather(&self, sums: &LinearSums, gradient: &mut [f64]) -> Result<f64> {
        let n_scores = self.features.n_scores();
        let (of_dense, of_table) = gradient.split_at_mut((self.features.n_dense + 1) * n_scores);
        if sums.n_rows != self.features.n_rows {
            return Err(Error::PartsDiffer { what: "numbers of rows" });
        }
        let places = &self.features.places;
        let fits = sums.dense.len() == of_dense.len()
            && sums.of_lines.len() == of_table.len()
            && sums.lines.iter().copied().eq(places.iter().map(|place| place.line));
        if !fits {
            return Err(Error::PartsDiffer { what: "features" });
        }
        of_dense.copy_from_slice(&sums.dense);
        of_table.copy_from_slice(&sums.of_lines);
        Ok(sums.loss)
    }

    /// The second derivative of the loss.
    pub(super) fn bend(&self) -> f64 {
        self.loss.curvature(&self.features.mean_targets())
    }

    /// The model's block with a line per category or sparse column.
    fn block(&self) -> usize {
        match self.features.lines {
            Lines::Categories(_) => linear::CATEGORIES,
            Lines::Columns(_) => linear::WEIGHTS,
        }
    }

    /// The best constant scores; zeros if they do not exist.
    fn best_constants(&self) -> Vec<f64> {
        let finite = |constants: &Vec<f64>| constants.iter().all(|constant| constant.is_finite());
        let constants = self.loss.best_constants(&self.features.mean_targets()).filter(finite);
        constants.unwrap_or_else(|| vec![0.0; self.features.n_scores()])
    }
}

/// Divides sums by the number of rows, and adds the gradient of l2/2·‖w‖², whose value is returned.
fn add_penalty(l2: f64, weights: &[f64], n_rows: f64, gradient: &mut [f64]) -> f64 {
    /// Weights that one thread works on at a time.
    const CHUNK: usize = 1 << 15;
    let of_chunk = |(weights, gradient): (&[f64], &mut [f64])| {
        let mut squares = 0.0;
        for (weight, gradient) in weights.iter().zip(gradient) {
            *gradient = *gradient / n_rows + l2 * weight;
            squares += weight * weight;
        }
        squares
    };
    let squares: f64 = if weights.len() <= CHUNK {
        of_chunk((weights, gradient))
    } else {
        let chunks = weights.par_chunks(CHUNK).zip(gradient.par_chunks_mut(CHUNK));
        chunks.map(of_chunk).collect::<Vec<f64>>().iter().sum()
    };
    0.5 * l2 * squares
}
