//! Metrics from row labels.

use crate::classes::check_labels;
use crate::error::{Error, Result, check_length};
use crate::predictions::{Predictions, Reader};

/// Log loss: mean −log probability of the true class.
pub fn log_loss(predictions: &Predictions, labels: &[u32]) -> Result<f64> {
    predictions.check_probabilities()?;
    mean(predictions, labels, |reader, place, label, classes| {
        reader.log_losses(place, classes);
        classes[label]
    })
}

/// Brier score: mean squared difference of predicted probability and truth; of class 1 for two
/// classes, else summed over the classes.
pub fn brier(predictions: &Predictions, labels: &[u32]) -> Result<f64> {
    predictions.check_probabilities()?;
    let share = brier_share(predictions.n_classes());
    mean(predictions, labels, |reader, place, label, classes| {
        reader.probabilities(place, classes);
        classes[label] -= 1.0;
        share * classes.iter().map(|difference| difference * difference).sum::<f64>()
    })
}

/// Accuracy: the share of rows whose predicted class is right.
pub fn accuracy(predictions: &Predictions, labels: &[u32]) -> Result<f64> {
    mean(predictions, labels, |reader, place, label, classes| {
        reader.decision(place, classes);
        classes[label]
    })
}

/// Recall: the share of rows of a class that is predicted as that class. None if no row is of that
/// class.
pub fn recall(predictions: &Predictions, labels: &[u32], class: u32) -> Result<Option<f64>> {
    let found = mean(predictions, labels, |reader, place, label, classes| {
        reader.decision(place, classes);
        f64::from(u8::from(label == class as usize)) * classes[label]
    })?;
    let share = labels.iter().filter(|&&label| label == class).count() as f64 / labels.len() as f64;
    Ok((share > 0.0).then_some(found / share))
}

/// AUC: the probability that a row of class 1 has a higher score than a row of class 0; ties count
/// half. None if a class is missing. Requires two classes.
pub fn auc(predictions: &Predictions, labels: &[u32]) -> Result<Option<f64>> {
    check_length("labels, one a scored row", predictions.n_rows(), labels.len())?;
    check_labels(labels, predictions.n_classes())?;
    if predictions.n_classes() != 2 {
        return Err(Error::TwoClassesOnly { n_classes: predictions.n_classes() });
    }
    let mut reader = predictions.reader();
    let mut rows = Vec::with_capacity(labels.len());
    for (block, labels) in labels.chunks(Reader::AT_ONCE).enumerate() {
        let start = block * Reader::AT_ONCE;
        reader.load(start..start + labels.len());
        rows.extend(labels.iter().enumerate().map(|(place, &label)| (reader.score(place), label)));
    }
    rows.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (mut negatives, mut positives, mut won) = (0.0, 0.0, 0.0);
    for tied in rows.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        let of_one = tied.iter().filter(|(_, label)| *label == 1).count() as f64;
        let of_zero = tied.len() as f64 - of_one;
        won += of_one * (negatives + 0.5 * of_zero);
        negatives += of_zero;
        positives += of_one;
    }
    Ok((negatives * positives > 0.0).then(|| won / (negatives * positives)))
}

/// Both classes of a binary task differ by the same; their Brier score counts one of them.
pub(crate) fn brier_share(n_classes: usize) -> f64 {
    if n_classes == 2 { 0.5 } else { 1.0 }
}

fn mean(
    predictions: &Predictions,
    labels: &[u32],
    of_row: impl Fn(&Reader, usize, usize, &mut [f64]) -> f64,
) -> Result<f64> {
    check_length("labels, one a scored row", predictions.n_rows(), labels.len())?;
    check_labels(labels, predictions.n_classes())?;
    let mut reader = predictions.reader();
    let mut classes = vec![0.0; predictions.n_classes()];
    let mut sum = 0.0;
    for (block, labels) in labels.chunks(Reader::AT_ONCE).enumerate() {
        let start = block * Reader::AT_ONCE;
        reader.load(start..start + labels.len());
        for (place, &label) in labels.iter().enumerate() {
            sum += of_row(&reader, place, label as usize, &mut classes);
        }
    }
    Ok(sum / labels.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::Link;
    use ndarray::array;

    #[test]
    fn binary_by_hand() {
        let scores = array![[3f32.ln()], [-(3f32.ln())], [0.0]];
        let predictions = Predictions::new(scores.view(), Link::Logit).unwrap();
        let labels = [1, 1, 0];
        let close = |got: f64, expected: f64| assert!((got - expected).abs() < 1e-6, "{got} {expected}");
        close(log_loss(&predictions, &labels).unwrap(), -(0.75f64.ln() + 0.25f64.ln() + 0.5f64.ln()) / 3.0);
        close(brier(&predictions, &labels).unwrap(), (0.0625 + 0.5625 + 0.25) / 3.0);
        close(accuracy(&predictions, &labels).unwrap(), 2.0 / 3.0);
        close(recall(&predictions, &labels, 1).unwrap().unwrap(), 0.5);
        // Of the pairs (0, 2) and (1, 2) the first is won.
        close(auc(&predictions, &labels).unwrap().unwrap(), 0.5);
        close(
            auc(&Predictions::new(array![[1.0_f32], [1.0], [2.0]].view(), Link::Logit).unwrap(), &[0, 1, 1])
                .unwrap()
                .unwrap(),
            0.75,
        );
        assert_eq!(auc(&predictions, &[1, 1, 1]).unwrap(), None);
    }

    #[test]
    fn three_classes_by_hand() {
        let scores = array![[0.0, 2f32.ln(), 0.0], [2f32.ln(), 0.0, 0.0]];
        let predictions = Predictions::new(scores.view(), Link::Logit).unwrap();
        let close = |got: f64, expected: f64| assert!((got - expected).abs() < 1e-6, "{got} {expected}");
        close(log_loss(&predictions, &[1, 2]).unwrap(), 8f64.ln() / 2.0);
        close(brier(&predictions, &[1, 2]).unwrap(), (0.375 + (0.25 + 0.0625 + 0.5625)) / 2.0);
        close(accuracy(&predictions, &[1, 2]).unwrap(), 0.5);
        assert_eq!(recall(&predictions, &[1, 2], 0).unwrap(), None);
    }

    #[test]
    fn refuses_labels_and_scores_that_do_not_fit() {
        let scores = array![[0.0_f32], [1.0]];
        let margins = Predictions::new(scores.view(), Link::Margin).unwrap();
        assert!(log_loss(&margins, &[0, 1]).is_err());
        assert!(brier(&margins, &[0, 1]).is_err());
        assert!(accuracy(&margins, &[0]).is_err());
        assert!(accuracy(&margins, &[0, 2]).is_err());
        assert!((accuracy(&margins, &[0, 1]).unwrap() - 1.0).abs() < 1e-12);
        assert!(Predictions::new(array![[f32::NAN]].view(), Link::Logit).is_err());
    }
}
