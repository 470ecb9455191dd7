//! REPORT: experiments into a folder: a journal, a CSV and pictures for each, and one page for all.

use crate::claims::{Claim, Verdict, claims};
use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::figures::{figures, title};
use crate::point::{Point, from_csv, to_csv};
use crate::runner::{Progress, run};
use easyllp::{Journal, write_whole};
use easyllp_report::{document, escaped};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Where results go, and what they depend on.
#[derive(Debug, Clone)]
pub struct Study {
    /// The folder of results.
    pub out: PathBuf,
    /// The folder of data sets.
    pub data: PathBuf,
    /// One seed for all.
    pub seed: u64,
    /// The most time that an experiment may take; all it needs if there is none.
    pub budget: Option<Duration>,
}

/// A run that is killed forgets no more of the time that it took.
const NOTE_TIME_EVERY: Duration = Duration::from_secs(20);

/// How an experiment ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Cells that are done, in this run or an earlier one.
    pub done: usize,
    /// Cells in all.
    pub cells: usize,
}

impl Study {
    fn journal(&self) -> Result<Journal> {
        Ok(Journal::open(&self.out.join("journal"))?)
    }

    /// Makes an experiment, or goes on with it, and writes its CSV and its pictures from what is done.
    pub fn run(
        &self,
        experiment: &Experiment,
        watch: &(dyn Fn(Progress) -> ControlFlow<()> + Sync),
    ) -> Result<Ended> {
        let started = Instant::now();
        let journal = self.journal()?;
        let data = experiment.load(&self.data)?;
        let cells = experiment.cells(data.as_ref(), self.seed)?;
        let before = self.seconds(&journal, experiment);
        let note_time = || {
            let spent = before + started.elapsed().as_secs_f64();
            journal.put(&self.time_key(experiment), format!("{spent:?}").as_bytes())
        };
        let noted = Mutex::new(Instant::now());
        let outcome = run(&cells, &journal, self.budget, &|progress| {
            let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
            if noted.elapsed() >= NOTE_TIME_EVERY {
                *noted = Instant::now();
                // It matters to nothing but the page.
                let _ = note_time();
            }
            watch(progress)
        })?;
        note_time()?;
        write_whole(&self.csv(experiment), to_csv(&outcome.points).as_bytes())?;
        for figure in figures(experiment, &outcome.points) {
            let path = self.out.join(format!("{}-{}.svg", experiment.name, figure.name));
            write_whole(&path, figure.chart.svg().as_bytes())?;
        }
        Ok(Ended { done: outcome.done, cells: outcome.cells })
    }

    fn csv(&self, experiment: &Experiment) -> PathBuf {
        self.out.join(format!("{}.csv", experiment.name))
    }

    fn time_key(&self, experiment: &Experiment) -> String {
        format!("seconds, {}, seed {}", experiment.name, self.seed)
    }

    fn seconds(&self, journal: &Journal, experiment: &Experiment) -> f64 {
        let record = journal.get(&self.time_key(experiment));
        record.and_then(|record| String::from_utf8(record).ok()?.parse().ok()).unwrap_or(0.0)
    }

    /// Writes the page from the results that are there; returns its path. `command` is what one types to make it.
    pub fn report(&self, experiments: &[Experiment], command: &str) -> Result<PathBuf> {
        let journal = self.journal()?;
        let mut results = Vec::new();
        for experiment in experiments {
            let path = self.csv(experiment);
            if let Ok(text) = std::fs::read_to_string(&path) {
                let points = from_csv(&text).map_err(|(line, text)| Error::BadLine { path, line, text })?;
                results.push((experiment, points));
            }
        }
        let borrowed: Vec<(&Experiment, &[Point])> =
            results.iter().map(|(experiment, points)| (*experiment, &points[..])).collect();
        let mut body = format!(
            "<header><h1>Easy learning from label proportions: the experiments</h1><p>easyllp {}, seed {}, {}</p></header>\n<pre>{}</pre>\n",
            env!("CARGO_PKG_VERSION"),
            self.seed,
            machine(),
            escaped(command)
        );
        body.push_str(&checklist(&claims(&borrowed)));
        for (experiment, points) in &results {
            body.push_str(&section(experiment, points, self.seconds(&journal, experiment)));
        }
        let path = self.out.join("index.html");
        write_whole(
            &path,
            document("Easy learning from label proportions: the experiments", &body).as_bytes(),
        )?;
        Ok(path)
    }
}

