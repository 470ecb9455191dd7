//! Assign labels to the rows of one bag that match its class counts and have the highest sum of
//! scores.
//!
//! A plan P holds the share of class c for row j. Its lines sum to 1, its columns to the bag's
//! counts, and it maximises
//!
//! ```text
//! Σ_jc P_jc s_jc + ε H(P),     H(P) = −Σ_jc P_jc log P_jc
//! ```
//!
//! (relaxed optimal transport; Dulac-Arnold, Zeghidour, Cuturi, Beyer & Vert 2019). Scores s are
//! log-odds: of class 1 for two classes, else one per class. The softmax normaliser of a row is the
//! same for all of its classes and all plans, so none is needed. At ε = 0 a plan is a hard
//! assignment. For ε > 0 it is P_jc ∝ exp((s_jc + t_c)/ε), with a price t_c per class; at ε = 1
//! these are the predicted probabilities *tilted* to the counts, as in the count likelihood.

use super::count_likelihood::tilt;
use super::mean_map::solved;
use crate::kernel::matrix_product;
use crate::loss::sigmoid;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The tolerance of soft labels' class sums, as a share of the rows.
const TOLERANCE: f64 = 1e-6;

/// The maximum number of plans evaluated for soft labels of several classes.
const MOST_STEPS: usize = 200;

/// The initial ε, as a share of the widest range of a row's scores, and the tolerance of the counts
/// at which it is lowered.
const SMOOTH: f64 = 0.1;
const ROUGH: f64 = 0.1;

/// A negligible ridge, for flat directions.
const RIDGE: f64 = 1e-12;

/// Hard labels of a bag's rows with the highest sum of scores: `counts[c]` rows of class c; the
/// counts sum to the number of rows.
///
/// `out` has the shape of `scores`: 0 or 1 in one column for two classes, else a one in the column
/// of the class. Rows with equal scores share labels evenly; otherwise an untrained model would
/// learn the order of the table.
pub(crate) fn best_labels(scores: ArrayView2<f32>, counts: &[usize], mut out: ArrayViewMut2<f32>) {
    assert_eq!(counts.iter().sum::<usize>(), scores.nrows(), "every row has a label");
    out.fill(0.0);
    if scores.ncols() == 1 {
        take_highest(scores, counts[1], out);
        return;
    }
    // Classes without rows take no part. There are no more left than rows.
    let classes: Vec<usize> = (0..counts.len()).filter(|&class| counts[class] > 0).collect();
    let wanted = classes.iter().map(|&class| counts[class]).collect();
    let scores = of_classes(scores, &classes);
    let equals = equals(&scores);
    let labels = Assignment::new(scores, wanted).repaired();
    for (mut line, label) in out.rows_mut().into_iter().zip(labels) {
        line[classes[label]] = 1.0;
    }
    for rows in equals {
        let share = out.select(Axis(0), &rows).mean_axis(Axis(0)).expect("there are several");
        for row in rows {
            out.row_mut(row).assign(&share);
        }
    }
}

/// Rounds noisy counts to whole counts that sum to the number of rows: counts below 0 become 0, the
/// rest is scaled, and the largest remainders are rounded up.
pub(crate) fn whole_counts(reported: &[f64], n_rows: usize) -> Vec<usize> {
    let shares = shares(reported, n_rows);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to the bag's size")]
    let mut counts: Vec<usize> = shares.iter().map(|share| share.floor() as usize).collect();
    let missing = n_rows.saturating_sub(counts.iter().sum());
    let mut by_remainder: Vec<usize> = (0..shares.len()).collect();
    by_remainder.sort_by(|&a, &b| shares[b].fract().total_cmp(&shares[a].fract()));
    for &class in &by_remainder[..missing] {
        counts[class] += 1;
    }
    counts
}

