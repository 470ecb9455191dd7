//! Our side of the comparison with PyTorch: trains one workload and prints the milliseconds of each epoch as JSON.
//!
//! `ours W2 1 5` trains the workload W2 on 1 thread for one epoch to warm up and 5 to be timed; `ours peak 1 5` measures
//! the machine's matrix product instead.

use easyllp::loss::{Convexity, Logistic, Loss, TrainingLoss};
use easyllp::method::{TargetRows, TargetRule};
use easyllp::model::Hidden;
use easyllp::train::Aim;
use easyllp::{
    Result, Rows,
    correction::Targets,
    loss::Link,
    model::{Cnn, EmbeddingNet, LinearModel, Mlp, Model},
    optim::Adam,
    train::{Optimizer, Progress, Trainer},
};
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use std::ops::ControlFlow;
use std::time::Instant;

const ROWS: usize = 12_000;
const TABLE_ROWS: usize = 100_000;
const FIELDS: usize = 26;
const BUCKETS: u32 = 1 << 18;

/// How a workload is measured.
#[derive(Clone, Copy)]
struct Measure {
    epochs: usize,
    batch_size: usize,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, workload, threads, epochs] = arguments.as_slice() else {
        panic!("usage: ours WORKLOAD THREADS EPOCHS");
    };
    let number = |text: &String| text.parse::<usize>().expect("a whole number");
    let (threads, epochs) = (number(threads), number(epochs));
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().expect("the first pool");
    let by_256 = Measure { epochs, batch_size: 256 };
    match workload.as_str() {
        "peak" => {
            peak(threads, epochs);
            Ok(())
        }
        "W1" => time(by_256, LinearModel::new(784, &[], 2)?, &images(784)?),
        "W1b" => time(by_256, LinearModel::new(784, &[], 32)?, &images(784)?),
        "W2" => time(by_256, Mlp::new(784, &Hidden::new(&[256, 128]), 2, 1)?, &images(784)?),
        "W3" => time(by_256, Cnn::new(&"mnist".parse()?, "1x28x28".parse()?, 2, 1)?, &images(784)?),
        "W4" => time(by_256, Cnn::new(&"cifar".parse()?, "1x28x28".parse()?, 2, 1)?, &images(784)?),
        "W6" => time(by_256, Cnn::new(&"cifar".parse()?, "3x32x32".parse()?, 2, 1)?, &images(3072)?),
        "W5" => {
            let rows = table()?;
            let model = EmbeddingNet::for_rows(&rows, 16, &Hidden::new(&[256, 128]), 2, 1)?;
            time(Measure { batch_size: 1024, ..by_256 }, model, &rows)
        }
        _ => panic!("no workload {workload}"),
    }
}

/// Numbers that look random enough for a clock.
fn noise(place: usize) -> u32 {
    let mut hash = u32::try_from(place & 0xffff_ffff).expect("32 bits").wrapping_mul(0x9e37_79b9);
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x7feb_352d);
    hash ^ (hash >> 15)
}

fn images(n_features: usize) -> Result<Rows<'static>> {
    Rows::dense(Array2::from_shape_fn((ROWS, n_features), |(row, column)| {
        (noise(row * n_features + column) % 256) as f32 / 255.0
    }))
}

fn table() -> Result<Rows<'static>> {
    let dense = Array2::from_shape_fn((TABLE_ROWS, 13), |(row, column)| {
        (noise(row * 13 + column) % 256) as f32 / 128.0 - 1.0
    });
    let ids =
        Array2::from_shape_fn((TABLE_ROWS, FIELDS), |(row, field)| noise(row * FIELDS + field) % BUCKETS);
    Rows::new(dense, ids, vec![BUCKETS; FIELDS])
}

/// Fixed targets, some of them outside [0, 1], as bags give them.
struct Given {
    n_rows: usize,
    n_columns: usize,
}

impl TargetRule for Given {
    fn target_rows(&self) -> TargetRows {
        TargetRows {
            n_rows: self.n_rows,
            n_classes: self.n_columns.max(2),
            rows: (0..).take(self.n_rows).collect(),
        }
    }

