//! The order in which penalties are tried.
//!
//! From strong to weak penalties the validation metric falls, then rises. The search starts in the
//! middle of the path and goes to weaker penalties. If the first step is no better, it turns to
//! stronger ones. It stops after two in a row that are no better, and where a weaker penalty does
//! not change the model.

use std::cmp::Ordering;

/// The search stops after this many penalties in a row that are no better.
const PATIENCE: usize = 2;

/// A search over candidates, ordered from the strongest penalty to the weakest.
pub(super) struct PathSearch {
    n_candidates: usize,
    start: usize,
    /// The lowest metric so far, with its candidate.
    best: Option<(usize, f64)>,
    next: Option<usize>,
}

impl PathSearch {
    /// Over this number of candidates, at least one.
    pub(super) fn new(n_candidates: usize) -> Self {
        let start = (n_candidates - 1) / 2;
        Self { n_candidates, start, best: None, next: Some(start) }
    }

    /// The earlier candidate whose model a fit starts from; `None` for the first. It does not
    /// depend on metrics.
    pub(super) fn neighbour(&self, place: usize) -> Option<usize> {
        match place.cmp(&self.start) {
            Ordering::Less => Some(place + 1),
            Ordering::Equal => None,
            Ordering::Greater => Some(place - 1),
        }
    }

    /// The best candidate so far, and its metric.
    pub(super) fn best(&self) -> Option<(usize, f64)> {
        self.best
    }

    /// The candidate to try next; `None` at the end.
    pub(super) fn next(&self) -> Option<usize> {
        self.next
    }

    /// Records the metric of the last candidate, and whether its model equals its neighbour's.
    pub(super) fn see(&mut self, metric: f64, is_unchanged: bool) {
        let Some(place) = self.next else { return };
        if self.best.is_none_or(|(_, least)| metric < least) {
            self.best = Some((place, metric));
        }
        let (best, start) = (self.best.map_or(place, |(best, _)| best), self.start);
        let turn = start.checked_sub(1);
        self.next = if place >= start {
            let first_step_failed = place == start + 1 && best == start;
            let ends = is_unchanged || place - best >= PATIENCE || place + 1 == self.n_candidates;
            match (best == start, first_step_failed || (ends && place > start)) {
                (_, false) if place + 1 < self.n_candidates => Some(place + 1),
                (true, _) => turn,
                (false, _) => None,
            }
        } else if best - place >= PATIENCE {
            None
        } else {
            place.checked_sub(1)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places tried and the one found, for metrics by place; the model does not change from `unchanged` on.
    fn search(metrics: &[f64], unchanged: usize) -> (Vec<usize>, usize) {
        let mut search = PathSearch::new(metrics.len());
        let mut tried = Vec::new();
        while let Some(place) = search.next() {
            assert!(search.neighbour(place).is_none_or(|neighbour| tried.contains(&neighbour)));
            tried.push(place);
            search.see(metrics[place], place >= unchanged);
        }
        (tried, search.best().unwrap().0)
    }

    #[test]
    fn the_minimum_of_a_valley_is_found_wherever_it_is() {
        for least in 0..8_i32 {
            let metrics: Vec<f64> = (0..8).map(|place| f64::from((place - least).abs())).collect();
            let (tried, found) = search(&metrics, 8);
            assert_eq!(found, least.unsigned_abs() as usize);
            assert!(tried.len() <= 6, "{tried:?}");
        }
    }

    #[test]
    fn it_goes_downhill_and_stops_after_two_that_are_no_better() {
        assert_eq!(search(&[0.0, 0.0, 9.0, 5.0, 4.0, 3.0, 5.0, 6.0], 8), (vec![3, 4, 5, 6, 7], 5));
        assert_eq!(search(&[1.0, 6.0, 5.0, 4.0, 7.0, 0.0, 0.0, 0.0], 8), (vec![3, 4, 2, 1], 3));
        // One that is no better may be chance.
        assert_eq!(search(&[9.0, 9.0, 9.0, 5.0, 4.0, 4.5, 3.0, 8.0], 8), (vec![3, 4, 5, 6, 7], 6));
    }

    #[test]
    fn weaker_penalties_that_change_nothing_are_not_tried() {
        assert_eq!(search(&[9.0, 9.0, 9.0, 5.0, 4.0, 4.0, 0.0, 0.0], 5), (vec![3, 4, 5], 4));
        assert_eq!(search(&[1.0, 2.0, 3.0, 5.0, 5.0, 5.0, 5.0, 5.0], 4), (vec![3, 4, 2, 1, 0], 0));
    }

    #[test]
    fn one_candidate_is_tried_once() {
        assert_eq!(search(&[f64::NAN], 1), (vec![0], 0));
    }
}
