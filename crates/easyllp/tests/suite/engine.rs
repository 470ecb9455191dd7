//! Five Adam steps against PyTorch's; `engine_reference.py` beside this file made the numbers and says all formulas.

use easyllp::model::Hidden;
use easyllp::{
    Adam, EmbeddingNet, LossName, Mlp, Model, Optimizer, Result, Rows, TargetRule, Targets, Trainer,
};
use ndarray::Array2;

// PyTorch 2.15.0
const MLP: [f64; 5] = [0.723_434_4, 0.467_714_8, 0.240_562_1, 0.028_801_3, -0.174_419_4];
const TABLE: [f64; 5] = [0.693_942_2, 0.664_247_4, 0.636_149_7, 0.608_570_3, 0.580_374_2];

const ROWS: usize = 256;

/// i² mod 10007
fn q(i: usize) -> f64 {
    (i * i % 10_007) as f64
}

#[expect(clippy::cast_possible_truncation, reason = "features are f32")]
fn features(n_features: usize) -> Array2<f32> {
    Array2::from_shape_fn((ROWS, n_features), |(row, column)| {
        (0.37 * q(row * n_features + column)).sin() as f32
    })
}

#[expect(clippy::cast_possible_truncation, reason = "parameters are f32")]
fn set_parameters(model: &mut impl Model) {
    for (number, block) in model.parameters_mut().blocks_mut().iter_mut().enumerate() {
        let width = block.values().ncols();
        let values = Array2::from_shape_fn(block.values().dim(), |(line, column)| {
            (0.1 * (0.7 * q(line * width + column) + number as f64).sin()) as f32
        });
        block.set(values.view()).unwrap();
    }
}

/// The targets of the reference.
struct Given;

impl TargetRule for Given {
    fn n_rows(&self) -> usize {
        ROWS
    }

    fn n_classes(&self) -> usize {
        2
    }

    fn rows(&self) -> Vec<u32> {
        (0..).take(ROWS).collect()
    }

    #[expect(clippy::cast_possible_truncation, reason = "targets are f32")]
    fn targets(&mut self, _epoch: usize, out: &mut Targets) -> Result<()> {
        for (row, target) in out.values_mut().iter_mut().enumerate() {
            *target = (0.5 + 1.5 * (0.9 * row as f64).sin()) as f32;
        }
        Ok(())
    }
}

/// An epoch is one batch, so that its loss is that of a step.
fn assert_losses(mut model: impl Model, rows: &Rows, epsilon: f64, expected: [f64; 5]) {
    set_parameters(&mut model);
    let settings = Adam { epochs: 5, batch_size: ROWS, epsilon, average: false, ..Adam::default() };
    let trainer = Trainer { optimizer: Optimizer::Adam(settings), seed: 1 };
    let log = trainer.fit(&mut model, rows, &mut Given, LossName::Logistic.training().unwrap()).unwrap();
    let losses: Vec<f64> = log.epochs.iter().map(|epoch| epoch.loss).collect();
    assert!(losses.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-5), "{losses:?}");
}

#[test]
fn an_mlp_learns_as_in_pytorch() {
    let rows = Rows::dense(features(784)).unwrap();
    assert_losses(Mlp::for_rows(&rows, &Hidden::new(&[256, 128]), 2, 0).unwrap(), &rows, 1e-8, MLP);
}

/// With SparseAdam for the table.
#[test]
fn an_embedding_net_learns_as_in_pytorch() {
    let ids = Array2::from_shape_fn((ROWS, 26), |(row, field)| {
        u32::try_from((7 * row + 13 * field + row * field) % 256).unwrap()
    });
    let rows = Rows::new(features(13), ids, vec![256; 26]).unwrap();
    assert_losses(
        EmbeddingNet::for_rows(&rows, 16, &Hidden::new(&[256, 128]), 2, 0).unwrap(),
        &rows,
        1e-12,
        TABLE,
    );
}
