//! REPORT: figures of results, drawn from saved points only.

mod accuracy;
mod comparison;
mod excess_risk;
mod tracking;
mod variance;

use crate::experiment::{Comparison, Experiment, Kind};
use crate::point::{Point, Summary};
use easyllp_report::{LineChart, escaped};
use std::fmt::Write;

/// A figure with its data.
#[derive(Debug, Clone)]
pub struct Figure {
    /// The suffix of its file name.
    pub name: String,
    /// The chart.
    pub chart: LineChart,
    /// The series with their points.
    pub numbers: Vec<(String, Vec<(f64, Summary)>)>,
}

/// The figures of an experiment.
pub fn figures(experiment: &Experiment, points: &[Point]) -> Vec<Figure> {
    match &experiment.kind {
        Kind::Accuracy(accuracy) => accuracy::figures(accuracy, points),
        Kind::Comparison(comparison) => comparison::figures(comparison, points),
        Kind::Variance(variance) => variance::figures(variance, points),
        Kind::Tracking(tracking) => tracking::figures(tracking, points),
        Kind::Sgd(sgd) => excess_risk::of_sgd(sgd, points),
        Kind::Erm(erm) => excess_risk::of_erm(erm, points),
    }
}

/// The maximum number of tasks in a title.
const MOST_TASKS: usize = 3;

/// The title of an experiment's figures.
pub fn title(experiment: &Experiment) -> String {
    match &experiment.kind {
        Kind::Accuracy(accuracy) => {
            let tasks = match &accuracy.tasks[..] {
                tasks if tasks.len() > MOST_TASKS => format!("{} tasks, each by itself", tasks.len()),
                tasks => tasks.join(" and "),
            };
            let each = if accuracy.each_class { ", and each class by itself" } else { "" };
            let rebag = if accuracy.rebag { ", regrouped bags in every round" } else { "" };
            format!("Accuracy: {}, {}, {tasks}{each}{rebag}", accuracy.dataset.title(), accuracy.model)
        }
        Kind::Comparison(comparison) => {
            let Comparison { dataset, model, task, .. } = comparison;
            let bags = comparison.bags_in_words();
            format!("Default settings: {}, {model}, {task}{bags}", dataset.title())
        }
        Kind::Variance(_) => "Variance of estimates".into(),
        Kind::Tracking(tracking) => {
            format!("Training loss by epoch: {}, {}", tracking.dataset.title(), tracking.model)
        }
        Kind::Sgd(_) => "One pass over bags (Algorithm pickone)".into(),
        Kind::Erm(_) => "Empirical risk minimisation".into(),
    }
}

/// The title of a figure's own file, which also names the data.
fn title_alone(experiment: &Experiment, of_picture: &str) -> String {
    match &experiment.kind {
        Kind::Accuracy(accuracy) => {
            let rebag = if accuracy.rebag { ", regrouped bags in every round" } else { "" };
            format!("{}, {}{rebag}: {of_picture}", accuracy.dataset.title(), accuracy.model)
        }
        Kind::Tracking(tracking) => format!("{}, {}: {of_picture}", tracking.dataset.title(), tracking.model),
        Kind::Comparison(_) | Kind::Sgd(_) | Kind::Erm(_) => format!("{}: {of_picture}", title(experiment)),
        // Its pictures say what they are.
        Kind::Variance(_) => of_picture.into(),
    }
}

impl Figure {
    /// The figure as an SVG file.
    pub fn svg(&self, experiment: &Experiment) -> String {
        LineChart { title: title_alone(experiment, &self.chart.title), ..self.chart.clone() }.svg()
    }

