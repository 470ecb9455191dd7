//! `easyllp reproduce`: run the paper's experiments and write the page of results.

use crate::commands::{parse_count, use_threads};
use crate::interrupt::{self, Interrupted};
use crate::output::{misuse, print, print_json};
use crate::progress::Cells;
use anyhow::{Context, Result, anyhow};
use clap::Args;
use easyllp_lab::{Ended, Error, Experiment, Study, default_folder, names};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Repeat the experiments of the paper, or your own, and show their results.
///
/// Each experiment is a list of cells. Finished cells are kept in a journal in the folder of results: an interrupted run continues
/// where it stopped. Ctrl-C shows what is done, and ends. Results are a CSV and pictures for each experiment. One page for all,
/// index.html, compares them with the paper's claims. Experiments without data are left out and named at the end. Experiments that fail
/// are named, too, and the page shows what they found before.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct ReproduceArgs {
    /// Experiments: all, variance, accuracy, tracking, sgd, erm, a name that --list prints, or a TOML file
    #[arg(value_name = "EXPERIMENT", default_value = "all")]
    experiments: Vec<String>,

    /// List the experiments, and run none
    #[arg(long)]
    list: bool,

    /// Run thinned versions on embedded data: minutes instead of hours
    #[arg(long)]
    quick: bool,

    /// Number of replicas of each training run, overriding the experiment. Ignored by variance, sgd and erm
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    replicas: Option<u32>,

    /// Regroup the bags randomly in every round of training; only easyllp supports it
    #[arg(long)]
    rebag: bool,

    /// Time for all experiments, such as 90s, 30m or 2h. Cells of the widest bands run first. Started cells run to
    /// their end
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    budget: Option<Duration>,

    /// Seed of all experiments
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,

    /// Folder of data sets. [default: $EASYLLP_DATA, or ~/.cache/easyllp]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Folder of results
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,

    /// Threads. [default: one per core]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    threads: Option<NonZeroUsize>,

    /// Print JSON at the end: how far each experiment is, and the page
    #[arg(long)]
    json: bool,
}

/// The result of a run, as JSON.
#[derive(Debug, Default, Serialize)]
struct Found {
    experiments: Vec<Reproduced>,
    /// The page with all results.
    page: Option<PathBuf>,
    failed: Vec<String>,
    /// Names of experiments without data, by the reason.
    left_out: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Serialize)]
struct Reproduced {
    name: String,
    cells: usize,
    done: usize,
    /// How many of the cells that are done found nothing, since training diverged in the first epoch.
    empty: usize,
}

