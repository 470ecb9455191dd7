//! All scalar metrics at once, by name.

use super::{AtThreshold, Estimate, Estimator};
use crate::error::Result;
use crate::loss::Link;
use crate::predictions::Predictions;

impl Estimator<'_> {
    /// Every metric that the scores and the bags allow, with its name. Log loss and Brier score
    /// require scores that give probabilities. If no class is empty, AUC, precision, recall and F1
    /// (two classes) and balanced accuracy are included.
    pub fn metrics(&self, predictions: &Predictions) -> Result<Vec<(&'static str, Estimate)>> {
        let link = predictions.link();
        let mut figures = Vec::new();
        if link != Link::Margin {
            figures.push(("log loss", self.log_loss(predictions)?));
            figures.push(("Brier", self.brier(predictions)?));
        }
        figures.push(("accuracy", self.accuracy(predictions)?));
        if self.bags.pooled_proportions().iter().all(|&share| share > 0.0) {
            if self.bags.n_classes() == 2 {
                figures.push(("AUC", self.auc(predictions)?));
                let AtThreshold { recall, precision, f1, .. } =
                    self.at_threshold(predictions, just_above(link))?;
                figures.extend(precision.map(|precision| ("precision", precision)));
                figures.extend([("recall", recall), ("F1", f1)]);
            }
            figures.push(("balanced accuracy", self.confusion(predictions)?.balanced_accuracy));
        }
        Ok(figures)
    }
}

/// The lowest score that predicts class 1.
fn just_above(link: Link) -> f64 {
    link.threshold().next_up()
}
