//! Which optimizer trains a model, and why: some settings decide it without naming it.

use super::Recipe;
use crate::method::MethodName;
use crate::model::ModelName;
use std::fmt;

/// Which optimizer trains, and the settings that decide it, in backquotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptimizerChoice {
    /// `L-BFGS`, `Adam` or `SGD`.
    pub name: &'static str,
    /// Why it is not the default of linear models, L-BFGS.
    pub because: Option<String>,
    /// Whether the same model and method would be trained with L-BFGS without `epochs`, `lr` and `batch_size`.
    pub is_by_setting: bool,
}

impl fmt::Display for OptimizerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.because {
            None => write!(f, "{} (a linear model is fitted to convergence)", self.name),
            Some(because) => write!(f, "{} (because {because})", self.name),
        }?;
        if self.is_by_setting {
            f.write_str(
                "; without `epochs`, `lr` and `batch_size` a linear model is fitted to convergence with L-BFGS",
            )?;
        }
        Ok(())
    }
}

impl Recipe {
    /// Which optimizer trains, and why.
    pub fn optimizer_choice(&self) -> OptimizerChoice {
        if self.method == MethodName::EasyLlpSgd {
            let because = Some(format!("method {} is one pass of it", self.method));
            return OptimizerChoice { name: "SGD", because, is_by_setting: false };
        }
        let by_nature = if self.model == ModelName::Linear {
            self.choices.reason_for_minibatches(self.method)
        } else {
            Some("the model is not linear".to_owned())
        };
        let set: Vec<&str> = [
            ("`epochs`", self.epochs.is_some()),
            ("`lr`", self.lr.is_some()),
            ("`batch_size`", self.batch_size.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, is_set)| is_set.then_some(name))
        .collect();
        let is_by_setting = by_nature.is_none() && !set.is_empty();
        let by_setting =
            || format!("{} {} set", set.join(" and "), if set.len() == 1 { "is" } else { "are" });
        let because = by_nature.or_else(|| is_by_setting.then(by_setting));
        let name = if because.is_some() { "Adam" } else { "L-BFGS" };
        OptimizerChoice { name, because, is_by_setting }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::Batches;
    use crate::recipe::Choices;
    use std::num::NonZeroUsize;

    #[test]
    fn the_choice_says_what_decided_it() {
        let linear = Recipe::default();
        let with_lr = Recipe { lr: Some(0.1), ..linear.clone() };
        let with_both = Recipe { batch_size: NonZeroUsize::new(8), ..with_lr.clone() };
        let network = Recipe { model: "mlp:8".parse().unwrap(), ..with_both.clone() };
        let by_bags = Choices { batches: Some(Batches::Bags), ..Choices::default() };
        let by_bags = Recipe { choices: by_bags, ..linear.clone() };
        let judging = Recipe { method: MethodName::CountLikelihood, ..linear.clone() };
        let one_pass = Recipe { method: MethodName::EasyLlpSgd, ..with_lr.clone() };
        let without =
            "; without `epochs`, `lr` and `batch_size` a linear model is fitted to convergence with L-BFGS";
        for (recipe, expected) in [
            (linear, "L-BFGS (a linear model is fitted to convergence)".to_owned()),
            (with_lr, format!("Adam (because `lr` is set){without}")),
            (with_both, format!("Adam (because `lr` and `batch_size` are set){without}")),
            (network, "Adam (because the model is not linear)".into()),
            (by_bags, "Adam (because `batches` bags needs minibatches)".into()),
            (judging, "Adam (because method count-likelihood needs minibatches of whole bags)".into()),
            (one_pass, "SGD (because method easyllp-sgd is one pass of it)".into()),
        ] {
            assert_eq!(recipe.optimizer_choice().to_string(), expected);
        }
    }
}
