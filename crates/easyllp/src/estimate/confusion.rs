//! The confusion matrix.

use super::joint::WeighedSums;
use super::statistic::Statistic;
use super::{Estimate, Estimator};
use crate::error::{Error, Result};
use crate::predictions::{Predictions, Reader};
use ndarray::Array2;
use serde::Serialize;

/// The confusion matrix: true classes against predicted classes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Confusion {
    /// The share of all rows with this true class (line) and this predicted class (column).
    pub shares: Vec<Vec<Estimate>>,
    /// Recall: of the rows of each class, the share that is predicted as that class; none for a
    /// class without rows.
    pub recalls: Vec<Option<Estimate>>,
    /// Balanced accuracy: the mean of the recalls.
    pub balanced_accuracy: Estimate,
}

impl Estimator<'_> {
    /// The confusion matrix of any number of classes, by the predicted class.
    pub fn confusion(&self, predictions: &Predictions) -> Result<Confusion> {
        predictions.check(self.bags)?;
        let n_classes = self.bags.n_classes();
        let mut recalls: Vec<Option<Statistic>> = Vec::with_capacity(n_classes);
        let mut shares = Vec::with_capacity(n_classes);
        for class in 0..n_classes {
            let sums = self.decision_sums(predictions, class);
            let mut line = Vec::with_capacity(n_classes);
            for decision in 0..n_classes {
                let column = |of: &Array2<f64>| of.column(decision).to_vec();
                let sums = WeighedSums {
                    weight: &column(&sums.decisions),
                    product: &column(&sums.products),
                    control: &sums.control,
                };
                let together = self.joint(class, &sums);
                line.push(self.estimate(&together, 0.0, 1.0));
                if decision == class {
                    let share = self.class_share(class);
                    recalls.push((share.value > 0.0).then(|| together.over(&share)));
                }
            }
            shares.push(line);
        }
        let there: Vec<&Statistic> = recalls.iter().flatten().collect();
        let Some(_) = there.first() else {
            return Err(Error::OneClass { what: "the recall of each class" });
        };
        let part = 1.0 / there.len() as f64;
        let parts: Vec<(f64, &Statistic)> = there.iter().map(|&recall| (part, recall)).collect();
        let mean = Statistic::of(part * there.iter().map(|recall| recall.value).sum::<f64>(), &parts);
        let in_range = |statistic: &Statistic| self.estimate(statistic, 0.0, 1.0);
        Ok(Confusion {
            shares,
            recalls: recalls.iter().map(|recall| recall.as_ref().map(in_range)).collect(),
            balanced_accuracy: in_range(&mean),
        })
    }

    /// Per bag: how often each class was predicted, the sum of the class's control variate, and
    /// both together.
    fn decision_sums(&self, predictions: &Predictions, class: usize) -> DecisionSums {
        let (n_bags, n_classes) = (self.bags.n_bags(), self.bags.n_classes());
        let has_probabilities = predictions.check_probabilities().is_ok();
        let mut sums = DecisionSums {
            decisions: Array2::zeros((n_bags, n_classes)),
            products: Array2::zeros((n_bags, n_classes)),
            control: vec![0.0; n_bags],
        };
        let mut reader = predictions.reader();
        let (mut decision, mut control) = (vec![0.0; n_classes], vec![0.0; n_classes]);
        for bag in 0..n_bags {
            for rows in self.bags.members(bag).chunks(Reader::AT_ONCE) {
                reader.load(rows.iter().map(|&row| row as usize));
                for place in 0..rows.len() {
                    reader.decision(place, &mut decision);
                    if has_probabilities {
                        reader.probabilities(place, &mut control);
                    } else {
                        control.copy_from_slice(&decision);
                    }
                    sums.control[bag] += control[class];
                    for (decided, &is_it) in decision.iter().enumerate() {
                        sums.decisions[[bag, decided]] += is_it;
                        sums.products[[bag, decided]] += is_it * control[class];
                    }
                }
            }
        }
        sums
    }
}

struct DecisionSums {
    decisions: Array2<f64>,
    products: Array2<f64>,
    control: Vec<f64>,
}
