//! The leaderboard: trials sorted by Brier score.

use super::trial::{Scored, Trial};
use crate::figures::{ON_ASTERISKS, interval, value};
use crate::output::thousands;
use anyhow::Result;
use comfy_table::{CellAlignment, Table, presets};
use easyllp::estimate::Metric;
use easyllp::{Bags, Estimate, Estimator, FitConfig, Predictions};
use serde::{Serialize, Serializer};

/// Ranked trials; the first is the best.
#[derive(Debug, Serialize)]
pub(super) struct Board {
    trials: Vec<Entry>,
}

#[derive(Debug, Serialize)]
struct Entry {
    #[serde(rename = "config", serialize_with = "settings")]
    trial: Trial,
    brier: Estimate,
    /// The Brier score minus that of the best trial.
    difference: Estimate,
    /// Whether it is as good as the best, within the confidence interval.
    ties_with_best: bool,
}

fn settings<S: Serializer>(trial: &Trial, serializer: S) -> Result<S::Ok, S::Error> {
    FitConfig::serialize(&trial.config, serializer)
}

impl Board {
    /// Ranks at least one trial.
    pub(super) fn ranked(mut scored: Vec<Scored>, bags: &Bags) -> Result<Self> {
        let estimator = Estimator::new(bags)?;
        let differences = |scored: &[Scored], from: &Predictions| {
            let difference =
                |scored: &Scored| estimator.difference(Metric::Brier, &scored.predictions()?, from);
            scored.iter().map(difference).collect::<easyllp::Result<Vec<Estimate>>>()
        };
        // By what they differ from any one of them: all by the same form, and without what is common to all.
        let order = differences(&scored, &scored[0].predictions()?)?;
        let mut order: Vec<(f64, usize)> = order.iter().map(|estimate| estimate.value).zip(0..).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut places: Vec<Option<Scored>> = scored.drain(..).map(Some).collect();
        scored.extend(order.into_iter().filter_map(|(_, place)| places[place].take()));
        let differences = differences(&scored, &scored[0].predictions()?)?;
        let entry = |(place, (scored, difference)): (usize, (Scored, Estimate))| -> Result<Entry> {
            let brier = estimator.brier(&scored.predictions()?)?;
            let ties_with_best = place == 0 || difference.covers(0.0);
            Ok(Entry { trial: scored.trial, brier, difference, ties_with_best })
        };
        Ok(Self {
            trials: scored.into_iter().zip(differences).enumerate().map(entry).collect::<Result<_>>()?,
        })
    }

    /// The best trial.
    pub(super) fn best(&self) -> &Trial {
        &self.trials[0].trial
    }

    /// The leaderboard as text, with the number of bags.
    pub(super) fn text(&self, n_bags: usize) -> String {
        let is_outside = self.trials.iter().any(|entry| entry.brier.outside_range);
        format!(
            "{}\n{}From {} bags, each scored by models of other bags. Trials marked = do not differ significantly from the best.\n",
            self.table(),
            if is_outside { format!("{ON_ASTERISKS}\n") } else { String::new() },
            thousands(n_bags)
        )
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_HORIZONTAL_ONLY);
        table.set_header(["", "Brier", "95 % interval", "more than the best", "95 % interval", ""]);
        for (place, Entry { trial, brier, difference, ties_with_best }) in self.trials.iter().enumerate() {
            let is_best = place == 0;
            table.add_row([
                trial.words(),
                value(brier, 4),
                interval(brier, 4),
                if is_best { String::new() } else { value(difference, 4) },
                if is_best { String::new() } else { interval(difference, 4) },
                match (is_best, ties_with_best) {
                    (true, _) => "best".into(),
                    (false, true) => "=".to_owned(),
                    (false, false) => String::new(),
                },
            ]);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}
