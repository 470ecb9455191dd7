//! Corrections are unbiased: proved by enumerating every outcome, not by sampling.
//!
//! Centred forms: every assignment of N fixed rows to bags of given sizes. The paper's and the
//! naive form: every draw of independent rows from a small population. Two asymmetric functions g
//! are used throughout.

use super::*;
use crate::bags::{Noise, Partition};

/// g(row, class): two unrelated functions.
const FUNCTIONS: [fn(usize, usize) -> f64; 2] = [
    |row, class| (1.3 * row as f64 + 0.7).sin() + (class * row) as f64 * 0.6,
    |row, class| if class == 1 { 2.0 + (row * row) as f64 * 0.11 } else { -0.4 * row as f64 - class as f64 },
];

/// Every order of the numbers below n.
fn orders(n: u32) -> Vec<Vec<u32>> {
    let mut orders = vec![vec![]];
    for next in 0..n {
        let longer = |order: &Vec<u32>| {
            let order = order.clone();
            (0..=order.len()).map(move |place| {
                let mut longer = order.clone();
                longer.insert(place, next);
                longer
            })
        };
        orders = orders.iter().flat_map(longer).collect();
    }
    orders
}

fn deal(order: &[u32], sizes: &[usize]) -> Partition {
    let mut rest = order;
    let bags: Vec<&[u32]> = sizes
        .iter()
        .map(|&size| {
            let (bag, left) = rest.split_at(size);
            rest = left;
            bag
        })
        .collect();
    Partition::new(order.len(), bags).unwrap()
}

/// What replaces a row's label: its bag's proportions, or each draw of a label from them.
#[derive(Clone, Copy, Debug)]
enum Label {
    Soft,
    Surrogate,
}

/// The corrected g of a row of this bag, over all draws of its surrogate label.
fn corrected(line: &Line, bags: &Bags, bag: usize, label: Label, g: impl Fn(usize) -> f64) -> f64 {
    let at = |stand_in: &dyn Fn(usize) -> f64| {
        (0..bags.n_classes()).map(|class| line.exact(bag, class, stand_in(class)) * g(class)).sum::<f64>()
    };
    match label {
        Label::Soft => at(&|class| bags.proportion(bag, class)),
        // A uniform draw falls into each of k equal parts of [0, 1) alike.
        Label::Surrogate => {
            let k = bags.size(bag);
            let of_part = |part: usize| {
                let drawn = draw_class(bags, bag, (part as f64 + 0.5) / k as f64);
                at(&|class| f64::from(u8::from(class == drawn)))
            };
            (0..k).map(of_part).sum::<f64>() / k as f64
        }
    }
}

/// The corrected mean over all rows of g(row, class).
fn corrected_mean(line: &Line, bags: &Bags, label: Label, g: impl Fn(usize, usize) -> f64) -> f64 {
    let of_bag = |bag: usize| {
        let of_row = |&row: &u32| corrected(line, bags, bag, label, |class| g(row as usize, class));
        bags.members(bag).iter().map(of_row).sum::<f64>()
    };
    (0..bags.n_bags()).map(of_bag).sum::<f64>() / bags.n_members() as f64
}

/// Bags of these labels, with noise of different scales declared on their exact counts: only weights follow it.
fn declared_noisy(exact: &Bags, partition: Partition) -> Bags {
    let scales = (0..exact.n_bags()).map(|bag| [0.3, 2.0, 0.9][bag % 3]).collect();
    Bags::multiclass(partition, exact.counts().to_owned(), Noise::Gaussian(scales)).unwrap()
}

#[test]
fn centred_forms_are_exact_over_all_dealings() {
    let weights = [
        BagWeights::Equal,
        BagWeights::Size,
        BagWeights::Variance { rho: 0.0 },
        BagWeights::Variance { rho: 3.7 },
        BagWeights::NoiseAware,
    ];
    let orders = orders(6);
    for labels in
        [vec![0, 1, 1, 0, 0, 1], vec![0, 0, 0, 0, 1, 0], vec![0, 2, 1, 1, 0, 2], vec![2, 2, 1, 2, 2, 0]]
    {
        let n_classes = if labels.contains(&2) { 3 } else { 2 };
        for sizes in [vec![2, 2, 2], vec![1, 2, 3], vec![1, 5], vec![1, 1, 4], vec![1; 6]] {
            let dealings: Vec<[Bags; 2]> = orders
                .iter()
                .map(|order| {
                    let exact = Bags::from_labels(deal(order, &sizes), &labels, n_classes).unwrap();
                    let noisy = declared_noisy(&exact, deal(order, &sizes));
                    [exact, noisy]
                })
                .collect();
            for weights in weights {
                for label in [Label::Soft, Label::Surrogate] {
                    for g in FUNCTIONS {
                        let truth = (0..6).map(|row| g(row, labels[row] as usize)).sum::<f64>() / 6.0;
                        for noise in [0, 1] {
                            let of_dealing = |bags: &[Bags; 2]| {
                                let bags = &bags[noise];
                                corrected_mean(&centred(weights, bags).unwrap(), bags, label, g)
                            };
                            let mean = dealings.iter().map(of_dealing).sum::<f64>() / orders.len() as f64;
                            assert!(
                                (mean - truth).abs() < 1e-12,
                                "{weights:?} {label:?} {sizes:?} {labels:?}: {mean} is not {truth}"
                            );
                        }
                    }
                }
            }
        }
    }
}

