//! A step of training allocates nothing but what `gemm` does: two small allocations in a product that it packs. Our
//! buffers are made before the first step, or grow in it. An iteration of L-BFGS allocates nothing as long as its vectors. In a
//! binary of its own, since it counts what all threads allocate.

#![expect(unsafe_code, reason = "an allocator that counts")]

use easyllp::method::Supervised;
use easyllp::model::{Activation, Hidden};
use easyllp::train::Aim;
use easyllp::{
    Rows,
    loss::LossName,
    model::{Cnn, EmbeddingNet, LinearModel, Mlp, Model},
    optim::{Adam, Lbfgs},
    train::{Optimizer, Progress, Trainer},
};
use ndarray::Array2;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator, with a counter.
struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is handed on to the system's allocator as it comes.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How much is allocated from the end of the second epoch to the last batch of the third, by one thread.
fn allocations_of_an_epoch(mut model: impl Model + Clone, rows: &Rows, labels: &[u32]) -> usize {
    let settings = Adam { epochs: 3, batch_size: 200, clip_norm: Some(1.0), ..Adam::default() };
    let trainer = Trainer { optimizer: Optimizer::Adam(settings), seed: 1 };
    let loss = LossName::Logistic.training().unwrap();
    let mut rule = Supervised::new(labels, 2).unwrap();
    let mut counts = [0; 2];
    let mut watch = |event| {
        match event {
            Progress::Epoch(log) if log.epoch == 2 => counts[0] = ALLOCATIONS.load(Ordering::Relaxed),
            Progress::Batch { epoch: 3, .. } => counts[1] = ALLOCATIONS.load(Ordering::Relaxed),
            _ => {}
        }
        ControlFlow::Continue(())
    };
    trainer.fit_watched(&mut model, rows, Aim::Targets(&mut rule, loss), &mut watch, None).unwrap();
    counts[1] - counts[0]
}

/// How many bytes an iteration of L-BFGS allocates on average, once its past is full, by one thread.
fn bytes_of_an_iteration(rows: &Rows, labels: &[u32]) -> usize {
    /// Steps after which all vectors are there.
    const FIRST: usize = 4;
    let settings = Lbfgs { l2: 1e-6, tolerance: 1e-12, memory: 2, ..Lbfgs::default() };
    let trainer = Trainer { optimizer: Optimizer::Lbfgs(settings), seed: 1 };
    let loss = LossName::Logistic.training().unwrap();
    let mut model = LinearModel::for_rows(rows, 2).unwrap();
    let mut bytes = Vec::with_capacity(1000);
    let mut watch = |event| {
        if let Progress::Epoch(_) = event {
            bytes.push(BYTES.load(Ordering::Relaxed));
        }
        ControlFlow::Continue(())
    };
    trainer
        .fit_watched(
            &mut model,
            rows,
            Aim::Targets(&mut Supervised::new(labels, 2).unwrap(), loss),
            &mut watch,
            None,
        )
        .unwrap();
    assert!(bytes.len() > 2 * FIRST, "{} iterations", bytes.len());
    (bytes[bytes.len() - 1] - bytes[FIRST]) / (bytes.len() - 1 - FIRST)
}

/// 1100 rows are 5 batches of two chunks and one of one.
const CHUNKS: usize = 11;

#[test]
fn a_step_allocates_nothing() {
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().unwrap();
    let dense = Array2::from_shape_fn((1100, 9), |(row, column)| ((row * 9 + column) as f32 * 0.7).sin());
    let ids = Array2::from_shape_fn((1100, 2), |(row, field)| u32::try_from(row * (field + 3) % 50).unwrap());
    let labels: Vec<u32> = (0..1100).map(|row| row % 2).collect();
    let rows = Rows::new(dense.view(), ids, vec![50, 50]).unwrap();
    let dense = Rows::dense(dense.view()).unwrap();
    let hidden = Hidden { dropout: 0.2, activation: Activation::Gelu, ..Hidden::new(&[32, 16]) };
    let linear = LinearModel::for_rows(&rows, 2).unwrap();
    assert_eq!(allocations_of_an_epoch(linear, &rows, &labels), 0, "linear");
    // Of two hundred thousand categories about two thousand occur.
    let large =
        Array2::from_shape_fn((1100, 2), |(row, field)| u32::try_from(row * 89 / (field + 1)).unwrap());
    let large = Rows::new(Array2::zeros((1100, 0)), large, vec![100_000, 100_000]).unwrap();
    let bytes = bytes_of_an_iteration(&large, &labels);
    assert!(bytes < 8000, "L-BFGS: {bytes} bytes, and a vector has 17,600");
    let mlp = Mlp::for_rows(&dense, &hidden, 2, 1).unwrap();
    // Which products are packed depends on the machine: three forward, three for weights, two for inputs at most.
    let of_mlp = allocations_of_an_epoch(mlp, &dense, &labels);
    assert!(of_mlp <= 2 * 8 * CHUNKS, "MLP: {of_mlp}");
    let net = EmbeddingNet::for_rows(&rows, 4, &hidden, 2, 1).unwrap();
    let of_net = allocations_of_an_epoch(net, &rows, &labels);
    assert!(of_net <= 2 * 9 * CHUNKS, "embedding net: {of_net}");
    // The head's products only, whatever stands before it: three features in both.
    let of_cnn = |layers: &str| {
        let cnn = Cnn::new(&layers.parse().unwrap(), "1x3x3".parse().unwrap(), 2, 1).unwrap();
        allocations_of_an_epoch(cnn, &dense, &labels)
    };
    let long = of_cnn("conv2x4:same gelu pool2:stride1 dropout0.2 conv2x3 relu fc16 tanh");
    assert!(long <= 12 * CHUNKS, "CNN: {long}");
    assert_eq!(long, of_cnn("conv3x3 fc16 tanh"), "CNN");
}
