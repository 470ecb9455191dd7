//! REPORT: how an experiment was made, in sentences below its title.

use crate::experiment::method::MethodName;
use crate::experiment::{Accuracy, Comparison, Experiment, Kind, POPULATION, Tracking, Variance};

/// The paper's caption of the figure that an experiment repeats; none for experiments on its theorems and for a user's own.
pub(crate) fn caption(experiment: &Experiment) -> Option<&'static str> {
    if !experiment.comes_along(false) && !experiment.comes_along(true) {
        return None;
    }
    match &experiment.kind {
        Kind::Variance(_) => Some(
            "Comparison of the variance of LLP estimates using either surrogate labels or derandomization, and either averaging over \
             the bag or using a single estimate per bag.",
        ),
        Kind::Accuracy(accuracy) if accuracy.each_class => Some(
            "Performance of various methods trained with label proportion using CIFAR-10 on specific classes.",
        ),
        Kind::Accuracy(_) => Some("Performance of various methods trained with label proportion."),
        Kind::Tracking(_) => Some(
            "Depicts the true training loss (measured using instance-level access to the training data) compared to the loss \
             estimates computed from bags.",
        ),
        Kind::Comparison(_) | Kind::Sgd(_) | Kind::Erm(_) => None,
    }
}

/// What the figures show, in three sentences.
pub(crate) fn about(kind: &Kind) -> String {
    const MEASURED: &str =
        "Dots are measured, with two standard errors to either side; dashed curves are theory.";
    match kind {
        Kind::Accuracy(accuracy) => {
            let rounds = if accuracy.held_out > 0.0 {
                "There is one figure for the best round by test labels, which is the paper's protocol, and one for the round that \
                 validation bags choose."
            } else {
                "The accuracy is that of the best round by test labels, which is the paper's protocol."
            };
            format!(
                "Test accuracy of model `{}` on {} against the bag size, one line per method. {rounds} Bands are one standard deviation \
                 over replicas.",
                accuracy.model,
                accuracy.dataset.title()
            )
        }
        Kind::Comparison(comparison) => format!(
            "Test metrics of model `{}` on {} against the bag size, one line per method. Every method has the program's default settings, \
             chosen on validation bags. Bands are one standard deviation over replicas.",
            comparison.model,
            comparison.dataset.title()
        ),
        Kind::Variance(_) => format!(
            "Variance of estimates of a mean, against the bag size and against the share of positives. {MEASURED} The centred form, the \
             default of easyllp, does not use the prior."
        ),
        Kind::Tracking(tracking) => format!(
            "Training loss by round: the true loss from row labels, and the loss estimated from bags of {} rows. The model is trained \
             with EasyLLP on bags that are regrouped in every round. Bands are one standard deviation over replicas.",
            tracking.bag_size
        ),
        Kind::Sgd(_) => format!(
            "Excess risk of the last iterate of one pass of SGD, against the number of bags and their size. {MEASURED} Lines without dots \
             have the slopes of the paper's theorem."
        ),
        Kind::Erm(_) => format!(
            "Excess risk of the empirical risk minimiser, against the number of bags and their size, with the known and with the pooled \
             prior. {MEASURED} The last figure adds the paper's bounds."
        ),
    }
}

/// The full protocol: everything that is needed to repeat the experiment.
pub(crate) fn protocol(kind: &Kind) -> String {
    match kind {
        Kind::Accuracy(accuracy) => of_accuracy(accuracy),
        Kind::Comparison(comparison) => of_comparison(comparison),
        Kind::Tracking(tracking) => of_tracking(tracking),
        Kind::Variance(variance) => of_variance(variance),
        Kind::Sgd(sgd) => {
            let (size, n_bags) = sgd.fixed();
            format!(
                "{POPULATION} {} passes at each place, each over bags of its own, with the paper's steps and the true p. Against the number of \
                 bags these have {size} rows; against their size there are {n_bags} bags. {}",
                sgd.passes,
                bars("passes")
            )
        }
        Kind::Erm(erm) => {
            let (size, n_rows) = erm.fixed();
            format!(
                "{POPULATION} {} samples at each place. Both forms are the paper's: one uses the true p; the other the share of positives p̂, pooled \
                 from the bags, as the paper recommends. {CENTRED}. Against the number of bags these have {size} rows; against their size \
                 there are {n_rows} rows in all. The paper's bounds hold with a chance of 0.95 for models with ‖w‖ ≤ ½; the fit is not held \
                 to these. {}",
                erm.samples,
                bars("samples")
            )
        }
    }
}

/// How the centred form relates to the paper's.
const CENTRED: &str = "With n bags of one size, of N rows in all, the centred form is the paper's with p̂ for p, up to a factor of \
                       (1 − 1/N)/(1 − 1/n) on α − p̂";

const BANDS: &str = "Bands, and ± in tables, are one standard deviation over replicas.";

/// The standard error of the dots.
fn bars(samples: &str) -> String {
    format!(
        "Dots have two standard errors to either side; ± in tables is one standard deviation over {samples}."
    )
}

fn of_comparison(comparison: &Comparison) -> String {
    let noise = comparison.noise.map_or_else(String::new, |scale| {
        format!(" Laplace noise of scale {scale} is added to each count, and declared.")
    });
    let sizes = comparison.smallest.map_or_else(String::new, |smallest| {
        format!(" Bags have from {smallest} rows to the size that is shown, every size alike.")
    });
    format!(
        "Each method with the program's default settings: 20 % of the bags are held out and choose penalties, epochs and stages. \
         Test labels choose nothing.{sizes}{noise} {BANDS}"
    )
}