pub(crate) fn run(args: &ReproduceArgs) -> Result<()> {
    if args.list {
        let names: Vec<&str> = names(args.quick).collect();
        return if args.json { print_json(&names) } else { print(&format!("{}\n", names.join("\n"))) };
    }
    use_threads(args.threads)?;
    let experiments = chosen(args)?;
    let study = Study {
        out: args.out.clone(),
        data: args.data.clone().unwrap_or_else(default_folder),
        seed: args.seed,
        command: command(args),
    };
    interrupt::heed();
    let deadline = args.budget.and_then(|budget| Instant::now().checked_add(budget));
    let is_open = |experiment| deadline.is_some() && study.has_work(experiment);
    let open: Vec<bool> = experiments.iter().map(is_open).collect();
    let mut n_open = open.iter().filter(|is_open| **is_open).count();
    let (mut found, mut page) = (Found::default(), None);
    for (experiment, is_open) in experiments.iter().zip(open) {
        if interrupt::is_asked() {
            break;
        }
        // What one experiment leaves over is shared out among the next that have something to do.
        let budget = deadline.map(|deadline| {
            let share = deadline.saturating_duration_since(Instant::now()).div_f64(n_open.max(1) as f64);
            n_open -= usize::from(is_open);
            share
        });
        let cells = Cells::begin(&experiment.name);
        let ended = study.run(experiment, budget, &|progress| {
            cells.see(&progress);
            if interrupt::is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        drop(cells);
        match ended {
            Ok(ended) => {
                let Ended { done, empty, cells } = ended;
                let reproduced = Reproduced { name: experiment.name.clone(), cells, done, empty };
                if !args.json {
                    print(&reproduced.line())?;
                }
                found.experiments.push(reproduced);
            }
            Err(error @ (Error::NoData { .. } | Error::NoCriteo { .. })) => {
                found.left_out.entry(error.to_string()).or_default().push(experiment.name.clone());
                continue;
            }
            // What it found before is written, and others may do better.
            Err(error) => found.failed.push(format!("experiment {}: {:#}", experiment.name, anyhow!(error))),
        }
        // After each, so that there is something to look at.
        page = Some(study.report());
    }
    // An interrupted run goes on with single records; a whole one leaves one file.
    if !interrupt::is_asked() && !found.experiments.is_empty() {
        study.pack()?;
    }
    match page {
        Some(Ok(page)) => found.page = Some(page),
        Some(Err(error)) => found.failed.push(format!("no page: {:#}", anyhow!(error))),
        None => {}
    }
    if args.json {
        print_json(&found)?;
    } else if let Some(page) = &found.page {
        print(&format!("{}\n", page.display()))?;
    }
    let Found { mut failed, left_out, .. } = found;
    let without_data =
        left_out.iter().map(|(reason, names)| format!("left out {}: {reason}", names.join(", ")));
    failed.extend(without_data);
    if interrupt::is_asked() {
        return Err(Interrupted.into());
    }
    if failed.is_empty() { Ok(()) } else { Err(anyhow!(failed.join("; "))) }
}

impl Reproduced {
    /// The outcome as text, in one line.
    fn line(&self) -> String {
        let Self { name, cells, done, empty } = self;
        let empty = match empty {
            0 => String::new(),
            empty => format!(", {empty} of which have no result: training diverged in the first round"),
        };
        format!("{name}: {done} of {cells} cells{empty}\n")
    }
}

/// The requested experiments, each once, in their usual order.
fn chosen(args: &ReproduceArgs) -> Result<Vec<Experiment>> {
    let known = names(args.quick).filter_map(Experiment::named).collect::<easyllp_lab::Result<Vec<_>>>()?;
    let mut chosen: Vec<Experiment> = Vec::new();
    for name in &args.experiments {
        let path = Path::new(name);
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
            let stem =
                path.file_stem().map_or_else(|| name.clone(), |stem| stem.to_string_lossy().into_owned());
            chosen.push(Experiment::parse(&stem, &text)?);
            continue;
        }
        let meant: Vec<&Experiment> = known.iter().filter(|experiment| experiment.answers_to(name)).collect();
        if meant.is_empty() {
            let names: Vec<&str> = names(args.quick).collect();
            return Err(misuse(&format!(
                "there is no experiment `{name}`; choose all, {}, or a .toml file",
                names.join(", ")
            )));
        }
        for experiment in meant {
            if !chosen.contains(experiment) {
                chosen.push(experiment.clone());
            }
        }
    }
    if let Some(replicas) = args.replicas {
        for experiment in &mut chosen {
            experiment.set_replicas(replicas);
        }
    }
    if args.rebag {
        chosen.iter_mut().for_each(Experiment::set_rebag);
    }
    Ok(chosen)
}

/// The command to make these results again.
fn command(args: &ReproduceArgs) -> String {
    let mut command = format!("easyllp reproduce {}", args.experiments.join(" "));
    if args.quick {
        command.push_str(" --quick");
    }
    if let Some(replicas) = args.replicas {
        let _ = write!(command, " --replicas {replicas}");
    }
    if args.rebag {
        command.push_str(" --rebag");
    }
    let _ = write!(command, " --seed {}", args.seed);
    command
}

fn parse_time(text: &str) -> Result<Duration, String> {
    let expected = || "a number of seconds, minutes or hours, such as 90s, 30m or 2h".to_owned();
    let unit = text.chars().last().ok_or_else(expected)?;
    let seconds = match unit {
        's' => 1.0,
        'm' => 60.0,
        'h' => 3600.0,
        _ => return Err(expected()),
    };
    let number: f64 = text[..text.len() - 1].parse().map_err(|_| expected())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| expected())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_found_nothing_is_told() {
        let reproduced = |empty| Reproduced { name: "erm".into(), cells: 4, done: 3, empty };
        assert_eq!(reproduced(0).line(), "erm: 3 of 4 cells\n");
        assert!(reproduced(2).line().contains("cells, 2 of which have no result"));
    }

    #[test]
    fn times_have_a_unit() {
        assert_eq!(parse_time("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_time("1.5h"), Ok(Duration::from_mins(90)));
        for text in ["", "2", "h", "-3m", "2d", "1e300h", "NaNs", "2é"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }
}
