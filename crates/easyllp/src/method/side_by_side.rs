//! Train one model on several tasks over the same bags: each task has its own counts, objective and
//! scores.
//!
//! For a linear model the tasks only share the passes over the rows; each gives the same result as
//! alone with the same batches. A network's tasks share all layers but the last.

use crate::aim::BagObjective;
use crate::bags::Bags;
use crate::error::{Error, Result};
use ndarray::{ArrayView2, ArrayViewMut2, s};
use std::ops::Range;

/// Objectives whose scores are columns of one matrix, in their order.
///
/// ```
/// use easyllp::method::{BagObjective, CountLikelihood, LabelGeneration, NonNegative, SideBySide};
/// use easyllp::{Bags, Noise, Partition};
///
/// // Of two bags we know how many rows bought, and how many viewed each of three brands.
/// let partition = Partition::new(4, [[0, 1], [2, 3]])?;
/// let bought = Bags::binary(partition.clone(), &[1.0, 2.0], Noise::None)?;
/// let brands = ndarray::array![[1.0, 1.0, 0.0], [0.0, 0.0, 2.0]];
/// let looked_at = Bags::multiclass(partition, brands, Noise::None)?;
/// let tasks = SideBySide::new(vec![
///     Box::new(CountLikelihood::new(&bought)),
///     Box::new(LabelGeneration::new(&looked_at, NonNegative::ZERO)),
/// ])?;
/// assert_eq!(tasks.n_scores(), 1 + 3);
/// # Ok::<(), easyllp::Error>(())
/// ```
pub struct SideBySide<'o> {
    tasks: Vec<Box<dyn BagObjective + 'o>>,
}

impl<'o> SideBySide<'o> {
    /// Requires at least one objective. All must have the same bags; counts may differ.
    pub fn new(tasks: Vec<Box<dyn BagObjective + 'o>>) -> Result<Self> {
        let first = tasks.first().ok_or(Error::NoBags)?;
        for (place, task) in tasks.iter().enumerate() {
            if task.bags().partition() != first.bags().partition() {
                return Err(Error::BagsDiffer { task: place });
            }
        }
        Ok(Self { tasks })
    }

    /// The score columns of each task.
    fn columns(&self) -> impl Iterator<Item = Range<usize>> {
        self.tasks.iter().scan(0, |end, task| {
            let start = *end;
            *end += task.n_scores();
            Some(start..*end)
        })
    }
}

