//! Malformed input at every constructor: an error each time, and never a panic.

use easyllp::bagging::{Sizes, by_key, folds, random, split};
use easyllp::diagnose::{dispersion, prior_interval};
use easyllp::method::Supervised;
use easyllp::table::{Column, Encoder, EncoderOptions, Table};
use easyllp::{
    Bags, Error, Estimator, Noise, Partition, Predictions, Rows,
    correction::{BagWeights, Correction, LabelPrior, Targets},
    estimate::Scope,
    loss::Link,
    model::LinearModel,
    rows::Csr,
};
use ndarray::Array2;
use proptest::prelude::*;

/// Numbers of all kinds, the unwelcome ones as likely as the welcome.
fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(-1.0),
        Just(1e300),
        (0_u8..6).prop_map(f64::from),
        -3.0..9.0_f64,
    ]
}

fn any_index() -> impl Strategy<Value = u32> {
    prop_oneof![0_u32..8, Just(u32::MAX), Just(u32::MAX - 1), any::<u32>()]
}

fn lists() -> impl Strategy<Value = Vec<Vec<u32>>> {
    prop::collection::vec(prop::collection::vec(any_index(), 0..4), 0..4)
}

/// Three bags over ten rows: sizes 2, 3 and 1.
fn three_bags() -> Partition {
    Partition::new(10, [vec![0, 9], vec![1, 2, 3], vec![7]]).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// A partition is created exactly if every list has rows, each in range and new.
    #[test]
    fn partitions(n_rows in 0_usize..9, lists in lists()) {
        let mut seen = std::collections::HashSet::new();
        let whole = n_rows > 0
            && !lists.is_empty()
            && lists.iter().all(|list| !list.is_empty())
            && lists.iter().flatten().all(|&row| (row as usize) < n_rows && seen.insert(row));
        prop_assert_eq!(Partition::new(n_rows, &lists).is_ok(), whole);
    }

    /// A sparse matrix is created exactly if its parts fit together.
    #[test]
    fn sparse_matrices(
        n_columns in 0_usize..5,
        starts in prop::collection::vec(prop_oneof![0_usize..6, Just(usize::MAX)], 0..5),
        columns in prop::collection::vec(any_index(), 0..6),
        values in prop::collection::vec(prop_oneof![-1.0_f32..1.0, Just(f32::NAN)], 0..6),
    ) {
        let whole = starts.len() > 1
            && n_columns > 0
            && starts.is_sorted()
            && starts[0] == 0
            && starts.last() == Some(&values.len())
            && columns.len() == values.len()
            && columns.iter().all(|&column| (column as usize) < n_columns)
            && values.iter().all(|value| value.is_finite());
        prop_assert_eq!(Csr::new(n_columns, starts, columns, values).is_ok(), whole);
    }

    #[test]
    fn partitions_by_bag_number(ids in prop::collection::vec(any_index(), 0..9), n_bags in 0_usize..9) {
        let whole = n_bags > 0
            && ids.iter().all(|&id| (id as usize) < n_bags)
            && (0..n_bags).all(|bag| ids.iter().any(|&id| id as usize == bag));
        prop_assert_eq!(Partition::from_bag_of_row(&ids, n_bags).is_ok(), whole);
    }

    /// Counts without noise are whole numbers from 0 to the size.
    #[test]
    fn binary_counts(counts in prop::collection::vec(any_number(), 0..5)) {
        let fits = |(count, size): (&f64, f64)| count.fract().abs() == 0.0 && (0.0..=size).contains(count);
        let whole = counts.len() == 3 && counts.iter().zip([2.0, 3.0, 1.0]).all(fits);
        prop_assert_eq!(Bags::binary(three_bags(), &counts, Noise::None).is_ok(), whole);
    }

    /// With noise they are any finite numbers, and scales are finite and not negative.
    #[test]
    fn noisy_counts(
        counts in prop::collection::vec(any_number(), 3),
        scales in prop::collection::vec(any_number(), 2..5),
        laplace in any::<bool>(),
    ) {
        let noise = if laplace { Noise::Laplace(scales.clone()) } else { Noise::Gaussian(scales.clone()) };
        let bags = Bags::binary(three_bags(), &counts, noise);
        if scales.len() != 3 || scales.iter().any(|scale| !(0.0..1e12).contains(scale)) {
            prop_assert!(bags.is_err());
        } else if counts.iter().all(|count| count.abs() < 1e12) && scales.iter().all(|scale| *scale > 0.0) {
            prop_assert!(bags.is_ok());
        } else if !counts.iter().all(|count| count.abs() < 1e12) {
            prop_assert!(bags.is_err());
        }
    }

    #[test]
    fn class_counts(values in prop::collection::vec(any_number(), 0..16), n_lines in 0_usize..5) {
        let n_classes = values.len().checked_div(n_lines).unwrap_or(0);
        let counts = Array2::from_shape_vec((n_lines, n_classes), values[..n_lines * n_classes].to_vec()).unwrap();
        let line_fits = |(bag, size): (usize, f64)| {
            counts.row(bag).iter().all(|count| count.fract().abs() == 0.0 && (0.0..=size).contains(count))
                && (counts.row(bag).sum() - size).abs() == 0.0
        };
        let whole = n_lines == 3 && n_classes >= 2 && [2.0, 3.0, 1.0].into_iter().enumerate().all(line_fits);
        prop_assert_eq!(Bags::multiclass(three_bags(), counts.clone(), Noise::None).is_ok(), whole);
    }

    #[test]
    fn labels(labels in prop::collection::vec(any_index(), 0..14), n_classes in prop_oneof![0_usize..5, Just(usize::MAX)]) {
        let known = (2..5).contains(&n_classes) && labels.iter().all(|&label| (label as usize) < n_classes);
        prop_assert_eq!(Bags::from_labels(three_bags(), &labels, n_classes).is_ok(), known && labels.len() == 10);
        prop_assert_eq!(Targets::from_labels(&labels, n_classes).is_ok(), known);
        prop_assert_eq!(Supervised::new(&labels, n_classes).is_ok(), known && !labels.is_empty());
    }

    #[test]
    fn rows(n_rows in 0_usize..4, n_dense in 0_usize..3, values in prop::collection::vec(any_number(), 12), ids in prop::collection::vec(any_index(), 12), cardinalities in prop::collection::vec(any_index(), 0..3)) {
        #[expect(clippy::cast_possible_truncation, reason = "features are f32")]
        let dense = Array2::from_shape_fn((n_rows, n_dense), |(row, column)| values[row * 3 + column] as f32);
        let categories = Array2::from_shape_fn((n_rows, 2), |(row, field)| ids[row * 2 + field]);
        let whole = n_rows > 0
            && cardinalities.len() == 2
            && dense.iter().all(|value| value.is_finite())
            && categories.indexed_iter().all(|((_, field), id)| *id < cardinalities[field]);
        prop_assert_eq!(Rows::new(dense.view(), categories.view(), cardinalities.clone()).is_ok(), whole);
        prop_assert_eq!(
            Rows::dense(dense.view()).is_ok(),
            n_rows > 0 && n_dense > 0 && dense.iter().all(|value| value.is_finite())
        );
        let other_length = Array2::<u32>::zeros((n_rows + 1, 1));
        prop_assert!(Rows::new(dense.view(), other_length, vec![1]).is_err());
    }

    #[test]
    fn priors(classes in prop::collection::vec(any_number(), 0..4), positive in any_number()) {
        let whole = classes.len() >= 2
            && classes.iter().all(|p| (0.0..=1.0).contains(p))
            && (classes.iter().sum::<f64>() - 1.0).abs() < 1e-6;
        prop_assert_eq!(LabelPrior::known(classes).is_ok(), whole);
        prop_assert_eq!(LabelPrior::binary(positive).is_ok(), (0.0..=1.0).contains(&positive));
    }

    #[test]
    fn baggings(n_rows in prop_oneof![0_usize..50, Just(usize::MAX), Just(u32::MAX as usize)], size in 0_usize..9, end in 0_usize..9, list in prop::collection::vec(0_usize..9, 0..3), seed in any::<u64>()) {
        let possible = (1..50).contains(&n_rows);
        prop_assert_eq!(random(n_rows, &Sizes::Fixed(size), seed).is_ok(), possible && size > 0);
        prop_assert_eq!(random(n_rows, &Sizes::Range(size..=end), seed).is_ok(), possible && size > 0 && size <= end);
        let listed = !list.is_empty() && !list.contains(&0);
        prop_assert_eq!(random(n_rows, &Sizes::OneOf(list), seed).is_ok(), possible && listed);
    }

    #[test]
    fn splits(share in any_number(), n_folds in prop_oneof![0_usize..6, Just(usize::MAX)], keys in prop::collection::vec(any_number().prop_map(f64::to_bits), 0..6)) {
        let bags = Bags::binary(three_bags(), &[1.0, 1.0, 1.0], Noise::None).unwrap();
        prop_assert_eq!(split(&bags, share, 1).is_ok(), share > 0.0 && share < 1.0);
        prop_assert_eq!(folds(&bags, n_folds, 1).is_ok(), (2..=3).contains(&n_folds));
        prop_assert_eq!(by_key(&keys).is_ok(), !keys.is_empty());
        let selected = bags.select(&[n_folds]);
        prop_assert_eq!(selected.is_ok(), n_folds < 3);
        prop_assert!(bags.select(&[0, 0]).is_err(), "a bag taken twice has its rows twice");
    }

    #[test]
    fn scores(values in prop::collection::vec(any_number(), 12), n_rows in 0_usize..4, n_columns in 0_usize..4) {
        #[expect(clippy::cast_possible_truncation, reason = "scores are f32")]
        let scores = Array2::from_shape_fn((n_rows, n_columns), |(row, column)| values[row * 3 + column] as f32);
        let whole = scores.iter().all(|score| score.is_finite()) && n_rows > 0 && n_columns > 0;
        prop_assert_eq!(Predictions::new(scores.view(), Link::Logit).is_ok(), whole);
    }

    #[test]
    fn models(n_dense in prop_oneof![0_usize..5, Just(usize::MAX), Just(1 << 50)], cardinalities in prop::collection::vec(prop_oneof![0_u32..9, Just(u32::MAX)], 0..3), n_classes in prop_oneof![0_usize..4, Just(usize::MAX)]) {
        let total: u64 = cardinalities.iter().map(|&cardinality| u64::from(cardinality)).sum();
        // A table of 2³² − 1 lines is refused by no rule, but no test should ask the machine for it.
        prop_assume!(total < 1000 || total > u64::from(u32::MAX));
        let whole = n_dense < 5 && (2..4).contains(&n_classes) && total < 1000;
        prop_assert_eq!(LinearModel::new(n_dense, &cardinalities, n_classes).is_ok(), whole);
    }

    #[test]
    fn tables(numbers in prop::collection::vec(any_number(), 0..4), codes in prop::collection::vec(any_index(), 0..4), entries in 0_usize..3) {
        let dictionary: Vec<String> = (0..entries).map(|entry| entry.to_string()).collect();
        let whole = !numbers.is_empty()
            && numbers.len() == codes.len()
            && !numbers.iter().any(|number| number.is_infinite())
            && codes.iter().all(|&code| (code as usize) < entries);
        let columns = vec![
            ("number".to_owned(), Column::Numeric(numbers)),
            ("word".to_owned(), Column::Categorical { dictionary, codes }),
        ];
        let table = Table::new(columns);
        prop_assert_eq!(table.is_ok(), whole);
        if let Ok(table) = table {
            // Numbers whose squares overflow are refused, others are encoded.
            let encoded = Encoder::fit(&table, EncoderOptions::default()).and_then(|encoder| encoder.encode(&table));
            let told = matches!(encoded, Ok(_) | Err(Error::NumbersTooLarge { .. }));
            prop_assert!(told, "{:?}", encoded);
        }
    }

    /// What can be built can be used: corrections and estimates of any bags are values or errors, never panics.
    #[test]
    fn bags_that_stand_can_be_used(counts in prop::collection::vec(0_u8..4, 3), noise in prop::collection::vec(0.0..3.0_f64, 3), n_bags in 1_usize..4) {
        let counts: Vec<f64> = counts.into_iter().map(f64::from).collect();
        let kept: Vec<usize> = (0..n_bags).collect();
        let Ok(bags) = Bags::binary(three_bags(), &counts, Noise::Laplace(noise)) else { return Ok(()) };
        let bags = bags.select(&kept).unwrap();
        let prior = LabelPrior::pooled(&bags);
        prop_assert!((prior.classes().iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let weights = [BagWeights::Equal, BagWeights::Size, BagWeights::Variance { rho: 2.0 }, BagWeights::NoiseAware];
        for weights in weights {
            match Correction::Centred(weights).soft(&bags) {
                Ok(targets) => prop_assert!(targets.values().iter().all(|target| target.is_finite())),
                Err(error) => prop_assert!(n_bags == 1, "{}", error),
            }
        }
        for correction in [Correction::Naive, Correction::Paper(prior)] {
            prop_assert!(correction.soft(&bags).is_ok());
            let in_range = (0..n_bags).all(|bag| (0.0..=1.0).contains(&bags.proportion(bag, 1)));
            prop_assert_eq!(correction.surrogate(&bags, 1).is_ok(), in_range);
        }
        let scores = Array2::from_shape_fn((10, 1), |(row, _)| row as f32 - 4.5);
        let predictions = Predictions::new(scores.view(), Link::Logit).unwrap();
        prop_assert_eq!(Estimator::new(&bags).is_ok(), n_bags >= 2);
        if let Ok(estimator) = Estimator::new(&bags) {
            for scope in [Scope::Population, Scope::TheseRows] {
                let estimator = estimator.scope(scope);
                let estimates = [
                    estimator.log_loss(&predictions).unwrap(),
                    estimator.brier(&predictions).unwrap(),
                    estimator.error(&predictions).unwrap(),
                    estimator.mean(|row, class| (row + class) as f64),
                ];
                for estimate in estimates {
                    prop_assert!(estimate.value.is_finite() && estimate.standard_error >= 0.0, "{:?}", estimate);
                    prop_assert!(estimate.low <= estimate.high, "{:?}", estimate);
                }
            }
        }
        prop_assert_eq!(prior_interval(&bags, 1, 0.9).is_ok(), n_bags >= 2);
        match dispersion(&bags, 9, 1) {
            Ok(found) => prop_assert!((0.0..=1.0).contains(&found.over) && found.ratio >= 0.0, "{:?}", found),
            Err(error) => prop_assert!(n_bags == 1, "{}", error),
        }
    }
}
