//! Parts of the training rows of a linear model.

use super::{FeatureSums, GramSample, GramSums, LinearSums, Objective};
use crate::error::{Result, check_length};
use crate::loss::TrainingLoss;
use crate::rows::Rows;
use ndarray::ArrayView2;

/// Rows with targets and a loss: computes the sums that training a linear model needs. Sums of
/// parts on other machines [merge](LinearSums::merge).
pub trait LinearParts {
    /// The sums of features and targets.
    fn features(&mut self) -> Result<FeatureSums>;
    /// The products of features, X'X.
    fn gram(&mut self, sample: &GramSample) -> Result<GramSums>;
    /// The sum of losses and its gradient, at the parameters of a model: block after block, each
    /// line by line, as in [`Parameters::blocks`](crate::model::Parameters::blocks).
    fn sums(&mut self, point: &[f64]) -> Result<LinearSums>;
}

/// Some of the rows. See [`fit_parts`](crate::train::fit_parts).
pub struct LinearPart<'r> {
    objective: Objective<'r>,
    point: Vec<f64>,
    gradient: Vec<f64>,
}

impl<'r> LinearPart<'r> {
    /// Creates a part from rows and a target for each score: one for two classes, else one per
    /// class.
    pub fn new(rows: &'r Rows, targets: ArrayView2<f32>, loss: &'r dyn TrainingLoss) -> Result<Self> {
        check_length("targets", rows.n_rows(), targets.nrows())?;
        let members = (0..u32::try_from(rows.n_rows()).expect("rows are counted by u32")).collect();
        let objective = Objective::new(rows, members, targets, loss);
        let n_parameters = {
            let features = objective.features();
            (features.n_dense + 1 + features.places.len()) * features.n_scores()
        };
        Ok(Self { objective, point: vec![0.0; n_parameters], gradient: vec![0.0; n_parameters] })
    }
}