    /// The data as a table.
    pub(crate) fn table(&self) -> String {
        /// Long series are shortened to some of their points.
        const MOST: usize = 12;
        let mut places: Vec<f64> =
            self.numbers.iter().flat_map(|(_, line)| line.iter().map(|(x, _)| *x)).collect();
        places.sort_by(f64::total_cmp);
        places.dedup_by(|one, other| one.to_bits() == other.to_bits());
        let step = places.len().div_ceil(MOST).max(1);
        let last = places.len().saturating_sub(1);
        let shown: Vec<f64> = places
            .iter()
            .enumerate()
            .filter(|(place, _)| place % step == 0 || *place == last)
            .map(|(_, x)| *x)
            .collect();
        let mut table = format!("<div class=\"wide\"><table><tr><th>{}</th>", escaped(&self.chart.x_name));
        for x in &shown {
            let _ = write!(table, "<th>{x}</th>");
        }
        table.push_str("</tr>\n");
        for (series, line) in &self.numbers {
            let _ = write!(table, "<tr><td>{}</td>", escaped(series));
            for x in &shown {
                let found = line.iter().find(|(at, _)| at.to_bits() == x.to_bits());
                let _ = write!(
                    table,
                    "<td>{}</td>",
                    found.map_or_else(String::new, |(_, summary)| cell(summary))
                );
            }
            table.push_str("</tr>\n");
        }
        table.push_str("</table></div>\n");
        table
    }
}

fn cell(summary: &Summary) -> String {
    let digits = |value: f64| {
        if value.abs() >= 1e4 || (value.abs() < 1e-3 && value.abs() > 0.0) {
            format!("{value:.2e}")
        } else if value.abs() >= 10.0 {
            format!("{value:.2}")
        } else {
            format!("{value:.4}")
        }
    };
    if summary.n > 1 {
        format!("{} ± {}", digits(summary.mean), digits(summary.deviation))
    } else {
        digits(summary.mean)
    }
}

/// A name as part of a file name.
fn file_part(name: &str) -> String {
    let letters = name.to_lowercase();
    let words: Vec<&str> =
        letters.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headlines_differ_by_task_and_model() {
        let headlines = |quick: bool| -> Vec<String> {
            crate::names(quick).map(|name| title(&Experiment::named(name).unwrap().unwrap())).collect()
        };
        for quick in [false, true] {
            let mut all = headlines(quick);
            let n_all = all.len();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), n_all, "{all:?}");
        }
        assert!(headlines(false).contains(&"Accuracy: MNIST, cnn:mnist, even-vs-odd".into()));
        let of_classes = "Accuracy: CIFAR-10, linear, one-vs-all, and each class by itself";
        assert!(headlines(false).contains(&of_classes.into()));
    }

    #[test]
    fn files_say_which_data_they_are_of() {
        let alone = |name: &str| title_alone(&Experiment::named(name).unwrap().unwrap(), "best round");
        assert_eq!(alone("mnist-linear"), "MNIST, linear: best round");
        assert_eq!(alone("tracking"), "MNIST, cnn:mnist: best round");
        assert_eq!(alone("erm"), "Empirical risk minimisation: best round");
        assert_eq!(alone("variance"), "best round");
    }

    #[test]
    fn tables_have_a_cell_for_every_place() {
        let summary = |mean, n| Summary { mean, deviation: 0.01, n };
        let figure = Figure {
            name: "f".into(),
            chart: LineChart { x_name: "k < 3".into(), ..LineChart::default() },
            numbers: vec![
                ("a".into(), vec![(2.0, summary(0.5, 3)), (8.0, summary(12_345.0, 1))]),
                ("b".into(), vec![(8.0, summary(0.000_1, 1))]),
            ],
        };
        let table = figure.table();
        assert!(table.contains("<th>k &lt; 3</th><th>2</th><th>8</th>"), "{table}");
        assert!(table.contains("<td>a</td><td>0.5000 ± 0.0100</td><td>1.23e4</td>"), "{table}");
        assert!(table.contains("<td>b</td><td></td><td>1.00e-4</td>"), "{table}");
        assert_eq!(file_part("Even vs odd, best round"), "even-vs-odd-best-round");
    }
}
