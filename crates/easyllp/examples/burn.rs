//! A network of one's own, written with Burn: residual blocks over the digits of optdigits, told even from odd.
//!
//! It never sees the label of a digit: only how many of each 16 are odd. How good it is, bags of other digits say.
//!
//! ```sh
//! cargo run --release --package easyllp --features burn --example burn
//! ```

use burn::module::Module;
use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::activation::gelu;
use burn::tensor::{Device, Int, Tensor};
use easyllp::model::{BurnModel, BurnScores};
use easyllp::table::{Encoder, EncoderOptions};
use easyllp::train::Aim;
use easyllp::{
    Bags, Estimate, Estimator, Predictions, Result, bagging, datasets,
    loss::LossName,
    method::EasyLlp,
    metrics,
    model::{Model, Scorer},
    optim::Adam,
    train::{Optimizer, Trainer},
};

/// Blocks of x + W₂ gelu(W₁ norm(x)), between a way in and a way out.
#[derive(Module, Debug)]
struct Residual {
    first: Linear,
    blocks: Vec<Block>,
    norm: LayerNorm,
    last: Linear,
}

#[derive(Module, Debug)]
struct Block {
    norm: LayerNorm,
    up: Linear,
    down: Linear,
}

impl Residual {
    fn new(n_inputs: usize, width: usize, n_blocks: usize, n_scores: usize, device: &Device) -> Self {
        let linear = |n_inputs, n_outputs| LinearConfig::new(n_inputs, n_outputs).init(device);
        let norm = || LayerNormConfig::new(width).init(device);
        let block = |_| Block { norm: norm(), up: linear(width, 2 * width), down: linear(2 * width, width) };
        Self {
            first: linear(n_inputs, width),
            blocks: (0..n_blocks).map(block).collect(),
            norm: norm(),
            last: linear(width, n_scores),
        }
    }
}

impl BurnScores for Residual {
    fn scores(&self, dense: Tensor<2>, _categories: Tensor<2, Int>) -> Tensor<2> {
        let mut state = self.first.forward(dense);
        for Block { norm, up, down } in &self.blocks {
            state = state.clone() + down.forward(gelu(up.forward(norm.forward(state))));
        }
        self.last.forward(self.norm.forward(state))
    }
}

#[expect(clippy::print_stdout, reason = "an example shows what it found")]
fn main() -> Result<()> {
    const SEED: u64 = 1;
    let digits = datasets::optdigits()?;
    let encoder = Encoder::fit(&digits.train.table, EncoderOptions::default())?;
    let (rows, test_rows) = (encoder.encode(&digits.train.table)?, encoder.encode(&digits.test.table)?);
    let odd = |labels: &[u32]| labels.iter().map(|digit| digit % 2).collect::<Vec<u32>>();
    let bag = |labels: &[u32]| {
        let partition = bagging::random(labels.len(), &bagging::Sizes::Fixed(16), SEED)?;
        Bags::from_labels(partition, &odd(labels), 2)
    };
    let (bags, held_out) = (bag(&digits.train.labels)?, bag(&digits.test.labels)?);

    let device = Device::flex();
    device.seed(SEED);
    let mut model = BurnModel::for_rows(Residual::new(rows.n_dense(), 32, 2, 1, &device), &rows, 2)?;
    let n_numbers = model.parameters().len();
    println!(
        "{n_numbers} parameters, {} bags of 16 to learn from, {} held out",
        bags.n_bags(),
        held_out.n_bags()
    );

    let settings = Adam { epochs: 20, weight_decay: 0.1, ..Adam::default() };
    let loss = LossName::Logistic.training()?;
    let trainer = Trainer { optimizer: Optimizer::Adam(settings), seed: SEED };
    trainer.fit(&mut model, &rows, Aim::Targets(&mut EasyLlp::new(&bags), loss))?;

    let scores = model.scores(&test_rows)?;
    let predictions = Predictions::new(scores.view(), loss.link())?;
    let Estimate { value, low, high, .. } = Estimator::new(&held_out)?.accuracy(&predictions)?;
    println!("accuracy from held-out bags: {value:.3} (95 % interval {low:.3} to {high:.3})");
    let truth = metrics::accuracy(&predictions, &odd(&digits.test.labels))?;
    println!("accuracy in truth:           {truth:.3}");
    Ok(())
}
