//! Linear models: scores = x·W + b, plus a weight for each category of a row.

use super::fields::Fields;
use super::{
    Block, Gradient, MOST_EMBEDDINGS, MOST_WEIGHTS, Model, Parameters, Pass, ROWS_AT_ONCE, Updates,
    check_size,
};
use crate::classes::{check_classes, n_columns};
use crate::error::{Result, check_length};
use crate::kernel::{Onto, product};
use crate::rows::{Csr, RowBatch, Rows};
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis};
use rayon::prelude::*;

pub(crate) const WEIGHTS: usize = 0;
pub(crate) const INTERCEPT: usize = 1;
pub(crate) const CATEGORIES: usize = 2;

/// Scores that are linear in the dense features, with one weight per category.
///
/// ```
/// use easyllp::{Rows, model::{LinearModel, Model, Scorer}};
/// use ndarray::array;
///
/// let rows = Rows::dense(array![[1.0_f32, 2.0], [0.0, 1.0]])?;
/// let mut model = LinearModel::for_rows(&rows, 2)?;
/// model.parameters_mut().blocks_mut()[0].set(array![[0.5], [-1.0]].view())?;
/// assert_eq!(model.scores(&rows)?, array![[-1.5], [-1.0]]);
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LinearModel {
    parameters: Parameters,
    fields: Fields,
}

impl LinearModel {
    /// Creates a model of zeros for rows of this shape.
    pub fn for_rows(rows: &Rows, n_classes: usize) -> Result<Self> {
        Self::new(rows.n_dense(), rows.cardinalities(), n_classes)
    }

    /// Creates a model of zeros for `n_dense` features and fields with these cardinalities.
    pub fn new(n_dense: usize, cardinalities: &[u32], n_classes: usize) -> Result<Self> {
        check_classes(n_classes)?;
        let n_scores = n_columns(n_classes);
        let fields = Fields::new(cardinalities)?;
        check_size("number of dense weights", n_dense, n_scores, MOST_WEIGHTS)?;
        check_size("number of category weights", fields.n_lines(), n_scores, MOST_EMBEDDINGS)?;
        let block = |name, n_lines, updates, decays| {
            Block::new(name, Array2::zeros((n_lines, n_scores)), updates, decays)
        };
        let parameters = Parameters::new(vec![
            block("weights", n_dense, Updates::Dense, true),
            block("intercept", 1, Updates::Dense, false),
            block("categories", fields.n_lines(), Updates::Touched, true),
        ]);
        Ok(Self { parameters, fields })
    }

    /// The weights of the dense features: D × scores.
    pub fn weights(&self) -> ArrayView2<'_, f32> {
        self.parameters.0[WEIGHTS].values.view()
    }

    /// The intercept: 1 × scores.
    pub fn intercept(&self) -> ArrayView2<'_, f32> {
        self.parameters.0[INTERCEPT].values.view()
    }

    /// The weights of one field's categories: its cardinality × scores.
    pub fn categories(&self, field: usize) -> ArrayView2<'_, f32> {
        self.parameters.0[CATEGORIES].values.slice(ndarray::s![self.fields.range(field), ..])
    }

    /// The number of categories of each field.
    pub(crate) fn cardinalities(&self) -> &[u32] {
        &self.fields.cardinalities
    }

    /// The parameters as one vector, block after block.
    pub(crate) fn as_vector(&self) -> Vec<f64> {
        self.parameters.0.iter().flat_map(|block| block.values.iter().copied().map(f64::from)).collect()
    }

    /// Sets the parameters from one vector, block after block.
    #[expect(clippy::cast_possible_truncation, reason = "a model's parameters are f32")]
    pub(crate) fn set_parameters(&mut self, point: &[f64]) {
        let parameters = self.parameters.0.iter_mut().flat_map(|block| block.values.iter_mut());
        parameters.zip(point).for_each(|(parameter, value)| *parameter = *value as f32);
    }

    /// The lines of the categories' block that a row uses.
    pub(crate) fn lines<'b>(&'b self, ids: ArrayView1<'b, u32>) -> impl Iterator<Item = u32> + 'b {
        self.fields.lines(ids)
    }
}

impl Model for LinearModel {
    type Tape = ();

    fn n_scores(&self) -> usize {
        self.intercept().ncols()
    }