/// A population of a few (row kind, class) pairs with their probabilities.
struct Population {
    pairs: Vec<(usize, u32, f64)>,
    n_classes: usize,
}

impl Population {
    fn binary() -> Self {
        Self { pairs: vec![(0, 0, 0.35), (1, 0, 0.1), (1, 1, 0.2), (2, 1, 0.15), (3, 0, 0.2)], n_classes: 2 }
    }

    fn three_classes() -> Self {
        Self { pairs: vec![(0, 0, 0.4), (1, 1, 0.2), (2, 1, 0.1), (2, 2, 0.15), (3, 2, 0.15)], n_classes: 3 }
    }

    fn prior(&self) -> LabelPrior {
        let share = |class| self.pairs.iter().filter(|pair| pair.1 == class).map(|pair| pair.2).sum();
        LabelPrior::known((0..self.n_classes).map(|class| share(u32::try_from(class).unwrap())).collect())
            .unwrap()
    }

    fn mean(&self, g: impl Fn(usize, usize) -> f64) -> f64 {
        self.pairs.iter().map(|&(row, class, probability)| probability * g(row, class as usize)).sum()
    }

    /// The expectation, over all draws of independent rows into bags of these sizes, of the corrected mean of g.
    fn expected(
        &self,
        correction: &Correction,
        sizes: &[usize],
        label: Label,
        g: fn(usize, usize) -> f64,
    ) -> f64 {
        self.expected_value(sizes, g, |bags, g| {
            corrected_mean(&correction.line(bags).unwrap(), bags, label, g)
        })
    }

    /// The expectation, over the same draws, of a value of the bags and of g, which sees the kind of row drawn in each place.
    fn expected_value(
        &self,
        sizes: &[usize],
        g: fn(usize, usize) -> f64,
        value: impl Fn(&Bags, &dyn Fn(usize, usize) -> f64) -> f64,
    ) -> f64 {
        let n_rows: usize = sizes.iter().sum();
        let n_draws = self.pairs.len().pow(u32::try_from(n_rows).unwrap());
        let in_order: Vec<u32> = (0..u32::try_from(n_rows).unwrap()).collect();
        let mut expected = 0.0;
        for draw in 0..n_draws {
            let digits = (0..n_rows).scan(draw, |rest, _| {
                let digit = *rest % self.pairs.len();
                *rest /= self.pairs.len();
                Some(digit)
            });
            let drawn: Vec<&(usize, u32, f64)> = digits.map(|digit| &self.pairs[digit]).collect();
            let labels: Vec<u32> = drawn.iter().map(|pair| pair.1).collect();
            let probability: f64 = drawn.iter().map(|pair| pair.2).product();
            let bags = Bags::from_labels(deal(&in_order, sizes), &labels, self.n_classes).unwrap();
            expected += probability * value(&bags, &|row, class| g(drawn[row].0, class));
        }
        expected
    }
}

#[test]
fn the_papers_form_is_exact_for_independent_rows_and_a_known_prior() {
    for population in [Population::binary(), Population::three_classes()] {
        let paper = Correction::Paper(population.prior());
        for sizes in [vec![1], vec![4], vec![2, 2], vec![1, 3]] {
            for label in [Label::Soft, Label::Surrogate] {
                for g in FUNCTIONS {
                    let expected = population.expected(&paper, &sizes, label, g);
                    let truth = population.mean(g);
                    assert!(
                        (expected - truth).abs() < 1e-12,
                        "{label:?} {sizes:?}: {expected} is not {truth}"
                    );
                }
            }
        }
    }
}

