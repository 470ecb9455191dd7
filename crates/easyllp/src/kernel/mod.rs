//! The fast loops, each behind a safe function. The only room with `unsafe` in it.

mod convolution;
mod plane;
mod product;
mod tile;

pub(crate) use convolution::{Convolution, PackedWeights, WeightSums};
pub(crate) use plane::Plane;
pub(crate) use product::{Onto, product};
