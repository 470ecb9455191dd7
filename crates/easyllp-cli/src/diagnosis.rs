//! What speaks for and against the bags, in words: for `inspect`, for the page of `evaluate`, and to warn in `train`.

use crate::output::thousands;
use anyhow::Result;
use easyllp::diagnose::{
    Feature, LinearClass, Verdict, bags_needed, dispersion, equivalent_rows, expected_standard_error,
    uneven_features,
};
use easyllp::table::Encoder;
use easyllp::{Bags, Rows};
use std::fmt::Write;

/// Dealings that the bags are compared with.
const DEALINGS: usize = 1999;

/// What the bags are like and what they can tell, a paragraph each.
pub(crate) fn diagnosis(bags: &Bags) -> Result<Vec<String>> {
    let found = dispersion(bags, DEALINGS, 1)?;
    let how = format!("counts differ from bag to bag {:.2} times as much as by chance", found.ratio);
    let verdict = match found.verdict(0.05) {
        Verdict::Plausible => format!("The bags look as if rows were put together at random: {how}."),
        Verdict::Over => format!(
            "The bags are NOT i.i.d. (p = {:.4}): {how}. They were made by something that goes with the label, such \
             as a region or a campaign; models and estimates from them are biased. Make bags at random if you can.",
            found.over
        ),
        Verdict::Under => format!(
            "The bags are NOT i.i.d. (p = {:.4}): {how}. They were balanced on purpose, or counts are not what they seem.",
            found.under
        ),
    };
    let mut paragraphs = vec![verdict];
    paragraphs.extend(outlook(bags)?);
    Ok(paragraphs)
}

/// A paragraph on columns that differ from bag to bag, if any does.
pub(crate) fn uneven_columns(rows: &Rows, encoder: &Encoder, bags: &Bags) -> Result<Option<String>> {
    /// Below this a column is named.
    const LEVEL: f64 = 0.001;
    /// Columns that are named, at most.
    const NAMED: usize = 5;
    if bags.n_bags() < 2 || bags.n_members() <= bags.n_bags() {
        return Ok(None);
    }
    let mut names: Vec<&str> = Vec::new();
    for uneven in &uneven_features(rows, bags, LEVEL)? {
        let name = match uneven.feature {
            Feature::Dense(place) => encoder.dense_column(place),
            Feature::Category { field, .. } => encoder.field_column(field),
        };
        if let Some(name) = name.filter(|name| !names.contains(name)) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return Ok(None);
    }
    let more = names.len().saturating_sub(NAMED);
    let and_more = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.truncate(NAMED);
    Ok(Some(format!(
        "These columns differ from bag to bag by more than chance: {}{and_more}. Bags were made by them, or by something that goes \
         with them. Where such a column says something of the label, models and estimates from these bags are biased: ask for \
         reports on random groups of rows.",
        names.join(", ")
    )))
}

/// What so many bags can tell.
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
    let for_all = "for all linear models with scores up to 1, with probability 0.95";
    Ok(vec![
        text,
        format!(
            "Bound on |loss here − loss on the population| {for_all}, from these bags: {:.3} (Γ(k, n, δ), Theorem ucb of the paper).",
            bounds.from_bags
        ),
        format!("The same bound from the same rows with labels: {:.3} (eq. event_level).", bounds.from_rows),
    ])
}
