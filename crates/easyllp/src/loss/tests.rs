use super::*;

const TRAINING: [LossName; 5] =
    [LossName::Logistic, LossName::Softmax, LossName::Squared, LossName::Brier, LossName::Hinge];

/// Scores away from the hinge's kinks, and targets well outside [0, 1].
const ONE: [(&[f64], &[f64]); 5] =
    [(&[0.3], &[0.7]), (&[-2.5], &[4.0]), (&[7.0], &[-3.0]), (&[0.0], &[0.0]), (&[-0.4], &[1.0])];
const THREE: [(&[f64], &[f64]); 3] = [
    (&[0.3, -0.2, 0.5], &[0.2, 0.5, 0.3]),
    (&[-2.0, 3.0, 0.1], &[3.0, -2.5, 0.5]),
    (&[12.0, -11.0, 0.0], &[0.0, 1.0, 0.0]),
];

#[test]
fn derivatives_equal_finite_differences() {
    for name in TRAINING {
        let loss = name.training().unwrap();
        for (scores, targets) in ONE.iter().chain(&THREE) {
            let mut slopes = vec![0.0; scores.len()];
            loss.corrected(scores, targets, &mut slopes);
            for column in 0..scores.len() {
                let shifted = |step: f64| {
                    let mut scores = scores.to_vec();
                    scores[column] += step;
                    loss.corrected(&scores, targets, &mut vec![0.0; scores.len()])
                };
                let difference = (shifted(1e-5) - shifted(-1e-5)) / 2e-5;
                assert!((difference - slopes[column]).abs() < 1e-7, "{name:?} {scores:?} {targets:?}");
            }
        }
    }
}

#[test]
fn the_corrected_loss_is_the_values_weighed_by_the_targets() {
    for name in TRAINING {
        let loss = name.training().unwrap();
        for (scores, targets) in ONE {
            let mut values = [0.0; 2];
            loss.values(scores, &mut values);
            let expected = (1.0 - targets[0]) * values[0] + targets[0] * values[1];
            assert!((loss.corrected(scores, targets, &mut [0.0]) - expected).abs() < 1e-12, "{name:?}");
        }
        for (scores, targets) in THREE {
            let mut values = [0.0; 3];
            loss.values(scores, &mut values);
            let expected: f64 = values.iter().zip(targets).map(|(value, target)| value * target).sum();
            assert!((loss.corrected(scores, targets, &mut [0.0; 3]) - expected).abs() < 1e-10, "{name:?}");
        }
    }
}

#[test]
fn known_values() {
    let at = |loss: &dyn Loss, score: f64| {
        let mut values = [0.0; 2];
        loss.values(&[score], &mut values);
        values
    };
    let close = |got: [f64; 2], expected: [f64; 2]| {
        assert!(got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-12), "{got:?}");
    };
    close(at(&Logistic, 3f64.ln()), [4f64.ln(), (4.0 / 3.0f64).ln()]);
    close(at(&Squared, 0.25), [0.0625, 0.5625]);
    close(at(&Brier, 3f64.ln()), [0.5625, 0.0625]);
    close(at(&Hinge, 0.25), [1.25, 0.75]);
    close(at(&ZeroOne { link: Link::Logit }, 0.25), [1.0, 0.0]);
    close(at(&ZeroOne { link: Link::Identity }, 0.25), [0.0, 1.0]);
}

#[test]
fn large_scores_stay_finite() {
    for name in TRAINING {
        let loss = name.training().unwrap();
        for score in [-1e4, -1e2, 1e2, 1e4] {
            let mut slope = [f64::NAN];
            let value = loss.corrected(&[score], &[1.0], &mut slope);
            assert!(value.is_finite() && slope[0].is_finite(), "{name:?} at {score}");
            let mut slopes = [f64::NAN; 3];
            let value = loss.corrected(&[score, 0.0, -score], &[0.0, 1.0, 0.0], &mut slopes);
            assert!(value.is_finite() && slopes.iter().all(|s| s.is_finite()), "{name:?} at {score}");
        }
    }
    // The right side of a large score costs nothing, the wrong side costs the score.
    assert!(Logistic.corrected(&[1e4], &[1.0], &mut [0.0]).abs() < 1e-12);
    assert!((Logistic.corrected(&[-1e4], &[1.0], &mut [0.0]) - 1e4).abs() < 1e-9);
}

#[test]
fn convexity_is_as_each_loss_says() {
    // Second differences along lines, with targets far outside [0, 1].
    for name in TRAINING {
        let loss = name.training().unwrap();
        let value = |f: f64, target: f64| loss.corrected(&[f], &[target], &mut [0.0]);
        let bend = |target: f64| {
            (-40..40)
                .map(|step| f64::from(step) / 8.0)
                .map(|f| value(f + 0.1, target) + value(f - 0.1, target) - 2.0 * value(f, target))
                .fold(f64::INFINITY, f64::min)
        };
        assert_eq!(bend(0.3) > -1e-12, loss.convexity() != Convexity::Never, "{name:?}");
        let outside = bend(5.0).min(bend(-4.0));
        assert_eq!(
            outside > -1e-12,
            loss.convexity() == Convexity::AnyTarget,
            "{name:?} has curvature {outside}"
        );
    }
}

#[test]
fn names_are_read_back() {
    for name in TRAINING.into_iter().chain([LossName::ZeroOne]) {
        assert_eq!(name.as_str().parse::<LossName>().unwrap(), name);
    }
    assert!(LossName::ZeroOne.training().is_err());
}

#[test]
fn brier_of_three_classes_is_the_squared_distance_to_the_truth() {
    let scores = [0.3_f64, -0.2, 0.5];
    let total: f64 = scores.iter().map(|f| f.exp()).sum();
    let mut values = [0.0; 3];
    Brier.values(&scores, &mut values);
    for (class, value) in values.iter().enumerate() {
        let off = |(other, f): (usize, &f64)| (f.exp() / total - f64::from(u8::from(other == class))).powi(2);
        let expected: f64 = scores.iter().enumerate().map(off).sum();
        assert!((value - expected).abs() < 1e-12, "{values:?}");
    }
}
