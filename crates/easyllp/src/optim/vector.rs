//! Vectors that may be longer than any cache: worked on in chunks of a fixed size, which threads share.
//!
//! Sums are added chunk by chunk in order, so that their bytes do not depend on the number of threads.

use crate::kernel;
use rayon::prelude::*;

/// Numbers in a chunk; shorter vectors stay on one thread.
const CHUNK: usize = 1 << 15;

/// The dot product of two vectors of a length.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    if a.len() <= CHUNK {
        return kernel::dot(a, b);
    }
    let parts: Vec<f64> =
        a.par_chunks(CHUNK).zip(b.par_chunks(CHUNK)).map(|(a, b)| kernel::dot(a, b)).collect();
    parts.iter().sum()
}

/// Adds a vector times a factor.
pub(super) fn add_scaled(to: &mut [f64], scale: f64, values: &[f64]) {
    zip(to, values, |to, values| kernel::add_scaled(to, scale, values));
}

/// `out = from + length · direction`.
pub(super) fn step(out: &mut [f64], from: &[f64], length: f64, direction: &[f64]) {
    zip(out, from, <[f64]>::copy_from_slice);
    add_scaled(out, length, direction);
}

/// `out = a − b`.
pub(super) fn subtract(out: &mut [f64], a: &[f64], b: &[f64]) {
    step(out, a, -1.0, b);
}

/// `out = scale · values`.
pub(super) fn scaled(out: &mut [f64], scale: f64, values: &[f64]) {
    zip(out, values, |out, values| {
        out.iter_mut().zip(values).for_each(|(out, value)| *out = scale * value);
    });
}

/// `values *= scale`.
pub(super) fn scale(values: &mut [f64], scale: f64) {
    let scale_chunk = |chunk: &mut [f64]| chunk.iter_mut().for_each(|value| *value *= scale);
    if values.len() <= CHUNK {
        scale_chunk(values);
    } else {
        values.par_chunks_mut(CHUNK).for_each(scale_chunk);
    }
}

/// The largest absolute value.
pub(super) fn largest(values: &[f64]) -> f64 {
    let of_chunk = |chunk: &[f64]| chunk.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    if values.len() <= CHUNK {
        return of_chunk(values);
    }
    values.par_chunks(CHUNK).map(of_chunk).reduce(|| 0.0, f64::max)
}

fn zip(out: &mut [f64], values: &[f64], work: impl Fn(&mut [f64], &[f64]) + Sync) {
    if out.len() <= CHUNK {
        work(out, values);
    } else {
        out.par_chunks_mut(CHUNK).zip(values.par_chunks(CHUNK)).for_each(|(out, values)| work(out, values));
    }
}

/// Vectors of one length, lent and taken back: what one step allocates serves the next.
pub(super) struct Spare {
    length: usize,
    vectors: Vec<Vec<f64>>,
}

impl Spare {
    pub(super) fn new(length: usize) -> Self {
        Self { length, vectors: Vec::new() }
    }

    /// A vector, whatever is in it.
    pub(super) fn take(&mut self) -> Vec<f64> {
        self.vectors.pop().unwrap_or_else(|| vec![0.0; self.length])
    }

    pub(super) fn give<const N: usize>(&mut self, vectors: [Vec<f64>; N]) {
        self.vectors.extend(vectors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plain loops are the oracle, for vectors of one chunk and of several; one thread and many give the same bytes.
    #[test]
    fn chunks_give_what_plain_loops_give() {
        for length in [0, 5, CHUNK, 3 * CHUNK + 17] {
            let a: Vec<f64> = (0..length).map(|i| (i as f64 * 0.7).sin()).collect();
            let b: Vec<f64> = (0..length).map(|i| (i as f64 * 1.1).cos()).collect();
            let mut bytes = None;
            for n_threads in [1, 4] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
                let (product, most) = pool.install(|| (dot(&a, &b), largest(&a)));
                let expected: f64 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
                assert!((product - expected).abs() <= 1e-12 * length.max(1) as f64);
                assert!((most - a.iter().fold(0.0_f64, |most, a| most.max(a.abs()))).abs() < 1e-300);
                let mut stepped = vec![0.0; length];
                let mut negative = vec![0.0; length];
                pool.install(|| {
                    step(&mut stepped, &a, 0.5, &b);
                    scaled(&mut negative, -1.0, &a);
                    scale(&mut negative, 3.0);
                    subtract(&mut negative.clone(), &a, &b);
                });
                for place in 0..length {
                    assert!((stepped[place] - (a[place] + 0.5 * b[place])).abs() < 1e-15);
                    assert!((negative[place] + 3.0 * a[place]).abs() < 1e-15);
                }
                let of_threads = (product.to_bits(), stepped);
                assert!(bytes.get_or_insert_with(|| of_threads.clone()) == &of_threads);
            }
        }
    }
}