fn of_variance(variance: &Variance) -> String {
    let n_bags = Variance::BAGS;
    format!(
        "Rows are x, drawn evenly from [0, 1], with y = 1 where x ≤ p and 0 elsewhere. What is estimated is the mean of g(x, y), which is y where x ≤ p and 0 \
         elsewhere: E g = p. It changes along the picture by shares, whose places are p. {} samples of {n_bags} bags at each place; dots have two \
         standard errors to either side. Other estimates are of single bags; centred takes those of a sample together, and its variance is shown \
         times {n_bags}.",
        variance.samples
    )
}

fn of_accuracy(accuracy: &Accuracy) -> String {
    let Accuracy { epochs, learning_rate, batch_size, held_out, rebag, .. } = accuracy;
    let mut sentences = vec![format!(
        "{epochs} rounds of Adam with steps of {learning_rate} and batches of {batch_size} rows; every round is evaluated with averaged weights."
    )];
    if accuracy.methods.contains(&MethodName::EASYLLP) {
        sentences.push(format!(
            "easyllp is the centred form. {CENTRED}; only a last bag of the rows that are left over may be smaller."
        ));
    }
    if accuracy.shares_passes() {
        sentences.push(
            "Linear models on row targets are trained in passes that tasks, methods and replicas share: all see the same batches, and \
             each learns from the rows that are not held out."
                .into(),
        );
    }
    let largest = accuracy.bag_sizes.iter().max().expect("checked");
    if largest > batch_size && accuracy.methods.iter().any(|method| method.judges_bags()) {
        sentences.push(format!(
            "For methods that learn from whole bags, such as label generation, a batch holds at least one whole bag: with more than {batch_size} \
             rows in a bag a round has fewer steps."
        ));
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
        sentences.push("Bags to train on are regrouped in every round.".into());
    }
    sentences.push("A training run that diverges counts with its earlier rounds.".into());
    sentences.push(BANDS.into());
    if accuracy.tasks.iter().any(|task| task == "one-vs-all") {
        // Every data set that has this task has ten classes.
        sentences.push("Those of one-vs-all are of means over ten tasks, not of single tasks.".into());
    }
    sentences.join(" ")
}

fn of_tracking(tracking: &Tracking) -> String {
    format!(
        "{} rounds of Adam by the centred form, on regrouped bags in every round. After each round the model, with averaged weights, scores all \
         rows to train on. The true loss is that of their labels; the estimates come from bags of {} rows that are dealt for them alone, not from \
         those that the round was trained on: from bags is the paper's form with the share of positives in these bags for p, from bags centred the centred form, \
         too near to it to be drawn. {CENTRED}. {BANDS}",
        tracking.epochs, tracking.bag_size
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::names;

    #[test]
    fn every_experiment_is_described_in_three_sentences() {
        for name in names(false).chain(names(true)) {
            let experiment = Experiment::named(name).unwrap().unwrap();
            let text = about(&experiment.kind);
            assert_eq!(text.matches(". ").count() + 1, 3, "{name}: {text}");
            let is_a_figure = !matches!(experiment.kind, Kind::Sgd(_) | Kind::Erm(_) | Kind::Comparison(_));
            assert_eq!(caption(&experiment).is_some(), is_a_figure, "{name}");
        }
    }

    #[test]
    fn every_experiment_says_how_it_was_made() {
        for name in names(false).chain(names(true)) {
            let text = protocol(&Experiment::named(name).unwrap().unwrap().kind);
            assert!(text.len() > 60 && text.ends_with('.') && !text.contains("  "), "{name}: {text}");
        }
    }

    #[test]
    fn what_is_held_fixed_is_told() {
        let of = |name: &str| protocol(&Experiment::named(name).unwrap().unwrap().kind);
        let (sgd, erm) = (of("sgd"), of("erm"));
        assert!(sgd.contains("bags these have 16 rows") && sgd.contains("there are 32000 bags"), "{sgd}");
        assert!(erm.contains("bags these have 8 rows") && erm.contains("32000 rows in all"), "{erm}");
        assert!(erm.contains("0.95") && erm.contains("the fit is not held to these"), "{erm}");
        let has_both =
            |text: &String| text.contains("two standard errors to either side") && text.contains(POPULATION);
        assert!([sgd, erm].iter().all(has_both));
        let variance = of("variance");
        assert!(variance.contains("E g = p") && variance.contains("times 16"), "{variance}");
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
        assert!(usual.contains("the centred form is the paper's with p̂ for p"), "{usual}");
        assert!(usual.contains("20 % of the bags") && usual.contains("one standard deviation over replicas"));
        // Only what is so is said.
        assert!(!usual.contains("whole bag") && !usual.contains("one-vs-all"), "{usual}");
        let text = "experiment = \"accuracy\"\ndataset = \"optdigits\"\ntasks = [\"one-vs-all\"]\nmodel = \"linear\"\n\
                    methods = [\"label-generation\"]\nbag-sizes = [256, 512]\nreplicas = 1\nepochs = 7";
        let other = protocol(&Experiment::parse("e", text).unwrap().kind);
        assert!(other.contains("with more than 256 rows in a bag a round has fewer steps"), "{other}");
        assert!(other.contains("means over ten tasks") && !other.contains("centred"), "{other}");
        assert!(usual.contains("passes that tasks, methods and replicas share") && !other.contains("passes"));
        assert!(of("held-out = 0.0").contains("No bag is held out"));
        assert!(of("rebag = true").contains("regrouped") && !usual.contains("regrouped"));
    }
}