/// Shifted to the known prior, the paper's targets shrink the covariance of label and g by Σk²/N², as `shares.rs` says. Sums of
/// products of f32 targets of at most 4 with g of at most 4 are good to 1e-5.
#[test]
fn a_shift_to_the_known_prior_shrinks_the_covariance_by_one_bag() {
    for population in [Population::binary(), Population::three_classes()] {
        let prior = population.prior();
        let paper = Correction::Paper(prior.clone());
        for sizes in [vec![2, 2], vec![1, 3], vec![2, 1, 1]] {
            for g in FUNCTIONS {
                let shifted = |bags: &Bags, g: &dyn Fn(usize, usize) -> f64| {
                    let mut targets = paper.soft(bags).unwrap();
                    targets.shift_to_shares(&bags.rows(), paper.known_shares());
                    let target = |row: usize, class: usize| match targets.values().row(row).to_vec()[..] {
                        [positive] => f64::from(if class == 1 { positive } else { 1.0 - positive }),
                        ref several => f64::from(several[class]),
                    };
                    let of_row = |row| (0..bags.n_classes()).map(|c| target(row, c) * g(row, c)).sum::<f64>();
                    (0..bags.n_rows()).map(of_row).sum::<f64>() / bags.n_rows() as f64
                };
                let got = population.expected_value(&sizes, g, shifted);
                let truth = population.mean(g);
                let of_prior = population.mean(|row, _| {
                    prior.classes().iter().enumerate().map(|(class, p)| p * g(row, class)).sum()
                });
                let n_rows: usize = sizes.iter().sum();
                let squares: usize = sizes.iter().map(|size| size * size).sum();
                let shrunk = squares as f64 / (n_rows * n_rows) as f64;
                let expected = of_prior + (1.0 - shrunk) * (truth - of_prior);
                assert!((got - expected).abs() < 1e-5, "{sizes:?}: {got} is not {expected}");
                assert!((got - truth).abs() > 1e-3, "{sizes:?}: no bias to speak of");
            }
        }
    }
}

/// Proposition *bias*: E g(x, ỹ) = E g(x, y)/k + (k−1)/k · E Σ_c p_c g(x, c), and soft proportions share that mean.
#[test]
fn naive_targets_are_biased_as_the_paper_says() {
    for population in [Population::binary(), Population::three_classes()] {
        let prior = population.prior();
        for k in 1..=4 {
            for label in [Label::Soft, Label::Surrogate] {
                for g in FUNCTIONS {
                    let got = population.expected(&Correction::Naive, &[k], label, g);
                    let truth = population.mean(g);
                    let of_prior = population.mean(|row, _| {
                        prior.classes().iter().enumerate().map(|(class, p)| p * g(row, class)).sum()
                    });
                    let size = k as f64;
                    let expected = truth / size + (size - 1.0) / size * of_prior;
                    assert!((got - expected).abs() < 1e-12, "{label:?} k = {k}: {got} is not {expected}");
                    assert_eq!((got - truth).abs() < 1e-3, k == 1, "k = {k}: no bias to speak of");
                }
            }
        }
    }
}

#[test]
fn all_bags_of_one_give_the_labels_to_the_bit() {
    let weights =
        [BagWeights::Equal, BagWeights::Size, BagWeights::Variance { rho: 2.3 }, BagWeights::NoiseAware];
    // Every number of rows and of positives: shares such as 15/22 do not survive a multiplication by 22 in f64.
    for n_rows in 2..60_u32 {
        for n_positive in 0..=n_rows {
            for n_classes in [2, 3] {
                let label = |row: u32| if row < n_positive { 1 + row % (n_classes - 1) } else { 0 };
                let labels: Vec<u32> = (0..n_rows).map(label).collect();
                let order: Vec<u32> = (0..n_rows).rev().collect();
                let bags =
                    Bags::from_labels(deal(&order, &vec![1; labels.len()]), &labels, n_classes as usize)
                        .unwrap();
                let expected = Targets::from_labels(&labels, n_classes as usize).unwrap();
                let forms = weights.map(Correction::Centred).into_iter();
                for form in forms.chain([Correction::Naive, Correction::Paper(LabelPrior::pooled(&bags))]) {
                    assert_eq!(form.soft(&bags).unwrap(), expected, "{form:?}: {n_positive} of {n_rows}");
                    assert_eq!(
                        form.surrogate(&bags, 3).unwrap(),
                        expected,
                        "{form:?}: {n_positive} of {n_rows}"
                    );
                }
            }
        }
    }
}

#[test]
fn centred_targets_average_to_the_pooled_proportions_and_sum_to_one() {
    let labels = [0, 2, 1, 1, 0, 2, 0, 0];
    let order: Vec<u32> = vec![3, 0, 6, 2, 5, 1, 4, 7];
    let bags = Bags::from_labels(deal(&order, &[1, 2, 5]), &labels, 3).unwrap();
    let weights = [BagWeights::Equal, BagWeights::Size, BagWeights::Variance { rho: 2.3 }];
    for weights in weights {
        let line = centred(weights, &bags).unwrap();
        for (class, pooled) in bags.pooled_proportions().into_iter().enumerate() {
            let target = |bag| line.exact(bag, class, bags.proportion(bag, class)) * bags.size(bag) as f64;
            let mean = (0..3).map(target).sum::<f64>() / 8.0;
            assert!((mean - pooled).abs() < 1e-12, "{weights:?}");
        }
    }
    for weights in weights.into_iter().chain([BagWeights::NoiseAware]) {
        let line = centred(weights, &bags).unwrap();
        for bag in 0..3 {
            let sum: f64 = (0..3).map(|class| line.exact(bag, class, bags.proportion(bag, class))).sum();
            assert!((sum - 1.0).abs() < 1e-12, "{weights:?}");
        }
    }
}