    fn targets(&mut self, epoch: usize, out: &mut Targets) -> Result<()> {
        if epoch == 0 {
            out.values_mut().indexed_iter_mut().for_each(|((row, column), target)| {
                *target = (noise(row * self.n_columns + column + 7) % 140) as f32 / 100.0 - 0.2;
            });
        }
        Ok(())
    }
}

/// One model a column, as a sweep has them: softplus(f) − A·f in each.
struct Columns;

impl Loss for Columns {
    fn name(&self) -> &'static str {
        "columns"
    }

    fn link(&self) -> Link {
        Link::Logit
    }

    fn values(&self, scores: &[f64], out: &mut [f64]) {
        Logistic.values(scores, out);
    }

    fn convexity(&self) -> Convexity {
        Convexity::AnyTarget
    }
}

impl TrainingLoss for Columns {
    fn curvature(&self, mean_targets: &[f64]) -> f64 {
        Logistic.curvature(mean_targets)
    }

    fn corrected(&self, scores: &[f64], targets: &[f64], derivative: &mut [f64]) -> f64 {
        Logistic.corrected(scores, targets, derivative)
    }

    fn corrected_batch(
        &self,
        scores: ArrayView2<f32>,
        targets: ArrayView2<f32>,
        derivative: ArrayViewMut2<f32>,
    ) -> f64 {
        Logistic.corrected_batch(scores, targets, derivative)
    }
}

#[expect(clippy::print_stdout, reason = "the result")]
fn time<M: Model + Clone>(measure: Measure, mut model: M, rows: &Rows) -> Result<()> {
    let Measure { epochs, batch_size } = measure;
    let mut rule = Given { n_rows: rows.n_rows(), n_columns: model.n_scores() };
    let settings = Adam { epochs: epochs + 1, batch_size, average: false, ..Adam::default() };
    let trainer = Trainer { optimizer: Optimizer::Adam(settings), seed: 1 };
    let mut ends = Vec::new();
    let log = trainer.fit_watched(
        &mut model,
        rows,
        Aim::Targets(&mut rule, &Columns),
        &mut |event| {
            if matches!(event, Progress::Epoch(_)) {
                ends.push(Instant::now());
            }
            ControlFlow::Continue(())
        },
        None,
    )?;
    let epochs: Vec<f64> = ends.windows(2).map(|pair| 1e3 * (pair[1] - pair[0]).as_secs_f64()).collect();
    let loss = log.epochs.last().map_or(f64::NAN, |epoch| epoch.loss);
    println!(r#"{{"ms": {epochs:?}, "loss": {loss}}}"#);
    Ok(())
}

/// GFLOP/s of matrix products of 1024³, one per thread at the same time.
#[expect(clippy::print_stdout, reason = "the result")]
fn peak(threads: usize, rounds: usize) {
    const N: usize = 1024;
    let factors = [0.5_f32, 0.25].map(|value| Array2::from_elem((N, N), value));
    let mut rates: Vec<f64> = Vec::new();
    for _ in 0..=rounds {
        let start = Instant::now();
        rayon::broadcast(|_| square_product(N, &factors));
        rates.push(2e-9 * (threads * N * N * N) as f64 / start.elapsed().as_secs_f64());
    }
    println!(r#"{{"gflops": {:?}}}"#, &rates[1..]);
}

#[expect(unsafe_code, clippy::cast_possible_wrap, reason = "gemm takes raw pointers and signed strides")]
fn square_product(n: usize, factors: &[Array2<f32>; 2]) {
    let mut out = vec![0.0_f32; n * n];
    let [lhs, rhs] = factors.each_ref().map(Array2::as_ptr);
    let by_row = n as isize;
    let sequential = gemm::Parallelism::None;
    // SAFETY: three matrices of n × n by rows, of which the output belongs to this function.
    unsafe {
        gemm::gemm(
            n,
            n,
            n,
            out.as_mut_ptr(),
            1,
            by_row,
            false,
            lhs,
            1,
            by_row,
            rhs,
            1,
            by_row,
            1.0_f32,
            1.0_f32,
            false,
            false,
            false,
            sequential,
        );
    }
    std::hint::black_box(out);
}