fn section(experiment: &Experiment, points: &[Point], seconds: f64) -> String {
    let mut html = format!("<section class=\"experiment\"><h2>{}</h2>\n", escaped(&title(experiment)));
    let _ = writeln!(
        html,
        "<p class=\"note\"><a href=\"{0}.csv\">{0}.csv</a>: {1} numbers, {2}; replicas: {3}</p>",
        escaped(&experiment.name),
        points.len(),
        duration(seconds),
        escaped(&replicas(points).join(", "))
    );
    html.push_str("<div class=\"charts\">\n");
    for figure in figures(experiment, points) {
        let _ = writeln!(
            html,
            "<div>{}<details><summary>numbers</summary>{}</details></div>",
            figure.chart.figure(),
            figure.table()
        );
    }
    html.push_str("</div></section>\n");
    html
}

/// How many replicas each series has: the fewest at any place, and the most if they differ.
fn replicas(points: &[Point]) -> Vec<String> {
    let mut series: Vec<&str> = Vec::new();
    let mut found: BTreeMap<(&str, &str, u64), BTreeSet<u32>> = BTreeMap::new();
    for point in points {
        if !series.contains(&point.series.as_str()) {
            series.push(&point.series);
        }
        found.entry((&point.series, &point.panel, point.x.to_bits())).or_default().insert(point.replica);
    }
    let of_series = |series: &str| {
        let counts =
            || found.iter().filter(|((of, ..), _)| *of == series).map(|(_, replicas)| replicas.len());
        match (counts().min().unwrap_or(0), counts().max().unwrap_or(0)) {
            (least, most) if least == most => format!("{series} {most}"),
            (least, most) => format!("{series} {least} to {most}"),
        }
    };
    series.into_iter().map(of_series).collect()
}

fn checklist(claims: &[Claim]) -> String {
    let mut html = "<section class=\"text\"><h2>What the paper claims, and what was found</h2></section>\n<ul class=\"claims\">\n".to_owned();
    for claim in claims {
        let (class, mark) = match claim.verdict {
            Verdict::Held => ("held", "✓"),
            Verdict::NotHeld => ("not-held", "✗"),
            Verdict::Open => ("open", "?"),
        };
        let _ = writeln!(
            html,
            "<li><span class=\"verdict {class}\">{mark}</span>{} <em>{}.</em><br><span class=\"note\">Held if: {}.</span></li>",
            escaped(claim.text),
            escaped(&claim.evidence),
            escaped(claim.rule)
        );
    }
    html.push_str("</ul>\n");
    html
}

/// What it ran on, in a few words.
fn machine() -> String {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map(|rest| rest.trim_start_matches([' ', '\t', ':']));
    let name = name.map_or_else(|| std::env::consts::ARCH.to_owned(), escaped);
    format!("{name}, {} threads", rayon::current_num_threads())
}

fn duration(seconds: f64) -> String {
    match seconds {
        ..60.0 => format!("{seconds:.0} s"),
        60.0..3600.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_are_counted_place_by_place() {
        let point = |series: &str, x, replica| Point {
            panel: "p".into(),
            series: series.into(),
            x,
            replica,
            measure: "m".into(),
            value: 0.0,
        };
        let points = [
            point("b", 1.0, 1),
            point("b", 1.0, 2),
            point("b", 2.0, 1),
            point("a", 1.0, 7),
            point("a", 1.0, 7),
        ];
        assert_eq!(replicas(&points), ["b 1 to 2", "a 1"]);
    }
}
