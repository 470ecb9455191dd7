//! What L-BFGS brings down: the mean corrected loss of a linear model plus l2/2·‖w‖², as a function of one vector.
//!
//! In `f64` throughout, so that the optimum is found to more digits than the model's `f32` weights can hold. Rows are
//! worked on in chunks of a fixed size, whose contributions are added in order: the bytes of the result do not depend
//! on the number of threads.

use super::{LinearModel, Model};
use crate::kernel::{Onto, add_dots, add_weighed_lines, product};
use crate::loss::TrainingLoss;
use crate::rows::Rows;
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use rayon::prelude::*;

/// Rows in a chunk.
const CHUNK: usize = 512;
/// Chunks that are worked on before their gradients are added up: what bounds the memory of a large table.
const CHUNKS_AT_ONCE: usize = 16;

/// The mean corrected loss of the members under a linear model whose parameters are one vector, block after block.
pub(crate) struct Objective<'o, 'r> {
    pub(crate) model: &'o LinearModel,
    pub(crate) rows: &'o Rows<'r>,
    pub(crate) members: Vec<u32>,
    pub(crate) targets: ArrayView2<'o, f32>,
    pub(crate) loss: &'o dyn TrainingLoss,
    pub(crate) l2: f64,
}

impl Objective<'_, '_> {
    /// The model's parameters as they are.
    pub(crate) fn start(&self) -> Vec<f64> {
        self.model.as_vector()
    }

    /// The objective at a point, and its gradient.
    pub(crate) fn value(&self, point: &[f64], gradient: &mut [f64]) -> f64 {
        gradient.fill(0.0);
        let mut sum = 0.0;
        for members in self.members.chunks(CHUNK * CHUNKS_AT_ONCE) {
            let parts: Vec<(f64, Vec<f64>)> =
                members.par_chunks(CHUNK).map(|members| self.chunk(members, point)).collect();
            for (loss, part) in parts {
                sum += loss;
                gradient.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
            }
        }
        let n_rows = self.members.len() as f64;
        let mut value = sum / n_rows;
        let mut start = 0;
        for block in &self.model.parameters().0 {
            let end = start + block.values.len();
            let l2 = if block.decays { self.l2 } else { 0.0 };
            for (gradient, weight) in gradient[start..end].iter_mut().zip(&point[start..end]) {
                *gradient = *gradient / n_rows + l2 * weight;
                value += 0.5 * l2 * weight * weight;
            }
            start = end;
        }
        value
    }

    /// The sum of the losses of a few rows, and its gradient.
    fn chunk(&self, members: &[u32], point: &[f64]) -> (f64, Vec<f64>) {
        match self.model.n_scores() {
            1 => self.chunk_of_one_score(members, point),
            _ => self.chunk_by_products(members, point),
        }
    }

    /// The same of any model.
    fn chunk_by_products(&self, members: &[u32], point: &[f64]) -> (f64, Vec<f64>) {
        let (n_dense, n_scores) = self.model.weights().dim();
        let (weights, intercept, table) = cut(point, n_dense, n_scores);
        let mut buffer = self.rows.buffer(members.len());
        let batch = self.rows.gather(members, &mut buffer);
        let dense = batch.dense.mapv(f64::from);
        let matrix = |values| ArrayView2::from_shape((n_dense, n_scores), values).expect("cut to this shape");

        let mut scores = Array2::from_shape_fn((members.len(), n_scores), |(_, column)| intercept[column]);
        product(dense.view(), matrix(weights), Onto::Add, scores.view_mut());
        for (mut scores, ids) in scores.rows_mut().into_iter().zip(batch.categories.rows()) {
            for line in self.model.lines(ids) {
                let of_line = &table[line as usize * n_scores..][..n_scores];
                scores.iter_mut().zip(of_line).for_each(|(score, weight)| *score += weight);
            }
        }

        let mut sum = 0.0;
        let mut dscores = Array2::zeros(scores.dim());
        let mut targets = vec![0.0; n_scores];
        for ((&row, scores), mut dscores) in members.iter().zip(scores.rows()).zip(dscores.rows_mut()) {
            for (target, stored) in targets.iter_mut().zip(self.targets.row(row as usize)) {
                *target = f64::from(*stored);
            }
            let lines = "lines of a matrix by rows are contiguous";
            sum += self.loss.corrected(
                scores.to_slice().expect(lines),
                &targets,
                dscores.as_slice_mut().expect(lines),
            );
        }

        let mut gradient = vec![0.0; point.len()];
        let (weights, rest) = gradient.split_at_mut(n_dense * n_scores);
        let (intercept, table) = rest.split_at_mut(n_scores);
        let matrix = ArrayViewMut2::from_shape((n_dense, n_scores), weights).expect("cut to this shape");
        product(dense.t(), dscores.view(), Onto::Overwrite, matrix);
        for (dscores, ids) in dscores.rows().into_iter().zip(batch.categories.rows()) {
            intercept.iter_mut().zip(dscores).for_each(|(sum, dscore)| *sum += dscore);
            for line in self.model.lines(ids) {
                let of_line = &mut table[line as usize * n_scores..][..n_scores];
                of_line.iter_mut().zip(dscores).for_each(|(sum, dscore)| *sum += dscore);
            }
        }
        (sum, gradient)
    }

