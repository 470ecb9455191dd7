//! Training methods, one per file.
//!
//! Each file holds a method's parameters, the procedure that trains a model, and the row targets or the bag loss that it trains
//! towards. A method reads bags and labels; it does not depend on models or optimizers.
//!
//! k: rows in a bag, C: classes.
//!
#![doc = include_str!("methods.md")]

mod alternating_mean_map;
mod assignment;
mod auto;
mod config;
mod count_likelihood;
mod debiased_square;
mod easyllp;
mod easyllp_by_bag;
mod easyllp_sgd;
mod label_generation;
mod laplacian_mean_map;
mod llp_em;
mod mean_map;
mod naive;
mod proportion_matching;
mod rebagged;
mod rounds;
mod schema;
mod side_by_side;
mod supervised;

pub use crate::aim::{BagObjective, FixedTargets, TargetRows, TargetRule};
pub use crate::number::{NonNegative, Positive};
pub use alternating_mean_map::{AlternatingMeanMap, AlternatingMeanMapParams};
pub use auto::AutoParams;
pub use config::MethodConfig;
pub use count_likelihood::{CountLikelihood, CountLikelihoodParams};
pub use debiased_square::{DebiasedSquare, DebiasedSquareParams};
pub use easyllp::{Batches, Draw, EasyLlp, EasyLlpParams, TargetsFrom};
pub use easyllp_by_bag::EasyLlpByBag;
pub use easyllp_sgd::EasyLlpSgdParams;
pub use label_generation::{LabelGeneration, LabelGenerationParams, Relabel};
pub use laplacian_mean_map::{LaplacianMeanMap, LaplacianMeanMapParams};
pub use llp_em::{LlpEm, LlpEmParams};
pub use mean_map::{MeanMap, MeanMapParams};
pub use naive::{Naive, NaiveParams};
pub use proportion_matching::{Distance, ProportionMatching, ProportionMatchingParams};
pub use rebagged::Rebagged;
pub use rounds::Rounds;
pub use schema::{About, Assumes, Parameter, methods_table, parameters_tables};
pub use side_by_side::SideBySide;
pub use supervised::{Supervised, SupervisedParams};

use rebagged::check_labelled;
