//! Which optimizer trains a model, and which settings decide it.

use super::FitConfig;
use crate::model::ModelSpec;
use crate::session::{Method, Requires};
use std::fmt;

/// The optimizer that trains, and the settings that decide it, in backquotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptimizerChoice {
    /// `L-BFGS`, `Adam` or `SGD`.
    pub name: &'static str,
    /// Why it is not L-BFGS, the default of linear models.
    pub because: Option<String>,
    /// Whether the same model and method would use L-BFGS if `epochs`, `lr` and `batch_size` were
    /// unset.
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

impl FitConfig {
    /// The optimizer of the configured method, and why.
    pub fn optimizer_choice(&self) -> OptimizerChoice {
        let is_linear = self.model == ModelSpec::Linear;
        if self.method.requires() == Requires::OnePass {
            let because = Some(format!("method {} is one pass of it", self.method.name()));
            return OptimizerChoice { name: "SGD", because, is_by_setting: false };
        }
        let because = self.reason_for_adam(&self.method, is_linear);
        let is_by_setting = because.is_some() && Self::reason_by_nature(&self.method, is_linear).is_none();
        OptimizerChoice { name: if because.is_some() { "Adam" } else { "L-BFGS" }, because, is_by_setting }
    }

    /// Why training uses Adam, if it does.
    pub(super) fn reason_for_adam(&self, method: &dyn Method, is_linear: bool) -> Option<String> {
        let optimizer = &self.optimizer;
        let set: Vec<&str> = [
            ("`epochs`", optimizer.epochs.is_some()),
            ("`lr`", optimizer.lr.is_some()),
            ("`batch_size`", optimizer.batch_size.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, is_set)| is_set.then_some(name))
        .collect();
        let verb = if set.len() == 1 { "is" } else { "are" };
        let by_setting = || (!set.is_empty()).then(|| format!("{} {verb} set", set.join(" and ")));
        Self::reason_by_nature(method, is_linear).or_else(by_setting)
    }

    /// Why training uses Adam even if no optimizer setting is given.
    fn reason_by_nature(method: &dyn Method, is_linear: bool) -> Option<String> {
        match method.requires() {
            _ if !is_linear => Some("the model is not linear".to_owned()),
            Requires::Adam(because) => Some(because),
            Requires::AnyOptimizer | Requires::OnePass => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::OptimizerConfig;
    use std::num::NonZeroUsize;

    #[test]
    fn the_choice_says_what_decided_it() {
        let linear = FitConfig::default();
        let of_method = |words: &str| FitConfig { method: words.parse().unwrap(), ..FitConfig::default() };
        let lr = OptimizerConfig { lr: Some(0.1), ..OptimizerConfig::default() };
        let both = OptimizerConfig { batch_size: NonZeroUsize::new(8), ..lr };
        let with = |optimizer| FitConfig { optimizer, ..FitConfig::default() };
        let without =
            "; without `epochs`, `lr` and `batch_size` a linear model is fitted to convergence with L-BFGS";
        for (config, expected) in [
            (linear, "L-BFGS (a linear model is fitted to convergence)".to_owned()),
            (with(lr), format!("Adam (because `lr` is set){without}")),
            (with(both), format!("Adam (because `lr` and `batch_size` are set){without}")),
            (
                FitConfig { model: "mlp:8".parse().unwrap(), ..with(both) },
                "Adam (because the model is not linear)".into(),
            ),
            (of_method("easyllp:batches=bags"), "Adam (because `batches` is bags)".into()),
            (
                of_method("count-likelihood"),
                "Adam (because method count-likelihood trains on minibatches of whole bags)".into(),
            ),
            (of_method("easyllp-sgd"), "SGD (because method easyllp-sgd is one pass of it)".into()),
        ] {
            assert_eq!(config.optimizer_choice().to_string(), expected);
        }
    }
}