/// Soft labels of a bag's rows: the plan for an `epsilon` above 0, in the shape of `scores`.
///
/// Counts may be fractional. Negative counts become 0, and the rest is scaled to the number of
/// rows.
#[expect(clippy::cast_possible_truncation, reason = "labels are f32")]
pub(crate) fn soft_labels(
    scores: ArrayView2<f32>,
    counts: &[f64],
    epsilon: f64,
    mut out: ArrayViewMut2<f32>,
) {
    let counts = shares(counts, scores.nrows());
    let classes: Vec<usize> = (0..counts.len()).filter(|&class| counts[class] > 0.0).collect();
    if scores.ncols() == 1 {
        if let [class] = classes[..] {
            out.fill(if class == 1 { 1.0 } else { 0.0 });
            return;
        }
        let odds: Vec<f64> = scores.iter().map(|&score| finite(score) / epsilon).collect();
        let tilt = tilt(&odds, counts[1]);
        out.iter_mut().zip(odds).for_each(|(out, odds)| *out = sigmoid(odds + tilt) as f32);
        return;
    }
    let counts = classes.iter().map(|&class| counts[class]).collect();
    let plan = Transport::new(of_classes(scores, &classes), counts).solved(epsilon);
    out.fill(0.0);
    for (mut out, line) in out.rows_mut().into_iter().zip(plan.rows()) {
        classes.iter().zip(line).for_each(|(&class, &share)| out[class] = share as f32);
    }
}

/// The reported counts without those below 0, scaled to sum to the number of rows. If nothing is left, classes share alike.
fn shares(reported: &[f64], n_rows: usize) -> Vec<f64> {
    let sum: f64 = reported.iter().map(|count| count.max(0.0)).sum();
    if sum <= 0.0 {
        return vec![n_rows as f64 / reported.len() as f64; reported.len()];
    }
    let scale = n_rows as f64 / sum;
    reported.iter().map(|count| count.max(0.0) * scale).collect()
}

/// A score whose differences to others are numbers, even if it is infinite or no number itself.
fn finite(score: f32) -> f64 {
    if score.is_nan() { 0.0 } else { f64::from(score.clamp(f32::MIN, f32::MAX)) }
}

/// The scores of some classes, a line per row.
fn of_classes(scores: ArrayView2<f32>, classes: &[usize]) -> Array2<f64> {
    Array2::from_shape_fn((scores.nrows(), classes.len()), |(row, column)| {
        finite(scores[[row, classes[column]]])
    })
}

/// Ones for so many rows with the highest scores; those that are level where it ends share what is left.
fn take_highest(scores: ArrayView2<f32>, count: usize, mut out: ArrayViewMut2<f32>) {
    let Some(last) = count.checked_sub(1) else { return };
    // There is one zero: −0 + 0 is 0.
    let mut in_order: Vec<f32> = scores.iter().map(|score| score + 0.0).collect();
    let (_, &mut cut, _) = in_order.select_nth_unstable_by(last, |a, b| b.total_cmp(a));
    let against_cut = |score: &f32| (score + 0.0).total_cmp(&cut);
    let n_level = scores.iter().filter(|score| against_cut(score).is_eq()).count();
    let n_above = scores.iter().filter(|score| against_cut(score).is_gt()).count();
    let share = (count - n_above) as f32 / n_level as f32;
    for (out, score) in out.iter_mut().zip(scores) {
        *out = match against_cut(score) {
            Ordering::Greater => 1.0,
            Ordering::Equal => share,
            Ordering::Less => 0.0,
        };
    }
}

/// Groups of two rows or more that have the same scores.
fn equals(scores: &Array2<f64>) -> Vec<Vec<usize>> {
    let compare = |&a: &usize, &b: &usize| {
        let pairs = scores.row(a).into_iter().zip(scores.row(b));
        pairs
            .map(|(a, b)| (a + 0.0).total_cmp(&(b + 0.0)))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    };
    let mut rows: Vec<usize> = (0..scores.nrows()).collect();
    rows.sort_unstable_by(compare);
    let groups = rows.chunk_by(|a, b| compare(a, b).is_eq());
    groups.filter(|rows| rows.len() > 1).map(<[usize]>::to_vec).collect()
}

/// A row that may go from its class to another, and how much of the sum of scores is lost by it.
#[derive(Debug, Clone, Copy)]
struct Move {
    loss: f64,
    row: usize,
}

impl Ord for Move {
    /// The least loss is the greatest, since heaps have the greatest on top.
    fn cmp(&self, other: &Self) -> Ordering {
        other.loss.total_cmp(&self.loss).then(other.row.cmp(&self.row))
    }
}