    /// The same of a model with one score, which needs no matrix product: rows are read once, and stay in the cache until they are added
    /// to the gradient.
    fn chunk_of_one_score(&self, members: &[u32], point: &[f64]) -> (f64, Vec<f64>) {
        /// Rows that are in the cache at a time.
        const STRETCH: usize = 32;
        let n_dense = self.rows.n_dense();
        let (weights, intercept, table) = cut(point, n_dense, 1);
        let mut buffer = self.rows.buffer(STRETCH);
        let (mut scores, mut slopes) = ([0.0; STRETCH], [0.0; STRETCH]);
        let (mut sum, mut gradient) = (0.0, vec![0.0; point.len()]);
        for members in members.chunks(STRETCH) {
            let batch = self.rows.at(members, &mut buffer);
            let dense = batch.dense.to_slice().expect("lines of a stretch are contiguous");
            let (scores, slopes) = (&mut scores[..members.len()], &mut slopes[..members.len()]);
            scores.fill(intercept[0]);
            add_dots(dense, weights, scores);
            for (score, ids) in scores.iter_mut().zip(batch.categories.rows()) {
                *score += self.model.lines(ids).map(|line| table[line as usize]).sum::<f64>();
            }
            for ((&row, score), slope) in members.iter().zip(&*scores).zip(&mut *slopes) {
                let target = f64::from(self.targets[[row as usize, 0]]);
                sum += self.loss.corrected(&[*score], &[target], std::slice::from_mut(slope));
            }
            let (of_weights, rest) = gradient.split_at_mut(n_dense);
            let (of_intercept, of_table) = rest.split_at_mut(1);
            add_weighed_lines(dense, slopes, of_weights);
            for (slope, ids) in slopes.iter().zip(batch.categories.rows()) {
                of_intercept[0] += slope;
                for line in self.model.lines(ids) {
                    of_table[line as usize] += slope;
                }
            }
        }
        (sum, gradient)
    }
}

/// Weights, intercept and categories, as they lie one after the other.
fn cut(point: &[f64], n_dense: usize, n_scores: usize) -> (&[f64], &[f64], &[f64]) {
    let (weights, rest) = point.split_at(n_dense * n_scores);
    let (intercept, table) = rest.split_at(n_scores);
    (weights, intercept, table)
}

impl LinearModel {
    /// The parameters as one vector, block after block.
    pub(crate) fn as_vector(&self) -> Vec<f64> {
        self.parameters().0.iter().flat_map(|block| block.values.iter().copied().map(f64::from)).collect()
    }

    /// Takes the parameters from one vector, block after block.
    #[expect(clippy::cast_possible_truncation, reason = "a model's parameters are f32")]
    pub(crate) fn set_parameters(&mut self, point: &[f64]) {
        let parameters = self.parameters_mut().0.iter_mut().flat_map(|block| block.values.iter_mut());
        parameters.zip(point).for_each(|(parameter, value)| *parameter = *value as f32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::LossName;
    use ndarray::array;

    /// Products of matrices are the oracle of sums row by row.
    #[test]
    fn one_score_needs_no_products() {
        let dense =
            Array2::from_shape_fn((100, 37), |(row, column)| ((row * 37 + column) as f32 * 0.3).sin());
        let ids = Array2::from_shape_fn((100, 2), |(row, field)| u32::from((row + field) % 3 == 0));
        let rows = Rows::new(dense, ids, vec![2, 2]).unwrap();
        let targets = Array2::from_shape_fn((100, 1), |(row, _)| (row as f32).cos() * 3.0);
        let model = LinearModel::for_rows(&rows, 2).unwrap();
        let point: Vec<f64> = (0..model.parameters().len()).map(|i| (0.7 * i as f64).sin()).collect();
        let loss = LossName::Logistic.training().unwrap();
        let members: Vec<u32> = (0..100).rev().filter(|row| row % 7 != 0).collect();
        let objective = Objective {
            model: &model,
            rows: &rows,
            members: members.clone(),
            targets: targets.view(),
            loss,
            l2: 0.3,
        };
        let (value, gradient) = objective.chunk_of_one_score(&members, &point);
        let (expected, of_products) = objective.chunk_by_products(&members, &point);
        assert!((value - expected).abs() < 1e-9, "{value} {expected}");
        for (slope, expected) in gradient.iter().zip(&of_products) {
            assert!((slope - expected).abs() < 1e-9, "{slope} {expected}");
        }
    }

    #[test]
    fn the_gradient_equals_finite_differences() {
        let rows =
            Rows::new(array![[0.5_f32, -1.0], [2.0, 0.25], [-0.75, 1.5]], array![[0], [1], [1]], vec![2])
                .unwrap();
        let targets = array![[0.2_f32, 0.5, 0.3], [2.0, -1.5, 0.5], [1.0, 0.0, 0.0]];
        let model = LinearModel::for_rows(&rows, 3).unwrap();
        let point: Vec<f64> = (0..model.parameters().len()).map(|i| (0.7 * i as f64).sin()).collect();
        for name in [LossName::Softmax, LossName::Squared] {
            let loss = name.training().unwrap();
            let objective = Objective {
                model: &model,
                rows: &rows,
                members: vec![0, 2, 1],
                targets: targets.view(),
                loss,
                l2: 0.3,
            };
            let mut gradient = vec![0.0; point.len()];
            objective.value(&point, &mut gradient);
            for place in 0..point.len() {
                let shifted = |step: f64| {
                    let mut point = point.clone();
                    point[place] += step;
                    objective.value(&point, &mut vec![0.0; point.len()])
                };
                let difference = (shifted(1e-5) - shifted(-1e-5)) / 2e-5;
                assert!((difference - gradient[place]).abs() < 1e-8, "{name:?} at {place}");
            }
        }
    }
}
