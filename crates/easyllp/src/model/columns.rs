//! Many linear models as the columns of one matrix.

use super::linear::{INTERCEPT, WEIGHTS};
use super::{LinearModel, Model};
use crate::error::{Result, check_length};
use crate::kernel::{GROUP, NonZeros, Onto, product};
use crate::rows::{DenseRows, Rows};
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis, s};
use rayon::prelude::*;
use std::ops::Range;

/// Rows scored at a time by one thread.
const CHUNK: usize = 256;

/// T linear models of two classes over the same D dense features, scored by one matrix product.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearColumns {
    /// D + 1 lines, the last with the intercepts; one column per model.
    values: Array2<f32>,
    /// One per model.
    ended: Vec<bool>,
}

impl LinearColumns {
    /// Creates models of zeros.
    pub(crate) fn zeros(n_dense: usize, n_models: usize) -> Self {
        Self { values: Array2::zeros((n_dense + 1, n_models)), ended: vec![false; n_models] }
    }

    /// The number of models, T.
    pub fn n_models(&self) -> usize {
        self.values.ncols()
    }

    /// The weights: D × T.
    pub fn weights(&self) -> ArrayView2<'_, f32> {
        self.values.slice(s![..self.values.nrows() - 1, ..])
    }

    /// The intercepts, one per model.
    pub fn intercepts(&self) -> ArrayView1<'_, f32> {
        self.values.row(self.values.nrows() - 1)
    }

    /// Whether a model has diverged: it keeps the weights of its last good epoch.
    ///
    /// # Panics
    ///
    /// If there is no such model.
    pub fn has_ended(&self, place: usize) -> bool {
        self.ended[place]
    }

    /// One of the models.
    pub fn model(&self, place: usize) -> Result<LinearModel> {
        let mut model = LinearModel::new(self.values.nrows() - 1, &[], 2)?;
        self.write_to(place, &mut model);
        Ok(model)
    }

    /// Scores of all rows, in their order: N × T.
    pub fn scores(&self, rows: &Rows) -> Result<Array2<f32>> {
        let rows = self.check(rows)?;
        if let Some(nonzeros) = rows.nonzeros() {
            return Ok(self.sparse_scores(nonzeros, rows.n_rows(), |row| row, 0..self.n_models()));
        }
        let mut scores = Array2::zeros((rows.n_rows(), self.n_models()));
        scores.axis_chunks_iter_mut(Axis(0), CHUNK).into_par_iter().enumerate().for_each(
            |(chunk, scores)| {
                let start = chunk * CHUNK;
                let batch = rows.batch(start..start + scores.nrows());
                self.score(batch.dense, 0..self.n_models(), scores);
            },
        );
        Ok(scores)
    }

    /// Scores of some rows by some models, in the given order: a line per row, a column per model.
    ///
    /// # Panics
    ///
    /// If there is no such row or no such model.
    pub fn scores_of(&self, rows: &Rows, members: &[u32], models: Range<usize>) -> Result<Array2<f32>> {
        let rows = self.check(rows)?;
        if let Some(nonzeros) = rows.nonzeros() {
            let row = |place: usize| members[place] as usize;
            return Ok(self.sparse_scores(nonzeros, members.len(), row, models));
        }
        let mut scores = Array2::zeros((members.len(), models.len()));
        let chunks = scores.axis_chunks_iter_mut(Axis(0), CHUNK).into_par_iter();
        chunks.zip(members.par_chunks(CHUNK)).for_each_init(
            || Array2::zeros((CHUNK, rows.n_dense())),
            |features, (scores, members)| {
                let mut features = features.slice_mut(s![..members.len(), ..]);
                rows.gather_dense(members, features.view_mut());
                self.score(features.view(), models.clone(), scores);
            },
        );
        Ok(scores)
    }

    fn check<'r>(&self, rows: &'r Rows) -> Result<DenseRows<'r>> {
        check_length("dense features", self.values.nrows() - 1, rows.n_dense())?;
        check_length("categorical fields", 0, rows.n_fields())?;
        rows.dense_only("models in columns")
    }

    fn score(&self, features: ArrayView2<f32>, models: Range<usize>, mut scores: ArrayViewMut2<f32>) {
        scores.assign(&self.intercepts().slice(s![models.clone()]));
        product(features, self.weights().slice(s![.., models]), Onto::Add, scores);
    }

    /// Scores of this number of sparse rows; `row` gives their indices.
    fn sparse_scores(
        &self,
        nonzeros: &NonZeros,
        n_rows: usize,
        row: impl Fn(usize) -> usize + Sync,
        models: Range<usize>,
    ) -> Array2<f32> {
        // Columns to spare make whole vectors.
        let (n_models, width) = (models.len(), models.len().max(1).next_multiple_of(GROUP));
        let mut values = Array2::zeros((self.values.nrows(), width));
        values.slice_mut(s![.., ..n_models]).assign(&self.values.slice(s![.., models]));
        let values = values.as_slice().expect("lines of a matrix by rows");
        let (weights, intercepts) = values.split_at(values.len() - width);
        let mut scores = vec![0.0; n_rows * width];
        scores.par_chunks_mut(CHUNK * width).enumerate().for_each(|(chunk, scores)| {
            scores.chunks_exact_mut(width).for_each(|line| line.copy_from_slice(intercepts));
            let places = chunk * CHUNK..chunk * CHUNK + scores.len() / width;
            nonzeros.times(places.map(&row), weights, width, Onto::Add, scores);
        });
        let scores = Array2::from_shape_vec((n_rows, width), scores).expect("lines are whole");
        scores.slice_move(s![.., ..n_models])
    }

    /// All parameters: weights, and intercepts in the last line.
    pub(crate) fn values_mut(&mut self) -> &mut Array2<f32> {
        &mut self.values
    }

    /// Which models have diverged.
    pub(crate) fn ended_mut(&mut self) -> &mut [bool] {
        &mut self.ended
    }

    /// Stores a model at this index.
    pub(crate) fn write_to(&self, place: usize, model: &mut LinearModel) {
        let column = self.values.slice(s![.., place..=place]);
        let (weights, intercept) = column.split_at(Axis(0), column.nrows() - 1);
        let blocks = &mut model.parameters_mut().0;
        blocks[WEIGHTS].values.assign(&weights);
        blocks[INTERCEPT].values.assign(&intercept);
    }
}
