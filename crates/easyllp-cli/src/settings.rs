//! Settings of a fit on the command line, which override those of a file.

use crate::commands::parse_count;
use crate::config::ConfigFile;
use crate::method::MethodSetting;
use clap::Args;
use easyllp::fit::{Penalty, ValidationMetric};
use easyllp::{ModelSpec, loss::LossName, model::ImageShape};
use serde::de::DeserializeOwned;
use std::num::NonZeroUsize;

/// Each option overrides the key of the same meaning in a file.
#[derive(Debug, Args)]
#[command(next_help_heading = "Training")]
pub(crate) struct FitArgs {
    /// Method and parameters, such as easyllp:bag_weights=size. `easyllp methods` lists the methods, `easyllp methods NAME` the
    /// parameters. Give a prior of several classes in the order of --count. [default: easyllp]
    #[arg(long, value_name = "NAME:PARAM=VALUE,...")]
    method: Option<MethodSetting>,

    /// Model: linear, mlp:256,128, embedding:16,mlp:256,128, cnn:mnist, cnn:cifar or cnn:LAYERS, such as 'cnn:conv5x8 relu
    /// pool2 fc120 relu'. [default: linear]
    #[arg(long, value_name = "MODEL")]
    model: Option<ModelSpec>,

    /// Shape of the images, for a cnn. [default: inferred from the files]
    #[arg(long, value_name = "CxHxW")]
    image: Option<ImageShape>,

    /// Loss: logistic, softmax, squared or brier. For networks squared or brier is often better. [default: cross-entropy]
    #[arg(long, value_name = "LOSS")]
    loss: Option<LossName>,

    /// L2 penalty of a linear model, l2/2·‖w‖²: a number, or `auto` for the best of up to eight on validation bags. With Adam it is
    /// the weight decay. [default: auto; with Adam 0]
    #[arg(long, value_name = "L2", allow_negative_numbers = true)]
    l2: Option<Penalty>,

    /// Train with Adam for at most N epochs, with early stopping on validation bags. Without --epochs, --lr and --batch-size a linear
    /// model is fitted to convergence (L-BFGS). [default for networks: 40]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    epochs: Option<NonZeroUsize>,

    /// Train with Adam at this learning rate. For easyllp-sgd it scales the step sizes of the paper. [default: 0.001; easyllp-sgd 1]
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    lr: Option<f64>,

    /// Train with Adam on minibatches of N rows. [default: 256]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    batch_size: Option<NonZeroUsize>,

    /// Share of the bags to hold out as validation bags, from 0 (none) to below 1. [default: 0.2]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    holdout: Option<f64>,

    /// Validation metric that chooses the model and stops training: brier or error. [default: brier]
    #[arg(long, value_name = "METRIC", value_parser = parse_word::<ValidationMetric>)]
    stop_by: Option<ValidationMetric>,

    /// Stop training after N epochs in a row without improvement. [default: 10]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    patience: Option<NonZeroUsize>,

    /// Smooth the validation metric over the last N epochs. [default: 1]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    smoothing: Option<NonZeroUsize>,

    /// Seed of the split, of initial weights and of minibatches. [default: 1]
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
}

/// Parses a value by its serde name.
fn parse_word<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(text.into())
        .map_err(|error| error.to_string().replace("unknown variant", "unknown value"))
}

impl FitArgs {
    /// Overrides the settings of a file.
    pub(crate) fn override_in(&self, file: &mut ConfigFile) {
        fn set<T: Clone>(field: &mut T, given: Option<&T>) {
            if let Some(value) = given {
                field.clone_from(value);
            }
        }
        fn set_some<T: Copy>(field: &mut Option<T>, given: Option<T>) {
            *field = given.or(*field);
        }
        set(&mut file.method, self.method.as_ref());
        set(&mut file.model, self.model.as_ref());
        set_some(&mut file.image, self.image);
        set_some(&mut file.loss, self.loss);
        set_some(&mut file.optimizer.l2, self.l2);
        set_some(&mut file.optimizer.epochs, self.epochs);
        set_some(&mut file.optimizer.lr, self.lr);
        set_some(&mut file.optimizer.batch_size, self.batch_size);
        set(&mut file.validation.share, self.holdout.as_ref());
        set(&mut file.validation.metric, self.stop_by.as_ref());
        set(&mut file.validation.patience, self.patience.as_ref());
        set(&mut file.validation.smoothing, self.smoothing.as_ref());
        set(&mut file.seed, self.seed.as_ref());
    }
}
