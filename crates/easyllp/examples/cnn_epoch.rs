//! Milliseconds that an epoch of a convolutional network takes, on one thread and on two.
//!
//! ```text
//! cargo run --release -p easyllp --example cnn_epoch -- mnist 1x28x28
//! cargo run --release -p easyllp --example cnn_epoch -- "conv5x8 relu pool2 fc84 relu" 1x28x28 3000
//! ```
#![expect(clippy::print_stdout, reason = "what it is for")]

use easyllp::method::Event;
use easyllp::{Adam, Cnn, LossName, Optimizer, Progress, Rows, Trainer};
use ndarray::Array2;
use std::ops::ControlFlow;
use std::time::Instant;

/// Epochs, of which the fastest counts: others may use the machine too.
const EPOCHS: usize = 5;
const BATCH: usize = 256;

fn main() -> easyllp::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument =
        |place: usize, default: &str| arguments.get(place).map_or(default, String::as_str).to_owned();
    let (layers, image) = (argument(0, "mnist").parse()?, argument(1, "1x28x28").parse()?);
    let n_rows: usize = argument(2, "12000").parse().expect("a number of images");
    let most_threads: usize = argument(3, "2").parse().expect("a number of threads");
    let n_values = {
        let easyllp::model::ImageShape { channels, height, width } = image;
        channels * height * width
    };
    let pixel = |(row, pixel): (usize, usize)| ((row * 31 + pixel * 17) % 255) as f32 / 255.0;
    let rows = Rows::dense(Array2::from_shape_fn((n_rows, n_values), pixel))?;
    let labels: Vec<u32> = (0..n_rows).map(|row| u32::from(row % 3 == 0)).collect();
    for n_threads in 1..=most_threads {
        let mut model = Cnn::new(&layers, image, 2, 1)?;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().expect("threads");
        let adam = Adam { epochs: EPOCHS, batch_size: BATCH, ..Adam::default() };
        let trainer = Trainer { optimizer: Optimizer::Adam(adam), seed: 1 };
        let (mut best_epoch, mut best_batch) = (f64::INFINITY, f64::INFINITY);
        let (mut epoch, mut batch) = (Instant::now(), Instant::now());
        let mut rule = Event::new(&labels, 2)?;
        let loss = LossName::Logistic.training()?;
        let mut watch = |progress| {
            match progress {
                // The last batch of an epoch may be short.
                Progress::Batch { rows_done, .. } => {
                    if rows_done % BATCH == 0 {
                        best_batch = best_batch.min(batch.elapsed().as_secs_f64());
                    }
                    batch = Instant::now();
                }
                Progress::Epoch(_) => {
                    best_epoch = best_epoch.min(epoch.elapsed().as_secs_f64());
                    epoch = Instant::now();
                }
            }
            ControlFlow::Continue(())
        };
        pool.install(|| trainer.fit_watched(&mut model, &rows, &mut rule, loss, &mut watch))?;
        let by_batches = best_batch * n_rows as f64 / BATCH as f64;
        println!(
            "{layers} on {image}, {n_rows} images, {n_threads} threads: {:.0} ms an epoch, {:.0} ms if all batches were \
             as fast as the fastest",
            1e3 * best_epoch,
            1e3 * by_batches
        );
    }
    Ok(())
}
