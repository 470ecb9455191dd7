//! Whether the bags satisfy the assumptions of estimates: text for `inspect`, the page of
//! `evaluate`, and warnings.

use crate::output::thousands;
use anyhow::Result;
use easyllp::diagnose::{
    Feature, LinearClass, Randomness, UNEVEN_LEVEL, Verdict, bags_needed, equivalent_rows,
    expected_standard_error, uneven_features,
};
use easyllp::table::Encoder;
use easyllp::{Bags, MethodConfig, Rows};
use serde::Serialize;
use std::fmt::Write;

/// Whether metrics that assume random bags are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Shown {
    /// The bags look random.
    Yes,
    /// They do not, and `--force` was given.
    Forced,
    /// They do not.
    Withheld,
}

impl Shown {
    /// Metrics are biased if bags are not random, or if bags were left out by their counts.
    pub(crate) fn new(found: &Randomness, n_suppressed: usize, force: bool) -> Self {
        match (found.is_rejected() || n_suppressed > 0, force) {
            (false, _) => Self::Yes,
            (true, true) => Self::Forced,
            (true, false) => Self::Withheld,
        }
    }

    pub(crate) fn is_withheld(self) -> bool {
        self == Self::Withheld
    }
}

/// The warnings to show before any metric, one sentence each.
pub(crate) fn verdict(found: &Randomness, n_suppressed: usize, shown: Shown) -> Option<String> {
    // Bags that were left out by their counts make the others look balanced.
    let reason = match (n_suppressed, found.verdict) {
        (0, Verdict::Plausible) => return None,
        (0, _) => found.to_string(),
        (n, _) => format!(
            "{} bags were left out because their counts are suppressed. The other bags were selected by their counts, so metrics \
             estimated from them are biased",
            thousands(n)
        ),
    };
    Some(match shown {
        Shown::Withheld => format!("{reason} and are withheld. Use --force to show them"),
        Shown::Forced => format!("{reason}; they are shown because of --force"),
        Shown::Yes => reason,
    })
}

/// Text as a sentence, with a capital letter and a full stop.
pub(crate) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// The diagnosis of the bags, one paragraph each.
pub(crate) fn diagnosis(bags: &Bags, found: &Randomness) -> Result<Vec<String>> {
    let advice = match found.verdict {
        Verdict::NotRandom => " Make bags at random if you can.",
        Verdict::Plausible | Verdict::Balanced => "",
    };
    let mut paragraphs = vec![sentence(&found.to_string()) + advice];
    paragraphs.extend(outlook(bags)?);
    Ok(paragraphs)
}

/// The columns that differ between bags by more than chance, the largest ratio first.
pub(crate) fn uneven_columns(rows: &Rows, encoder: &Encoder, bags: &Bags) -> Result<Vec<String>> {
    if bags.n_bags() < 2 || bags.n_members() <= bags.n_bags() {
        return Ok(Vec::new());
    }
    let mut names: Vec<String> = Vec::new();
    for uneven in &uneven_features(rows, bags, UNEVEN_LEVEL)? {
        let name = match uneven.feature {
            Feature::Dense(place) => encoder.dense_column(place),
            Feature::Category { field, .. } => encoder.field_column(field),
        };
        if let Some(name) = name.filter(|name| !names.iter().any(|other| other == name)) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// A paragraph on such columns, for a method if one is chosen.
pub(crate) fn on_uneven_columns(names: &[String], method: Option<&MethodConfig>) -> String {
    /// The maximum number of columns named.
    const NAMED: usize = 5;
    let more = names.len().saturating_sub(NAMED);
    let and_more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let biased = if method.is_none_or(MethodConfig::assumes_random_bags) {
        "estimates from these bags are biased, and so are the models of methods that assume random bags: use --method \
         count-likelihood, which supports bags made by columns of the rows"
    } else {
        "estimates from these bags are biased; the method does not assume random bags: evaluate on rows with labels"
    };
    format!(
        "These columns differ from bag to bag by more than chance: {}{and_more}. Bags were made by them, or by something that goes \
         with them. Where such a column is correlated with the label, {biased}, or ask for reports on random groups of rows.",
        names[..names.len().min(NAMED)].join(", ")
    )
}

/// How much information the bags hold.
fn outlook(bags: &Bags) -> Result<Vec<String>> {
    /// Figures that the plan is made for.
    const ERROR: f64 = 0.1;
    const WANTED: f64 = 0.01;
    let size = (bags.n_members() / bags.n_bags()).max(1);
    let mut text = format!(
        "For a linear model these bags say about as much as {:.0} labelled rows.",
        equivalent_rows(bags)
    );
    if bags.n_bags() > 1 && !bags.has_noise() {
        let _ = write!(
            text,
            " An error of 10 % will be known to ± {:.3} (standard error); for ± {WANTED} it takes {} bags of {size} rows.",
            expected_standard_error(ERROR, size, bags.n_bags())?,
            thousands(bags_needed(ERROR, size, WANTED)?)
        );
    }
    let bounds = LinearClass { reach: 1.0 }.bounds(size, bags.n_bags(), 0.05)?;
    let bound = format!(
        "With probability 0.95 the loss on these rows, estimated from these bags, differs by at most {:.3} from that on the population, \
         for every linear model with scores up to 1; with row labels by at most {:.3} (theorem `ucb` and eq. `event_level` of the paper).",
        bounds.from_bags, bounds.from_rows
    );
    Ok(vec![text, bound])
}
