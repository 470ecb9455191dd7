//! About how an objective of a linear model bends: what L-BFGS starts from, instead of finding it out step by step.
//!
//! The Hessian of the mean loss is Σ_j h_j x_j x_j'/N, with x_j a row and a constant for the intercept, and h_j the loss's second
//! derivative. Here h is the same for all rows, and the sum is over as many of them as pay. So
//! M = h X'X/m + l2 is factored once. Features that differ in scale, or go together as pixels do, then cost no more steps than
//! others.

use super::Objective;
use crate::kernel::{Onto, factorise, product, solve};
use crate::link::Link;
use ndarray::{Array2, s};

/// The approximate Hessian, ready to divide by.
pub(crate) struct Curvature {
    n_dense: usize,
    n_scores: usize,
    /// The Cholesky factor of M for weights and intercept of a score, by rows.
    factor: Array2<f64>,
}

impl Curvature {
    /// Of objectives with no more dense features than it would pay for, and without categories: those of a field go together with
    /// the intercept, and what is known of each alone does not help.
    pub(crate) fn of(objective: &Objective) -> Option<Self> {
        const MOST_FEATURES: usize = 1024;
        /// Rows that are looked at, for each feature, at least.
        const ROWS_A_FEATURE: usize = 8;
        /// Products of two features that cost next to nothing.
        const LITTLE: usize = 4_000_000_000;
        /// Rows that are looked at together.
        const CHUNK: usize = 2048;
        let (n_dense, n_scores) = objective.model.weights().dim();
        if n_dense > MOST_FEATURES || objective.rows.n_fields() > 0 {
            return None;
        }
        let bend = match objective.loss.link() {
            Link::Logit => {
                let p = 1.0 / objective.targets.ncols().max(2) as f64;
                p * (1.0 - p)
            }
            _ => 2.0,
        };
        // All rows if that is little work, so that their order is nothing; else some, evenly spread.
        let enough = (ROWS_A_FEATURE * (n_dense + 1)).max(LITTLE / (n_dense + 1).pow(2));
        let every = objective.members.len().div_ceil(enough);
        let members: Vec<u32> = objective.members.iter().copied().step_by(every).collect();
        let share = bend / members.len() as f64;
        let mut matrix = Array2::<f64>::zeros((n_dense + 1, n_dense + 1));
        let mut buffer = objective.rows.buffer(CHUNK);
        let mut with_constant = Array2::<f32>::ones((CHUNK, n_dense + 1));
        let mut gram = Array2::<f32>::zeros(matrix.dim());
        for members in members.chunks(CHUNK) {
            let batch = objective.rows.gather(members, &mut buffer);
            let mut with_constant = with_constant.slice_mut(s![..members.len(), ..]);
            with_constant.slice_mut(s![.., ..n_dense]).assign(&batch.dense);
            product(with_constant.t(), with_constant.view(), Onto::Overwrite, gram.view_mut());
            matrix.zip_mut_with(&gram, |sum, &value| *sum += share * f64::from(value));
        }
        // Features that are nothing but others' sums leave a zero, or what rounding makes of it, to divide by.
        let ridge = 1e-6 * matrix.diag().sum() / (n_dense + 1) as f64 + f64::MIN_POSITIVE;
        for (place, value) in matrix.diag_mut().iter_mut().enumerate() {
            *value += ridge + if place < n_dense { objective.l2 } else { 0.0 };
        }
        factorise(&mut matrix, ridge);
        Some(Self { n_dense, n_scores, factor: matrix })
    }

    /// M⁻¹ times a vector that is laid out as the parameters are.
    pub(crate) fn divide(&self, vector: &mut [f64]) {
        let (n_dense, n_scores) = (self.n_dense, self.n_scores);
        let mut of_score = vec![0.0; n_dense + 1];
        for score in 0..n_scores {
            let places = || (score..(n_dense + 1) * n_scores).step_by(n_scores);
            of_score.iter_mut().zip(places()).for_each(|(value, place)| *value = vector[place]);
            solve(&self.factor, &mut of_score);
            of_score.iter().zip(places()).for_each(|(value, place)| vector[place] = *value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::LossName;
    use crate::model::{LinearModel, Model};
    use crate::rows::Rows;

    /// The squared loss bends the same everywhere, and with all rows looked at M is its Hessian: one step of Newton's finds the optimum.
    #[test]
    fn divides_by_the_hessian() {
        let dense =
            Array2::from_shape_fn((30, 4), |(row, column)| ((row * 5 + column * 3) as f32 * 0.7).sin());
        let rows = Rows::dense(dense).unwrap();
        for (n_classes, name) in [(2, LossName::Squared), (3, LossName::Squared)] {
            let model = LinearModel::for_rows(&rows, n_classes).unwrap();
            let targets =
                Array2::from_shape_fn((30, model.n_scores()), |(row, c)| ((row + 7 * c) as f32).cos());
            let objective = Objective {
                model: &model,
                rows: &rows,
                members: (0..30).collect(),
                targets: targets.view(),
                loss: name.training().unwrap(),
                l2: 0.1,
            };
            let curvature = Curvature::of(&objective).unwrap();
            let mut point = objective.start();
            let mut gradient = vec![0.0; point.len()];
            objective.value(&point, &mut gradient);
            curvature.divide(&mut gradient);
            point.iter_mut().zip(&gradient).for_each(|(value, step)| *value -= step);
            objective.value(&point, &mut gradient);
            assert!(gradient.iter().all(|slope| slope.abs() < 1e-5), "{n_classes}: {gradient:?}");
        }
    }
}
