//! The fast loops, each behind a safe function. The only room with `unsafe` in it.

mod product;

pub(crate) use product::{Onto, product};
