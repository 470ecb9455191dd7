//! REPORT: how an experiment was made, in the sentences that stand under its headline.

use crate::experiment::{Accuracy, Kind, Tracking, Variance};
use easyllp::MethodName;

/// What one must know to read its figures.
pub(crate) fn protocol(kind: &Kind) -> String {
    match kind {
        Kind::Accuracy(accuracy) => of_accuracy(accuracy),
        Kind::Tracking(tracking) => of_tracking(tracking),
        Kind::Variance(variance) => format!(
            "{} samples of {} bags at each place; dots have two standard errors to either side.",
            variance.samples,
            Variance::BAGS
        ),
        Kind::Sgd(sgd) => format!(
            "{} passes at each place, each over bags of its own, with the paper's steps and the true p.",
            sgd.passes
        ),
        Kind::Erm(erm) => format!(
            "{} samples at each place. The paper's form is told the true p; the centred form, which is not the paper's, needs none.",
            erm.samples
        ),
    }
}

fn of_accuracy(accuracy: &Accuracy) -> String {
    let Accuracy { epochs, learning_rate, batch_size, held_out, rebag, .. } = accuracy;
    let mut sentences = vec![format!(
        "{epochs} rounds of Adam with steps of {learning_rate} and batches of {batch_size} rows; every round is judged by its averaged weights."
    )];
    if accuracy.methods.contains(&MethodName::EasyLlp) {
        sentences.push("easyllp is the centred form, not the paper's.".into());
    }
    sentences.push(if *held_out > 0.0 {
        format!(
            "{:.0} % of the bags are held out of every training and choose a round by their Brier score. The best round by test labels is thus \
             of models that saw the rest only, which is not quite the paper's protocol.",
            100.0 * held_out
        )
    } else {
        "No bag is held out.".into()
    });
    if *rebag {
        sentences.push("Bags to train on are dealt anew in every round.".into());
    }
    sentences.push("A training that runs away counts with the rounds before.".into());
    sentences.join(" ")
}

fn of_tracking(tracking: &Tracking) -> String {
    format!(
        "{} rounds of Adam by the centred form, on bags dealt anew in every round. After each round the model, with averaged weights, scores all \
         rows to train on. The true loss is that of their labels; the estimates come from bags of {} rows that are dealt for them alone, not from \
         those that the round was trained on: from bags is the paper's form with the share of positives in these bags for p, from bags centred the other.",
        tracking.epochs, tracking.bag_size
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Experiment, names};

    #[test]
    fn every_experiment_says_how_it_was_made() {
        for name in names(false).chain(names(true)) {
            let text = protocol(&Experiment::named(name).unwrap().unwrap().kind);
            assert!(text.len() > 60 && text.ends_with('.') && !text.contains("  "), "{name}: {text}");
        }
    }

    #[test]
    fn what_is_not_the_papers_is_told() {
        let of = |more: &str| {
            let text = format!(
                "experiment = \"accuracy\"\ndataset = \"optdigits\"\ntasks = [\"3\"]\nmodel = \"linear\"\n\
                 methods = [\"easyllp\"]\nbag-sizes = [2]\nreplicas = 1\nepochs = 7\n{more}"
            );
            protocol(&Experiment::parse("e", &text).unwrap().kind)
        };
        let usual = of("");
        assert!(usual.starts_with("7 rounds of Adam with steps of 0.001 and batches of 256 rows"), "{usual}");
        assert!(
            usual.contains("centred form, not the paper's") && usual.contains("20 % of the bags"),
            "{usual}"
        );
        assert!(of("held-out = 0.0").contains("No bag is held out"));
        assert!(of("rebag = true").contains("dealt anew") && !usual.contains("dealt anew"));
    }
}