impl LinearParts for LinearPart<'_> {
    fn features(&mut self) -> Result<FeatureSums> {
        Ok(self.objective.features().clone())
    }

    fn gram(&mut self, sample: &GramSample) -> Result<GramSums> {
        Ok(self.objective.gram(sample))
    }

    fn sums(&mut self, point: &[f64]) -> Result<LinearSums> {
        let Self { objective, point: of_places, gradient } = self;
        let features = objective.features();
        check_length("parameters", features.n_parameters(), point.len())?;
        let (n_dense, n_scores, n_rows) = (features.n_dense, features.n_scores(), features.n_rows);
        let [of_weights, of_intercept, of_lines] = features.starts();
        let (dense, table) = of_places.split_at_mut((n_dense + 1) * n_scores);
        let (weights, intercept) = dense.split_at_mut(n_dense * n_scores);
        weights.copy_from_slice(&point[of_weights..][..n_dense * n_scores]);
        intercept.copy_from_slice(&point[of_intercept..][..n_scores]);
        for (place, values) in features.places.iter().zip(table.chunks_exact_mut(n_scores)) {
            values.copy_from_slice(&point[of_lines + place.line as usize * n_scores..][..n_scores]);
        }
        let lines = features.places.iter().map(|place| place.line).collect();
        let loss = objective.sums(of_places, gradient);
        let (dense, table) = gradient.split_at((n_dense + 1) * n_scores);
        Ok(LinearSums { n_rows, loss, dense: dense.to_vec(), lines, of_lines: table.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aim::Aim;
    use crate::bags::{Bags, Partition};
    use crate::correction::Targets;
    use crate::error::Error;
    use crate::loss::LossName;
    use crate::method::FixedTargets;
    use crate::model::LinearModel;
    use crate::optim::Lbfgs;
    use crate::rounding::Sum;
    use crate::rows::Csr;
    use crate::seed::{Stream, stream};
    use crate::train::{Optimizer, Trainer, fit_parts};
    use ndarray::Array2;
    use rand::RngExt;
    use rand::seq::SliceRandom;
    use std::ops::ControlFlow;

    const N_ROWS: usize = 300;
    const N_DENSE: usize = 7;

    /// Rows with these indices: numbers and categories, or a sparse matrix. Some categories and columns are in few rows, some in none.
    fn rows(indices: &[usize], is_sparse: bool) -> Rows<'static> {
        if is_sparse {
            let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
            for &row in indices {
                for column in
                    (0..40_u32).filter(|column| (row * row + 3 * *column as usize).is_multiple_of(11))
                {
                    columns.push(column);
                    values.push(((row + column as usize) as f32).sin());
                }
                starts.push(columns.len());
            }
            return Rows::sparse(Csr::new(45, starts, columns, values).unwrap());
        }
        let dense = Array2::from_shape_fn((indices.len(), N_DENSE), |(place, column)| {
            ((indices[place] * N_DENSE + column) as f32 * 0.3).sin()
        });
        let ids = Array2::from_shape_fn((indices.len(), 2), |(place, field)| {
            let id = indices[place] * indices[place] % if field == 0 { 5 } else { 83 };
            u32::try_from(id).unwrap()
        });
        Rows::new(dense, ids, vec![6, 90]).unwrap()
    }

    fn targets(indices: &[usize], n_scores: usize) -> Array2<f32> {
        Array2::from_shape_fn((indices.len(), n_scores), |(place, score)| {
            0.4 + ((indices[place] + 5 * score) as f32).cos()
        })
    }

    /// Parts of all rows, each merged into the first.
    struct Parts<'r>(Vec<LinearPart<'r>>);

    impl LinearParts for Parts<'_> {
        fn features(&mut self) -> Result<FeatureSums> {
            let mut all = self.0.iter_mut().map(LinearParts::features);
            let first = all.next().unwrap()?;
            all.try_fold(first, |mut sum, part| sum.merge(part?).map(|()| sum))
        }

        fn gram(&mut self, sample: &GramSample) -> Result<GramSums> {
            let mut all = self.0.iter_mut().map(|part| part.gram(sample));
            let first = all.next().unwrap()?;
            all.try_fold(first, |mut sum, part| sum.merge(&part?).map(|()| sum))
        }

        fn sums(&mut self, point: &[f64]) -> Result<LinearSums> {
            let mut all = self.0.iter_mut().map(|part| part.sums(point));
            let first = all.next().unwrap()?;
            all.try_fold(first, |mut sum, part| sum.merge(part?).map(|()| sum))
        }
    }

    /// All rows in random order, cut at random.
    fn cuts(seed: u64) -> Vec<Vec<usize>> {
        let mut rng = stream(seed, Stream::Shuffle);
        let mut indices: Vec<usize> = (0..N_ROWS).collect();
        indices.shuffle(&mut rng);
        let mut cuts = Vec::new();
        while !indices.is_empty() {
            cuts.push(indices.split_off(indices.len() - rng.random_range(1..=indices.len().min(90))));
        }
        cuts
    }

    /// The gradient of every parameter.
    fn gradient(sums: &LinearSums, n_scores: usize, n_lines: usize) -> Vec<f64> {
        let mut all = sums.dense.clone();
        all.resize(all.len() + n_lines * n_scores, 0.0);
        for (&line, values) in sums.lines.iter().zip(sums.of_lines.chunks_exact(n_scores)) {
            all[sums.dense.len() + line as usize * n_scores..][..n_scores].copy_from_slice(values);
        }
        all
    }

    #[test]
    fn parts_merge_to_the_whole_however_they_are_cut_and_ordered() {
        let all: Vec<usize> = (0..N_ROWS).collect();
        for (is_sparse, n_classes) in [(false, 2), (false, 3), (true, 2), (true, 3)] {
            let loss = LossName::cross_entropy(n_classes).training().unwrap();
            let n_scores = if n_classes == 2 { 1 } else { n_classes };
            let whole_rows = rows(&all, is_sparse);
            let mut whole = LinearPart::new(&whole_rows, targets(&all, n_scores).view(), loss).unwrap();
            let features = whole.features().unwrap();
            let n_lines = features.lines.n_lines();
            let point: Vec<f64> = (0..features.n_parameters()).map(|i| (0.7 * i as f64).sin()).collect();
            let sample = GramSample { every: 1, lines: vec![1, 4, 9] };
            let (gram, sums) = (whole.gram(&sample).unwrap(), whole.sums(&point).unwrap());

            // What each row comes to alone: the terms of all sums.
            let n_numbers = sums.dense.len() + n_lines * n_scores;
            let (mut loss_terms, mut terms) = (Sum::default(), vec![Sum::default(); n_numbers]);
            for row in 0..N_ROWS {
                let one = rows(&[row], is_sparse);
                let mut one = LinearPart::new(&one, targets(&[row], n_scores).view(), loss).unwrap();
                let one = one.sums(&point).unwrap();
                loss_terms.add(one.loss);
                let numbers = gradient(&one, n_scores, n_lines);
                terms.iter_mut().zip(numbers).for_each(|(sum, term)| sum.add(term));
            }
            // Scores, of which each term is made, are sums of up to a dozen products themselves.
            let share = 4.0 * (N_ROWS + 50) as f64 * f64::EPSILON;
            for seed in 0..5 {
                let cuts = cuts(seed);
                let of_parts: Vec<Rows> = cuts.iter().map(|indices| rows(indices, is_sparse)).collect();
                let part = |(rows, indices): (_, &Vec<usize>)| {
                    LinearPart::new(rows, targets(indices, n_scores).view(), loss).unwrap()
                };
                let mut parts = Parts(of_parts.iter().zip(&cuts).map(part).collect());

                let merged = parts.features().unwrap();
                let counts = |sums: &FeatureSums| -> Vec<(u32, u64)> {
                    sums.places.iter().map(|place| (place.line, place.count)).collect()
                };
                assert_eq!((merged.n_rows, counts(&merged)), (features.n_rows, counts(&features)));
                for (place, whole) in merged.places.iter().zip(&features.places) {
                    assert!((place.squares - whole.squares).abs() <= share * whole.squares);
                }
                for (score, sum) in merged.targets.iter().enumerate() {
                    let column = targets(&all, n_scores);
                    let terms: Sum = column.column(score).iter().copied().map(f64::from).collect();
                    assert!(terms.equals(*sum) && terms.equals(features.targets[score]));
                }

                let merged = parts.gram(&sample).unwrap();
                assert_eq!((merged.n_rows, merged.n_features), (gram.n_rows, gram.n_features));
                // Products are added up in `f32` within a part, and no feature is above 1.
                let rounding = 2.0 * (N_ROWS * N_ROWS) as f64 * f64::from(f32::EPSILON);
                for (product, whole) in merged.products.iter().zip(&gram.products) {
                    assert!((product - whole).abs() <= rounding, "{product} {whole}");
                }

                let merged = parts.sums(&point).unwrap();
                assert_eq!((merged.n_rows, &merged.lines), (sums.n_rows, &sums.lines));
                for one in [&merged, &sums] {
                    assert!(loss_terms.equals_within(share, one.loss), "{} {loss_terms:?}", one.loss);
                    for (terms, got) in terms.iter().zip(gradient(one, n_scores, n_lines)) {
                        assert!(terms.equals_within(share, got), "{got} {terms:?}");
                    }
                }
            }
        }
    }

    /// All rows in one bag.
    fn one_bag(n_classes: usize) -> Bags {
        let partition =
            Partition::new(N_ROWS, [(0..u32::try_from(N_ROWS).unwrap()).collect::<Vec<u32>>()]).unwrap();
        let labels: Vec<u32> = (0..N_ROWS).map(|row| (row % n_classes).try_into().unwrap()).collect();
        Bags::from_labels(partition, &labels, n_classes).unwrap()
    }

    #[test]
    fn a_model_of_parts_is_that_of_all_rows() {
        let all: Vec<usize> = (0..N_ROWS).collect();
        let settings = Lbfgs { l2: 0.05, ..Lbfgs::default() };
        for (is_sparse, n_classes) in [(false, 2), (false, 3), (true, 2)] {
            let loss = LossName::cross_entropy(n_classes).training().unwrap();
            let n_scores = if n_classes == 2 { 1 } else { n_classes };
            let whole_rows = rows(&all, is_sparse);
            let whole_targets = targets(&all, n_scores);
            let empty = || LinearModel::for_rows(&whole_rows, n_classes).unwrap();
            let mut whole = empty();
            let mut part = LinearPart::new(&whole_rows, whole_targets.view(), loss).unwrap();
            let watch = &mut |_| ControlFlow::Continue(());
            fit_parts(&settings, &mut whole, &mut part, loss, watch).unwrap();
            assert_ne!(whole, empty());
            // One part is the same arithmetic as training on the rows: to the last bit.
            let targets_of_rows = Targets::from_values(whole_targets.clone()).unwrap();
            let bags = one_bag(n_classes);
            let mut rule = FixedTargets::new(&bags, &targets_of_rows);
            let trainer = Trainer { optimizer: Optimizer::Lbfgs(settings.clone()), ..Trainer::default() };
            let mut on_rows = empty();
            trainer.fit(&mut on_rows, &whole_rows, Aim::Targets(&mut rule, loss)).unwrap();
            assert_eq!(on_rows, whole);
            for seed in 0..3 {
                let cuts = cuts(seed);
                let of_parts: Vec<Rows> = cuts.iter().map(|indices| rows(indices, is_sparse)).collect();
                let part = |(rows, indices): (_, &Vec<usize>)| {
                    LinearPart::new(rows, targets(indices, n_scores).view(), loss).unwrap()
                };
                let mut parts = Parts(of_parts.iter().zip(&cuts).map(part).collect());
                let mut model = empty();
                fit_parts(&settings, &mut model, &mut parts, loss, watch).unwrap();
                for (got, expected) in model.as_vector().iter().zip(whole.as_vector()) {
                    // Each is at most ten tolerances from the optimum, and rounded to `f32`.
                    let allowed = 20.0 * settings.tolerance + f64::from(f32::EPSILON) * expected.abs();
                    assert!((got - expected).abs() <= allowed, "{got} {expected}");
                }
            }
        }
    }

    /// Says less from its third evaluation on: a part is gone.
    struct Failing<'r>(LinearPart<'r>, usize);
    impl LinearParts for Failing<'_> {
        fn features(&mut self) -> Result<FeatureSums> {
            self.0.features()
        }
        fn gram(&mut self, sample: &GramSample) -> Result<GramSums> {
            self.0.gram(sample)
        }
        fn sums(&mut self, point: &[f64]) -> Result<LinearSums> {
            self.1 += 1;
            let mut sums = self.0.sums(point)?;
            sums.n_rows -= u64::from(self.1 > 2);
            Ok(sums)
        }
    }

    #[test]
    fn refuses_parts_of_other_data_and_passes_errors_on() {
        let loss = LossName::Logistic.training().unwrap();
        let (dense, sparse) = (rows(&[0, 1, 2], false), rows(&[0, 1, 2], true));
        let part = |rows| LinearPart::new(rows, targets(&[0, 1, 2], 1).view(), loss).unwrap();
        let (mut one, mut other) = (part(&dense), part(&sparse));
        assert!(one.features().unwrap().merge(other.features().unwrap()).is_err());
        assert!(one.sums(&[0.0]).is_err());
        assert!(LinearPart::new(&dense, targets(&[0, 1], 1).view(), loss).is_err());
        let zeros = |part: &mut LinearPart| vec![0.0; part.features().unwrap().n_parameters()];
        let (at, other_at) = (zeros(&mut one), zeros(&mut other));
        let mut sums = one.sums(&at).unwrap();
        assert!(sums.merge(other.sums(&other_at).unwrap()).is_err());
        let mut model = LinearModel::for_rows(&dense, 3).unwrap();
        let settings = Lbfgs::default();
        let watch = &mut |_| ControlFlow::Continue(());
        assert!(fit_parts(&settings, &mut model, &mut one, loss, watch).is_err());
        let mut model = LinearModel::for_rows(&dense, 2).unwrap();
        let failed = fit_parts(&settings, &mut model, &mut Failing(one, 0), loss, watch).unwrap_err();
        assert_eq!(failed, Error::PartsDiffer { what: "numbers of rows" });
        assert_eq!(model, LinearModel::for_rows(&dense, 2).unwrap());
    }
}