    fn check(&self, rows: &Rows) -> Result<()> {
        check_length("dense features", self.weights().nrows(), rows.n_dense())?;
        self.fields.check(rows)
    }

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.parameters
    }

    /// Rows with few scores are finished before another thread wakes up.
    fn rows_at_once(&self) -> usize {
        /// The minimum number of multiplications to use another thread for.
        const ENOUGH: usize = 1 << 19;
        (ENOUGH / (self.weights().len() + self.fields.cardinalities.len()).max(1)).max(ROWS_AT_ONCE)
    }

    fn forward(&self, rows: &RowBatch, _: Pass, (): &mut (), mut scores: ArrayViewMut2<f32>) {
        scores.assign(&self.intercept());
        product(rows.dense, self.weights(), Onto::Add, scores.view_mut());
        if !self.fields.is_empty() {
            let table = &self.parameters.0[CATEGORIES].values;
            for (mut score, ids) in scores.rows_mut().into_iter().zip(rows.categories.rows()) {
                for line in self.lines(ids) {
                    score += &table.row(line as usize);
                }
            }
        }
    }

    fn backward(&self, rows: &RowBatch, (): &mut (), dscores: ArrayView2<f32>, gradient: &mut Gradient) {
        product(rows.dense.t(), dscores, Onto::Overwrite, gradient.dense_mut(WEIGHTS).view_mut());
        let mut intercept = gradient.dense_mut(INTERCEPT).row_mut(0);
        intercept.fill(0.0);
        for dscore in dscores.rows() {
            intercept += &dscore;
        }
        if !self.fields.is_empty() {
            let touched = gradient.touched_mut(CATEGORIES);
            for (dscore, ids) in dscores.rows().into_iter().zip(rows.categories.rows()) {
                let dscore = dscore.to_slice().expect("lines of derivatives are contiguous");
                self.lines(ids).for_each(|line| touched.add(line, dscore));
            }
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "scores are f32")]
    fn sparse_scores(&self, rows: &Csr) -> Result<Array2<f32>> {
        /// Rows scored at a time by one thread.
        const CHUNK: usize = 1024;
        check_length("dense features", self.weights().nrows(), rows.n_columns())?;
        self.fields.check_none()?;
        let (weights, n_scores) = (self.weights(), self.n_scores());
        let weights = weights.as_slice().expect("lines of a block are contiguous");
        let intercept: Vec<f64> = self.intercept().iter().copied().map(f64::from).collect();
        let mut scores = Array2::zeros((rows.n_rows(), n_scores));
        let chunks = scores.axis_chunks_iter_mut(Axis(0), CHUNK).into_par_iter().enumerate();
        chunks.for_each_init(
            || vec![0.0; n_scores],
            |sums, (chunk, mut scores)| {
                for (place, mut scores) in scores.rows_mut().into_iter().enumerate() {
                    sums.copy_from_slice(&intercept);
                    let (columns, values) = rows.row(chunk * CHUNK + place);
                    for (&column, &value) in columns.iter().zip(values) {
                        let of_column = &weights[column as usize * n_scores..][..n_scores];
                        for (sum, &weight) in sums.iter_mut().zip(of_column) {
                            *sum += f64::from(value) * f64::from(weight);
                        }
                    }
                    scores.iter_mut().zip(&*sums).for_each(|(score, sum)| *score = *sum as f32);
                }
            },
        );
        Ok(scores)
    }

    fn as_linear_mut(&mut self) -> Option<&mut LinearModel> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::loss::{Softmax, TrainingLoss};
    use crate::model::Scorer;
    use ndarray::array;

    /// Two dense features and two fields, three classes, weights that are no round numbers.
    fn example() -> (Rows<'static>, LinearModel) {
        let dense = array![[0.5_f32, -1.0], [2.0, 0.25], [-0.75, 1.5], [0.1, 0.2]];
        let rows = Rows::new(dense, array![[0, 2], [1, 0], [1, 2], [0, 1]], vec![2, 3]).unwrap();
        let mut model = LinearModel::for_rows(&rows, 3).unwrap();
        let mut next = 0.0_f32;
        for block in &mut model.parameters.0 {
            block.values.mapv_inplace(|_| {
                next += 0.7;
                next.sin()
            });
        }
        (rows, model)
    }

    #[test]
    fn scores_are_weights_intercept_and_categories() {
        let (rows, model) = example();
        let scores = model.scores(&rows).unwrap();
        let expected = 0.5 * model.weights()[[0, 1]] - model.weights()[[1, 1]]
            + model.intercept()[[0, 1]]
            + model.categories(0)[[0, 1]]
            + model.categories(1)[[2, 1]];
        assert!((scores[[0, 1]] - expected).abs() < 1e-6);
    }

    #[test]
    fn the_gradient_equals_finite_differences() {
        let (rows, model) = example();
        let targets = array![[0.2_f32, 0.5, 0.3], [2.0, -1.5, 0.5], [1.0, 0.0, 0.0], [-0.5, 0.75, 0.75]];
        let batch = rows.as_dense().unwrap().batch(0..4);
        let loss_and_slopes = |model: &LinearModel| {
            let mut scores = Array2::zeros((4, 3));
            model.forward(&batch, Pass::Score, &mut (), scores.view_mut());
            let mut dscores = Array2::zeros((4, 3));
            let loss = Softmax.corrected_batch(scores.view(), targets.view(), dscores.view_mut());
            (loss, dscores)
        };
        let mut gradient = model.parameters.zero_gradient();
        model.backward(&batch, &mut (), loss_and_slopes(&model).1.view(), &mut gradient);
        for (block, gradient) in gradient.blocks.iter().enumerate() {
            let gradient = gradient.to_matrix(model.parameters.0[block].values.dim());
            for (place, &slope) in gradient.indexed_iter() {
                let shifted = |step: f32| {
                    let mut model = model.clone();
                    model.parameters.0[block].values[place] += step;
                    loss_and_slopes(&model).0
                };
                let difference = (shifted(0.01) - shifted(-0.01)) / 0.02;
                assert!((difference - f64::from(slope)).abs() < 2e-4, "block {block} at {place:?}");
            }
        }
    }

    #[test]
    fn refuses_rows_of_another_form() {
        let (_, model) = example();
        let rows = Rows::dense(array![[1.0_f32, 2.0]]).unwrap();
        assert_eq!(
            model.scores(&rows).unwrap_err(),
            Error::Shape { what: "categorical fields", expected: 2, got: 0 }
        );
        assert!(LinearModel::new(3, &[u32::MAX, 2], 2).is_err());
        assert!(LinearModel::new(3, &[], 1).is_err());
    }
}