impl BagObjective for SideBySide<'_> {
    fn bags(&self) -> &Bags {
        self.tasks[0].bags()
    }

    fn n_scores(&self) -> usize {
        self.tasks.iter().map(|task| task.n_scores()).sum()
    }

    fn start(&mut self) {
        self.tasks.iter_mut().for_each(|task| task.start());
    }

    fn least_bags(&self) -> usize {
        self.tasks.iter().map(|task| task.least_bags()).max().unwrap_or(1)
    }

    fn before_batch(&mut self, bags: &[u32]) {
        self.tasks.iter_mut().for_each(|task| task.before_batch(bags));
    }

    fn bag(&self, bag: usize, scores: ArrayView2<f32>, mut derivative: ArrayViewMut2<f32>) -> f64 {
        let mut loss = 0.0;
        for (task, columns) in self.tasks.iter().zip(self.columns()) {
            // Objectives are fast where rows follow each other.
            let scores = scores.slice(s![.., columns.clone()]).as_standard_layout().into_owned();
            let mut own = scores.clone();
            loss += task.bag(bag, scores.view(), own.view_mut());
            derivative.slice_mut(s![.., columns]).assign(&own);
        }
        loss
    }

    fn after_batch(&mut self, scores: ArrayView2<f32>) {
        let columns: Vec<Range<usize>> = self.columns().collect();
        for (task, columns) in self.tasks.iter_mut().zip(columns) {
            task.after_batch(scores.slice(s![.., columns]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bagging::{Sizes, random};
    use crate::loss::Logistic;
    use crate::method::{
        CountLikelihood, DebiasedSquare, Distance, EasyLlpByBag, LabelGeneration, ProportionMatching,
    };
    use crate::model::Scorer;
    use crate::number::NonNegative;
    use crate::train::Aim;
    use crate::{
        Rows,
        correction::Correction,
        model::LinearModel,
        optim::Adam,
        train::{Optimizer, Trainer},
    };
    use ndarray::Array2;
    use std::ops::ControlFlow;

    const N_ROWS: usize = 120;

    fn rows() -> Rows<'static> {
        let value = |(row, column): (usize, usize)| ((row * 3 + column) as f32 * 0.7).sin();
        Rows::dense(Array2::from_shape_fn((N_ROWS, 4), value)).unwrap()
    }

    /// Three tasks over the same bags.
    fn bags() -> Vec<Bags> {
        let partition = random(N_ROWS, &Sizes::Fixed(5), 3).unwrap();
        let of_task = |task: usize| {
            let labels: Vec<u32> = (0..N_ROWS).map(|row| u32::from((row * (task + 2)) % 7 < 3)).collect();
            Bags::from_labels(partition.clone(), &labels, 2).unwrap()
        };
        (0..3).map(of_task).collect()
    }

    fn each_is_as_alone<'b, O: BagObjective + 'b>(bags: &'b [Bags], objective: impl Fn(&'b Bags) -> O) {
        let rows = rows();
        let adam = Adam { epochs: 4, batch_size: 20, ..Adam::default() };
        let trainer = Trainer { optimizer: Optimizer::Adam(adam), seed: 5 };
        let mut watch = |_| ControlFlow::Continue(());
        let mut together = LinearModel::for_rows(&rows, 3).unwrap();
        let boxed = |bags| Box::new(objective(bags)) as Box<dyn BagObjective + 'b>;
        let mut tasks = SideBySide::new(bags.iter().map(boxed).collect()).unwrap();
        trainer.fit_watched(&mut together, &rows, Aim::Bags(&mut tasks), &mut watch, None).unwrap();
        for (place, bags) in bags.iter().enumerate() {
            let mut alone = LinearModel::for_rows(&rows, 2).unwrap();
            trainer
                .fit_watched(&mut alone, &rows, Aim::Bags(&mut objective(bags)), &mut watch, None)
                .unwrap();
            let far = |(a, b): (&f32, &f32)| (a - b).abs() > 1e-5;
            assert!(!together.weights().column(place).iter().zip(alone.weights()).any(far));
            assert!(!together.intercept().column(place).iter().zip(alone.intercept()).any(far));
            assert!(alone.weights().iter().any(|weight| weight.abs() > 1e-3), "something was learnt");
        }
    }

    #[test]
    fn tasks_side_by_side_come_to_what_they_come_to_alone() {
        let bags = bags();
        each_is_as_alone(&bags, |bags| LabelGeneration::new(bags, NonNegative::ZERO));
        each_is_as_alone(&bags, |bags| ProportionMatching::new(bags, Distance::CrossEntropy));
        each_is_as_alone(&bags, CountLikelihood::new);
        each_is_as_alone(&bags, DebiasedSquare::new);
        each_is_as_alone(&bags, |bags| EasyLlpByBag::new(bags, &Correction::default(), &Logistic).unwrap());
    }

    #[test]
    fn other_bags_are_refused_and_so_is_a_model_of_too_few_scores() {
        fn objective(bags: &Bags) -> Box<dyn BagObjective + '_> {
            Box::new(LabelGeneration::new(bags, NonNegative::ZERO))
        }
        let bags = bags();
        let trainer = Trainer { optimizer: Optimizer::Adam(Adam::default()), seed: 1 };
        let mut tasks = SideBySide::new(bags.iter().map(objective).collect()).unwrap();
        let mut model = LinearModel::for_rows(&rows(), 2).unwrap();
        let mut watch = |_| ControlFlow::Continue(());
        let refused =
            trainer.fit_watched(&mut model, &rows(), Aim::Bags(&mut tasks), &mut watch, None).unwrap_err();
        assert_eq!(refused, Error::Shape { what: "scores of the model", expected: 3, got: 1 });
        assert!(model.scores(&rows()).unwrap().iter().all(|&score| score == 0.0));

        let others = random(N_ROWS, &Sizes::Fixed(6), 3).unwrap();
        let others = Bags::from_labels(others, &[1; N_ROWS], 2).unwrap();
        let refused = SideBySide::new(bags.iter().chain([&others]).map(objective).collect()).err();
        assert_eq!(refused, Some(Error::BagsDiffer { task: 3 }));
        assert_eq!(SideBySide::new(Vec::new()).err(), Some(Error::NoBags));
    }
}
