//! Methods as users run them: each with the program's default settings, which choose on held-out bags, on the same bags.
//!
//! Nothing is chosen on test labels: they only say how good each final model is.

use super::{check_all, seed_of, written_out};
use crate::data::{Data, DatasetName, Task};
use crate::error::Result;
use crate::point::Point;
use crate::runner::{Cell, Tell};
use easyllp::bagging::{self, Sizes};
use easyllp::session::Supports;
use easyllp::{Bags, FitConfig, MethodConfig, ModelSpec, Noise, Predictions, metrics};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// What to compare.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Comparison {
    /// On which data.
    pub dataset: DatasetName,
    /// For which task.
    pub task: String,
    /// Which model.
    pub model: String,
    /// By which methods, with their parameters as on the command line.
    pub methods: Vec<String>,
    /// With how many rows in a bag.
    pub bag_sizes: Vec<usize>,
    /// Each bag has from this many rows to the bag size, every size alike.
    #[serde(default)]
    pub smallest: Option<usize>,
    /// The scale of Laplace noise that is added to each count, and declared.
    #[serde(default)]
    pub noise: Option<f64>,
    /// How often, each time with bags, validation bags and initial weights of its own.
    pub replicas: u32,
}

/// Measures on the test rows.
pub(crate) const AUC: &str = "AUC";
pub(crate) const BRIER: &str = "Brier score";
pub(crate) const ACCURACY: &str = "accuracy";

/// Row labels, which no bag size matters to.
pub(crate) const SUPERVISED: &str = "supervised";

impl Comparison {
    pub(super) fn check(&self) -> Result<(), String> {
        let model = self.model.parse::<ModelSpec>().map_err(|error| error.to_string())?;
        for words in &self.methods {
            let method: MethodConfig = words.parse().map_err(|error: easyllp::Error| error.to_string())?;
            let is_for_linear = matches!(
                easyllp::Method::supports(&method),
                Supports::LinearLogOdds | Supports::LinearConvex
            );
            if words.contains(',') {
                return Err(format!("method `{words}`: one parameter at most"));
            }
            if is_for_linear && model != ModelSpec::Linear {
                return Err(format!("{words} does not support the model {}", self.model));
            }
        }
        let smallest = self.smallest.unwrap_or(1);
        check_all(&[
            ("`methods` must name one", !self.methods.is_empty()),
            (
                "`bag-sizes` must be numbers from 1 on",
                !self.bag_sizes.is_empty() && !self.bag_sizes.contains(&0),
            ),
            (
                "`smallest` must be from 1 to the least of `bag-sizes`",
                smallest > 0 && self.bag_sizes.iter().all(|&size| smallest <= size),
            ),
            ("`noise` must be above 0", self.noise.is_none_or(|noise| noise > 0.0 && noise.is_finite())),
            ("`replicas` must be at least 1", self.replicas > 0),
        ])
    }

    /// Replicas in turn, so that a run that is cut short has all methods.
    pub(super) fn cells<'d>(&self, data: &'d Data, seed: u64) -> Result<Vec<Cell<'d>>> {
        let task = data.tasks(std::slice::from_ref(&self.task))?.swap_remove(0);
        let mut cells = Vec::new();
        for replica in 1..=self.replicas {
            for &size in &self.bag_sizes {
                for words in &self.methods {
                    let is_supervised = words == SUPERVISED;
                    if is_supervised && size != self.bag_sizes[0] {
                        continue;
                    }
                    let fit = Fit {
                        comparison: self.clone(),
                        task: task.clone(),
                        words: words.clone(),
                        size: if is_supervised { 1 } else { size },
                        replica,
                        seed,
                    };
                    cells.push(fit.cell(data));
                }
            }
        }
        Ok(cells)
    }

    /// What is special about its bags, in words.
    pub(crate) fn bags_in_words(&self) -> String {
        let sizes = self.smallest.map_or_else(String::new, |smallest| format!(", from {smallest} rows on"));
        let noise = self.noise.map_or_else(String::new, |scale| format!(", Laplace noise {scale}"));
        sizes + &noise
    }
}

/// One fit.
struct Fit {
    comparison: Comparison,
    task: Task,
    words: String,
    size: usize,
    replica: u32,
    seed: u64,
}

impl Fit {
    fn cell(self, data: &Data) -> Cell<'_> {
        let Self { comparison, task, words, size, replica, seed } = &self;
        let band = format!(
            "comparison, {}, {}, {}, {words}, {size} rows{}, seed {seed}",
            data.kept_as(),
            task.name,
            written_out(&comparison.model),
            comparison.bags_in_words()
        );
        let cost = if comparison.model == "linear" { 1.0 } else { 20.0 } * data.train.n_rows() as f64;
        Cell {
            key: format!("{band}, replica {replica}"),
            band,
            cost,
            rows: data.train.n_rows() as u64,
            is_wide: false,
            work: Box::new(move |tell| self.run(data, tell)),
        }
    }

    /// The bags, which are the same for all methods.
    fn bags(&self, data: &Data) -> Result<Bags> {
        let Self { comparison, task, size, replica, .. } = self;
        let seed = seed_of(self.seed, &format!("{}, replica {replica}", comparison.dataset.as_str()));
        let sizes = match comparison.smallest {
            Some(smallest) if *size > 1 => Sizes::Range(smallest..=*size),
            _ => Sizes::Fixed(*size),
        };
        let partition = bagging::random(data.train.n_rows(), &sizes, seed)?;
        let bags = Bags::from_labels(partition, &task.train, task.n_classes)?;
        Ok(match comparison.noise {
            Some(scale) if *size > 1 => {
                bagging::add_noise(&bags, Noise::Laplace(vec![scale; bags.n_bags()]), seed)?
            }
            _ => bags,
        })
    }

    fn run(&self, data: &Data, tell: &Tell) -> Result<Option<Vec<Point>>> {
        let Self { comparison, task, words, replica, .. } = self;
        let config = FitConfig {
            method: words.parse()?,
            model: comparison.model.parse()?,
            seed: u64::from(*replica),
            ..FitConfig::default()
        };
        let bags = self.bags(data)?;
        // Events do not count rows: all rows are reported at the end.
        let mut watch = |_: easyllp::fit::FitEvent| tell(0);
        let fitted = config.fitting(&data.train, &bags).image(data.image).watch(&mut watch).run();
        let fitted = match fitted {
            Err(easyllp::Error::Interrupted) => return Ok(None),
            other => other?,
        };
        if tell(data.train.n_rows() as u64) == ControlFlow::Break(()) {
            return Ok(None);
        }
        let scores = fitted.scores(&data.test)?;
        let predictions = Predictions::new(scores.view(), fitted.link)?;
        let point = |measure: &str, value: f64| Point {
            panel: task.name.clone(),
            series: words.clone(),
            x: self.size as f64,
            replica: *replica,
            measure: measure.into(),
            value,
        };
        let auc = if task.n_classes == 2 { metrics::auc(&predictions, &task.test)? } else { None };
        let auc = auc.map(|auc| point(AUC, auc));
        let brier = point(BRIER, metrics::brier(&predictions, &task.test)?);
        let accuracy = point(ACCURACY, metrics::accuracy(&predictions, &task.test)?);
        Ok(Some(auc.into_iter().chain([brier, accuracy]).collect()))
    }
}
