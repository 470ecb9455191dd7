//! The fast loops, each behind a safe function. The only room with `unsafe` in it.

mod convolution;
mod plane;
mod pool;
mod product;
mod tile;
mod vector;

pub(crate) use convolution::{Convolution, PackedWeights, WeightSums};
pub(crate) use plane::Plane;
pub(crate) use pool::{Pool, Summary};
pub(crate) use product::{Onto, product};