impl PartialOrd for Move {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Move {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Move {}

/// Labels while they are moved to the required counts.
///
/// Every row starts with its best class: no labels with the same counts are better. Then rows go from classes that have too many to
/// classes that have too few, over other classes where this loses less, one at a time and always by the path of least loss. So the
/// labels stay the best of all with their counts (successive shortest paths). There are at most k paths, each of which costs C² to find
/// and C log k for each of its moves.
struct Assignment {
    n_classes: usize,
    scores: Array2<f64>,
    labels: Vec<usize>,
    held: Vec<usize>,
    wanted: Vec<usize>,
    /// For each pair of classes, the rows that may go from the first to the second. Rows that have left the first stay until they come
    /// to the top.
    moves: Vec<BinaryHeap<Move>>,
    /// The least loss of each pair's moves.
    losses: Vec<f64>,
    /// The least loss of a row's way to each class, from one that had too many, when last looked at.
    prices: Vec<f64>,
    /// What such a way takes more than the price.
    distances: Vec<f64>,
    /// Which class comes before, on that way.
    before: Vec<usize>,
    is_settled: Vec<bool>,
}

impl Assignment {
    fn new(scores: Array2<f64>, wanted: Vec<usize>) -> Self {
        let n_classes = wanted.len();
        let mut held = vec![0; n_classes];
        let labels = scores.rows().into_iter().map(|line| {
            let best =
                (1..n_classes).fold(0, |best, class| if line[class] > line[best] { class } else { best });
            held[best] += 1;
            best
        });
        Self {
            n_classes,
            labels: labels.collect(),
            scores,
            held,
            wanted,
            moves: vec![BinaryHeap::new(); n_classes * n_classes],
            losses: vec![f64::INFINITY; n_classes * n_classes],
            prices: vec![0.0; n_classes],
            distances: vec![0.0; n_classes],
            before: vec![0; n_classes],
            is_settled: vec![false; n_classes],
        }
    }

    /// The best labels with the wanted counts.
    fn repaired(mut self) -> Vec<usize> {
        if self.held == self.wanted {
            return self.labels;
        }
        for row in 0..self.labels.len() {
            self.offer(row);
        }
        while self.held != self.wanted {
            let last = self.nearest_that_lacks();
            self.held[last] += 1;
            let mut class = last;
            while self.before[class] != class {
                let before = self.before[class];
                self.move_one(before, class);
                class = before;
            }
            self.held[class] -= 1;
        }
        self.labels
    }

    /// Lets a row go from its class to any other.
    fn offer(&mut self, row: usize) {
        let (from, line) = (self.labels[row], self.scores.row(row));
        for (to, score) in line.iter().enumerate().filter(|&(to, _)| to != from) {
            let (pair, loss) = (from * self.n_classes + to, line[from] - score);
            self.moves[pair].push(Move { loss, row });
            self.losses[pair] = self.losses[pair].min(loss);
        }
    }

    /// Moves the row that loses least.
    fn move_one(&mut self, from: usize, to: usize) {
        let row = self.moves[from * self.n_classes + to].peek().expect("a path is made of moves").row;
        self.labels[row] = to;
        self.offer(row);
        for pair in from * self.n_classes..(from + 1) * self.n_classes {
            let moves = &mut self.moves[pair];
            while moves.peek().is_some_and(|top| self.labels[top.row] != from) {
                moves.pop();
            }
            self.losses[pair] = moves.peek().map_or(f64::INFINITY, |top| top.loss);
        }
    }

