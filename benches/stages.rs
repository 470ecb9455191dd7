//! Stages of training in a row, to see which of them are worth having: what the method `auto` is made of was chosen by this.
//!
//! `stages DATASET TASK MODEL SIZES SEEDS PROCEDURE…` prints AUC, Brier score and accuracy on test rows and the seconds of a fit, means
//! over seeds of bagging, split and weights. DATASET and TASK are those of `easyllp reproduce`; SIZES and SEEDS such as 8,64 and 1-3. A
//! fifth of the bags is held out and chooses, by its Brier score; the procedure is then replayed on all bags.
//!
//! A procedure is `/`-separated stages: a letter, and for Adam `LRxEPOCHS`. `E` is corrected targets with cross-entropy, `B` with the Brier
//! loss, `S` with the squared loss of the score; `D` debiased square, `C` count likelihood, `M` proportion matching, `G` label generation.
//! Without numbers a stage has the default optimizer. `E/D1e-3x20` is easyllp to its optimum, then twenty epochs of debiased square.
//! Any other word is a method with its parameters, such as `easyllp` or `label-generation:epsilon=1`.

use easyllp::fit::StageOptimizer;
use easyllp::method::{
    BagObjective, CountLikelihood, DebiasedSquare, EasyLlp, LabelGeneration, NonNegative, ProportionMatching,
};
use easyllp::optim::Adam;
use easyllp::train::{Aim, Optimizer};
use easyllp::{
    Bags, FitConfig, Method, MethodConfig, Predictions, Result, Session, bagging, loss::LossName, metrics,
};
use easyllp_lab::{Data, Experiment, Task};
use rayon::prelude::*;
use std::time::Instant;

/// Stages, as words say them.
struct Stages(Vec<Stage>);

struct Stage {
    kind: char,
    optimizer: Option<Adam>,
    /// With a penalty for a single label.
    penalty: Option<easyllp::optim::Lbfgs>,
}

impl Stages {
    fn parse(words: &str) -> Option<Self> {
        let stage = |word: &str| {
            let kind = word.chars().next().filter(|kind| "EBSDCMGb".contains(*kind))?;
            if kind == 'b' {
                let learning_rate = if word.len() > 1 { word[1..].parse().ok()? } else { 1.0 };
                return Some(Stage {
                    kind,
                    optimizer: Some(Adam { learning_rate, ..Adam::default() }),
                    penalty: None,
                });
            }
            if let Some(penalty) = word[1..].strip_prefix('@') {
                let l2 = penalty.parse().ok()?;
                let lbfgs = easyllp::optim::Lbfgs { l2, ..Default::default() };
                return Some(Stage { kind, optimizer: None, penalty: Some(lbfgs) });
            }
            let optimizer = match word[1..].split_once('x') {
                Some((lr, epochs)) => {
                    let (learning_rate, epochs) = (lr.parse().ok()?, epochs.parse().ok()?);
                    Some(Adam { learning_rate, epochs, ..Adam::default() })
                }
                None if word.len() == 1 => None,
                None => return None,
            };
            Some(Stage { kind, optimizer, penalty: None })
        };
        words.split('/').map(stage).collect::<Option<_>>().map(Self)
    }
}

impl Method for Stages {
    fn name(&self) -> &str {
        "stages"
    }

    fn run(&self, session: &mut Session) -> Result<()> {
        let bags = session.bags();
        for Stage { kind, optimizer, penalty } in &self.0 {
            let mut rule = EasyLlp::new(bags);
            let mut objective: Option<Box<dyn BagObjective>> = match kind {
                'D' => Some(Box::new(DebiasedSquare::new(bags))),
                'C' => Some(Box::new(CountLikelihood::new(bags))),
                'M' => Some(Box::new(ProportionMatching::new(bags, Default::default()))),
                'G' => Some(Box::new(LabelGeneration::new(bags, NonNegative::ZERO))),
                _ => None,
            };
            let loss = match kind {
                'B' | 'b' => LossName::Brier.training()?,
                _ => session.loss(),
            };
            let aim = match &mut objective {
                Some(objective) => Aim::Bags(objective.as_mut()),
                None => Aim::Targets(&mut rule, loss),
            };
            let name = kind.to_string();
            if let Some(lbfgs) = penalty {
                let l2 = lbfgs.l2 / bags.n_bags() as f64;
                session.train_with(
                    &name,
                    aim,
                    Optimizer::Lbfgs(easyllp::optim::Lbfgs { l2, ..lbfgs.clone() }),
                )?;
                continue;
            }
            match optimizer {
                Some(factor) if *kind == 'b' => {
                    let Some(StageOptimizer::Lbfgs(lbfgs)) =
                        session.stages().last().map(|stage| stage.optimizer.clone())
                    else {
                        panic!("b follows L-BFGS")
                    };
                    let l2 = lbfgs.l2 * factor.learning_rate;
                    session.train_with(
                        &name,
                        aim,
                        Optimizer::Lbfgs(easyllp::optim::Lbfgs { l2, ..Default::default() }),
                    )?;
                }
                Some(adam) => session.train_with(&name, aim, Optimizer::Adam(adam.clone()))?,
                None => session.train(&name, aim)?,
            }
        }
        Ok(())
    }
}

/// What a fit comes to on the test rows.
fn measure(data: &Data, task: &Task, model: &str, size: usize, seed: u64, words: &str) -> Result<[f64; 4]> {
    let partition = bagging::random(data.train.n_rows(), &bagging::Sizes::Fixed(size), 1000 + seed)?;
    let bags = Bags::from_labels(partition, &task.train, 2)?;
    let start = Instant::now();
    let config = FitConfig { model: model.parse()?, seed, ..FitConfig::default() };
    let fitted = match Stages::parse(words) {
        Some(stages) => config.fitting(&data.train, &bags).image(data.image).method(&stages).run()?,
        None => {
            let method: MethodConfig = words.parse()?;
            let config = FitConfig { method, ..config };
            config.fitting(&data.train, &bags).image(data.image).run()?
        }
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
