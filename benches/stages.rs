//! Stages of training in a row: the constants of the method `auto` were chosen with this.
//!
//! `stages DATASET TASK MODEL SIZES SEEDS PROCEDURE…` prints AUC, Brier score and accuracy on test rows, and
//! the seconds of a fit: means over seeds of bagging, split and weights. DATASET and TASK are those of
//! `easyllp reproduce`; SIZES and SEEDS are such as `8,64` and `1-3`. A fifth of the bags is held out and
//! chooses by its Brier score; the procedure is then replayed on all bags.
//!
//! A procedure is stages separated by `/`. A stage is a letter and its optimizer: `@PENALTY` (L-BFGS with
//! this penalty for a single label), `LRxEPOCHS` (Adam), or nothing (the default). `E` is corrected targets
//! with cross-entropy, `B` with the Brier loss; `D` is debiased square, `C` count likelihood, `M` proportion
//! matching, `G` label generation. `E@10/D1e-3x20` is easyllp to its optimum, then twenty epochs of debiased
//! square. Any other word is a method with its parameters, such as `auto` or `label-generation:epsilon=0`.

use easyllp::method::{
    BagObjective, CountLikelihood, DebiasedSquare, Distance, EasyLlp, LabelGeneration, NonNegative,
    ProportionMatching,
};
use easyllp::optim::{Adam, Lbfgs};
use easyllp::train::{Aim, Optimizer};
use easyllp::{
    Bags, FitConfig, Method, MethodConfig, Predictions, Result, Session, bagging, loss::LossName, metrics,
};
use easyllp_lab::{Data, Experiment, Task};
use rayon::prelude::*;
use std::time::Instant;

/// Stages in a row.
struct Stages(Vec<Stage>);

struct Stage {
    kind: char,
    optimizer: StageOptimizer,
}

enum StageOptimizer {
    Default,
    /// L-BFGS with this penalty for a single label.
    Penalty(f64),
    Adam(Adam),
}

impl Stages {
    fn parse(words: &str) -> Option<Self> {
        let stage = |word: &str| {
            let kind = word.chars().next().filter(|kind| "EBDCMG".contains(*kind))?;
            let rest = &word[1..];
            let optimizer = match (rest.strip_prefix('@'), rest.split_once('x')) {
                _ if rest.is_empty() => StageOptimizer::Default,
                (Some(penalty), _) => StageOptimizer::Penalty(penalty.parse().ok()?),
                (None, Some((lr, epochs))) => StageOptimizer::Adam(Adam {
                    learning_rate: lr.parse().ok()?,
                    epochs: epochs.parse().ok()?,
                    ..Adam::default()
                }),
                (None, None) => return None,
            };
            Some(Stage { kind, optimizer })
        };
        words.split('/').map(stage).collect::<Option<_>>().map(Self)
    }
}

impl Method for Stages {
    fn name(&self) -> &'static str {
        "stages"
    }

    fn run(&self, session: &mut Session) -> Result<()> {
        let bags = session.bags();
        for Stage { kind, optimizer } in &self.0 {
            let mut rule = EasyLlp::new(bags);
            let mut objective: Option<Box<dyn BagObjective>> = match kind {
                'D' => Some(Box::new(DebiasedSquare::new(bags))),
                'C' => Some(Box::new(CountLikelihood::new(bags))),
                'M' => Some(Box::new(ProportionMatching::new(bags, Distance::default()))),
                'G' => Some(Box::new(LabelGeneration::new(bags, NonNegative::ZERO))),
                _ => None,
            };
            let loss = if *kind == 'B' { LossName::Brier.training()? } else { session.loss() };
            let aim = match &mut objective {
                Some(objective) => Aim::Bags(objective.as_mut()),
                None => Aim::Targets(&mut rule, loss),
            };
            let name = kind.to_string();
            match optimizer {
                StageOptimizer::Default => session.train(&name, aim)?,
                StageOptimizer::Penalty(penalty) => {
                    let l2 = penalty / bags.n_bags() as f64;
                    session.train_with(&name, aim, Optimizer::Lbfgs(Lbfgs { l2, ..Lbfgs::default() }))?;
                }
                StageOptimizer::Adam(adam) => {
                    session.train_with(&name, aim, Optimizer::Adam(adam.clone()))?;
                }
            }
        }
        Ok(())
    }
}

/// AUC, Brier score and accuracy on the test rows, and the seconds of the fit.
fn measure(data: &Data, task: &Task, model: &str, size: usize, seed: u64, words: &str) -> Result<[f64; 4]> {
    let partition = bagging::random(data.train.n_rows(), &bagging::Sizes::Fixed(size), 1000 + seed)?;
    let bags = Bags::from_labels(partition, &task.train, 2)?;
    let start = Instant::now();
    let config = FitConfig { model: model.parse()?, seed, ..FitConfig::default() };
    let fitted = if let Some(stages) = Stages::parse(words) {
        config.fitting(&data.train, &bags).image(data.image).method(&stages).run()?
    } else {
        let method: MethodConfig = words.parse()?;
        let config = FitConfig { method, ..config };
        config.fitting(&data.train, &bags).image(data.image).run()?
    };
    let seconds = start.elapsed().as_secs_f64();
    let scores = fitted.scores(&data.test)?;
    let predictions = Predictions::new(scores.view(), fitted.link)?;
    let auc = metrics::auc(&predictions, &task.test)?.unwrap_or(f64::NAN);
    let brier = metrics::brier(&predictions, &task.test)?;
    Ok([auc, brier, metrics::accuracy(&predictions, &task.test)?, seconds])
}

#[expect(clippy::print_stdout, reason = "a bench reports to people")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dataset, task, model, sizes, seeds, procedures @ ..] = &arguments[..] else {
        panic!("DATASET TASK MODEL SIZES SEEDS PROCEDURE…")
    };
    let text = format!(
        "experiment = \"accuracy\"\ndataset = \"{dataset}\"\ntasks = [\"{task}\"]\nmodel = \"{model}\"\n\
         methods = [\"easyllp\"]\nbag-sizes = [2]\nreplicas = 1\nepochs = 1"
    );
    let experiment = Experiment::parse("stages", &text).expect("an experiment");
    let data = experiment.load(&easyllp_lab::default_folder()).expect("data").expect("a data set");
    let task = data.tasks(std::slice::from_ref(task)).expect("a task").swap_remove(0);
    let sizes: Vec<usize> = sizes.split(',').map(|size| size.parse().expect("a size")).collect();
    let (first, last) = seeds.split_once('-').expect("seeds such as 1-3");
    let seeds: Vec<u64> = (first.parse().expect("a seed")..=last.parse().expect("a seed")).collect();
    for size in sizes {
        for words in procedures {
            let start = Instant::now();
            let of_seed = |seed: &u64| measure(&data, &task, model, size, *seed, words);
            let found: Result<Vec<[f64; 4]>> = seeds.par_iter().map(of_seed).collect();
            match found {
                Ok(found) => {
                    let mean =
                        |place: usize| found.iter().map(|all| all[place]).sum::<f64>() / found.len() as f64;
                    let briers: Vec<String> = found.iter().map(|all| format!("{:.4}", all[1])).collect();
                    println!(
                        "{size:5} {words:40} auc {:.4} brier {:.4} accuracy {:.4} {:.1} s (in all {:.1})  [{}]",
                        mean(0),
                        mean(1),
                        mean(2),
                        mean(3),
                        start.elapsed().as_secs_f64(),
                        briers.join(" ")
                    );
                }
                Err(error) => println!("{size:5} {words:40} {error}"),
            }
        }
    }
}