    /// Finds the ways of least loss from the classes that have too many rows to all others, and says which class that has too few is
    /// the nearest.
    ///
    /// Some moves gain, which Dijkstra's algorithm cannot have. But none gains more than its classes' prices differ by: so what is
    /// summed is losses less differences of prices. Classes that have too many rows all have the price 0.
    fn nearest_that_lacks(&mut self) -> usize {
        let n_classes = self.n_classes;
        for class in 0..n_classes {
            let is_start = self.held[class] > self.wanted[class];
            self.distances[class] = if is_start { 0.0 } else { f64::INFINITY };
            self.before[class] = class;
        }
        self.is_settled.fill(false);
        for _ in 0..n_classes {
            let open = (0..n_classes).filter(|&class| !self.is_settled[class]);
            let near = nearest(open, &self.distances);
            self.is_settled[near] = true;
            let losses = &self.losses[near * n_classes..][..n_classes];
            for (class, loss) in losses.iter().enumerate() {
                // Below 0 by rounding only.
                let further = (loss + self.prices[near] - self.prices[class]).max(0.0);
                let distance = self.distances[near] + further;
                if distance < self.distances[class] && !self.is_settled[class] {
                    self.distances[class] = distance;
                    self.before[class] = near;
                }
            }
        }
        self.prices.iter_mut().zip(&self.distances).for_each(|(price, distance)| *price += distance);
        let lacking = (0..n_classes).filter(|&class| self.held[class] < self.wanted[class]);
        nearest(lacking, &self.prices)
    }
}

/// Of some classes, the first with the least distance.
fn nearest(classes: impl Iterator<Item = usize>, distances: &[f64]) -> usize {
    classes.min_by(|&a, &b| distances[a].total_cmp(&distances[b])).expect("a class is left")
}

/// Soft labels while they are fitted to the counts.
struct Transport {
    scores: Array2<f64>,
    counts: Array1<f64>,
    plan: Array2<f64>,
    /// The sums of the plan's columns.
    sums: Array1<f64>,
}

impl Transport {
    fn new(scores: Array2<f64>, counts: Array1<f64>) -> Self {
        Self { plan: Array2::zeros(scores.dim()), sums: Array1::zeros(counts.len()), scores, counts }
    }

    /// The plan for this ε.
    ///
    /// Prices take Newton's steps, shortened: with r the range of a step over ε, ln(1 + r)/r of it. On the way slopes change by a factor
    /// of no more than eʳ, so that each step is an improvement (Sun & Tran-Dinh 2019). Steps go farthest where plans are smooth: ε starts
    /// there and comes down in stages.
    fn solved(mut self, epsilon: f64) -> Array2<f64> {
        let n_rows = self.scores.nrows() as f64;
        let widest = self.scores.rows().into_iter().map(range).fold(0.0, f64::max);
        let mut stage = epsilon.max(SMOOTH * widest);
        let mut prices = Array1::zeros(self.counts.len());
        for _ in 0..MOST_STEPS {
            let gap = self.look(&prices, stage);
            if stage > epsilon && gap <= ROUGH * n_rows {
                stage = epsilon.max(stage / 4.0);
                continue;
            }
            if gap <= TOLERANCE * n_rows {
                return self.plan;
            }
            let step = self.newton_step();
            let range = range(step.view());
            prices.scaled_add(stage * range.ln_1p() / range, &step);
        }
        self.look(&prices, epsilon);
        self.plan
    }

    /// Makes the plan of these prices, and tells the sum of its gaps to the counts.
    fn look(&mut self, prices: &Array1<f64>, epsilon: f64) -> f64 {
        self.sums.fill(0.0);
        let inverse = 1.0 / epsilon;
        for (mut line, scores) in self.plan.rows_mut().into_iter().zip(self.scores.rows()) {
            let mut largest = f64::NEG_INFINITY;
            for ((out, score), price) in line.iter_mut().zip(scores).zip(prices) {
                *out = score + price;
                largest = largest.max(*out);
            }
            let mut total = 0.0;
            for out in &mut line {
                *out = ((*out - largest) * inverse).exp();
                total += *out;
            }
            let scale = 1.0 / total;
            for (out, sum) in line.iter_mut().zip(&mut self.sums) {
                *out *= scale;
                *sum += *out;
            }
        }
        self.sums.iter().zip(&self.counts).map(|(sum, count)| (sum - count).abs()).sum()
    }

    /// The step in prices over ε after which sums would be the counts, were they linear in prices.
    fn newton_step(&self) -> Array1<f64> {
        let (n_rows, n_classes) = self.plan.dim();
        let mut slopes = -matrix_product(self.plan.t(), self.plan.view());
        // The same added to all prices changes nothing. This makes the step's sum 0.
        slopes += n_rows as f64 / (n_classes * n_classes) as f64;
        // Where plans are almost labels, slopes are negligible.
        let ridge = RIDGE * n_rows as f64;
        slopes.diag_mut().zip_mut_with(&self.sums, |slope, sum| *slope += sum + ridge);
        solved(slopes, (&self.counts - &self.sums).insert_axis(Axis(1))).remove_axis(Axis(1))
    }
}

fn range(values: ArrayView1<f64>) -> f64 {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest - values.iter().copied().fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests;
