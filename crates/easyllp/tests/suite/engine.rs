//! Five Adam steps against PyTorch's; `engine_reference.py` beside this file made the numbers and says all formulas.

use easyllp::model::{Hidden, RowsForm};
use easyllp::train::Aim;
use easyllp::{
    ModelSpec, Result, Rows,
    correction::Targets,
    loss::LossName,
    method::{TargetRows, TargetRule},
    model::{Cnn, EmbeddingNet, ImageShape, Mlp, Model, Scorer},
    optim::Adam,
    train::{Optimizer, Trainer},
};
use ndarray::Array2;

// PyTorch 2.15.0
const MLP: [f64; 5] = [0.723_434_4, 0.467_714_8, 0.240_562_1, 0.028_801_3, -0.174_419_4];
const LENET: [f64; 5] = [0.695_844_2, 0.689_672_7, 0.685_635_7, 0.681_399_0, 0.676_511_0];
const CNN_28: [f64; 5] = [0.705_631_6, 0.739_446_5, 0.676_423_6, 0.676_745_2, 0.628_350_4];
const CNN_32: [f64; 5] = [0.721_919_7, 1.110_404_7, 0.642_016_4, 0.762_902_9, 0.725_472_2];
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
fn set_parameters(model: &mut (impl Model + Clone), place: impl Fn(&str, [usize; 2], [usize; 2]) -> usize) {
    for (number, block) in model.parameters_mut().blocks_mut().iter_mut().enumerate() {
        let (height, width) = block.values().dim();
        let values = Array2::from_shape_fn((height, width), |(line, column)| {
            let i = place(block.name(), [line, column], [height, width]);
            (0.1 * (0.7 * q(i) + number as f64).sin()) as f32
        });
        block.set(values.view()).unwrap();
    }
}

/// Where a number of ours stands in PyTorch's block of dense weights or embeddings.
fn same_place(_: &str, [line, column]: [usize; 2], [_, width]: [usize; 2]) -> usize {
    line * width + column
}

/// The targets of the reference.
struct Given;

impl TargetRule for Given {
    fn target_rows(&self) -> TargetRows {
        TargetRows { n_rows: ROWS, n_classes: 2, rows: (0..).take(ROWS).collect() }
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
fn assert_losses(mut model: impl Model + Clone, rows: &Rows, epsilon: f64, expected: [f64; 5]) {
    let settings = Adam { epochs: 5, batch_size: ROWS, epsilon, average: false, ..Adam::default() };
    let trainer = Trainer { optimizer: Optimizer::Adam(settings), seed: 1 };
    let log = trainer
        .fit(&mut model, rows, Aim::Targets(&mut Given, LossName::Logistic.training().unwrap()))
        .unwrap();
    let losses: Vec<f64> = log.epochs.iter().map(|epoch| epoch.loss).collect();
    assert!(losses.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-5), "{losses:?}");
}

#[test]
fn an_mlp_learns_as_in_pytorch() {
    let rows = Rows::dense(features(784)).unwrap();
    let mut model = Mlp::for_rows(&rows, &Hidden::new(&[256, 128]), 2, 0).unwrap();
    set_parameters(&mut model, same_place);
    assert_losses(model, &rows, 1e-8, MLP);
}

/// With SparseAdam for the table.
#[test]
fn an_embedding_net_learns_as_in_pytorch() {
    let ids = Array2::from_shape_fn((ROWS, 26), |(row, field)| {
        u32::try_from((7 * row + 13 * field + row * field) % 256).unwrap()
    });
    let rows = Rows::new(features(13), ids, vec![256; 26]).unwrap();
    let mut model = EmbeddingNet::for_rows(&rows, 16, &Hidden::new(&[256, 128]), 2, 0).unwrap();
    set_parameters(&mut model, same_place);
    assert_losses(model, &rows, 1e-12, TABLE);
}

/// A network over images whose convolutions have windows of this side, take these channels and leave this many planes of this
/// side.
fn assert_cnn(
    layers: &str,
    image: &str,
    (side, inputs): (usize, &[usize]),
    left: (usize, usize),
    expected: [f64; 5],
) {
    let image: ImageShape = image.parse().unwrap();
    let rows = Rows::dense(features(image.channels * image.height * image.width)).unwrap();
    let mut model = Cnn::new(&layers.parse().unwrap(), image, 2, 0).unwrap();
    set_parameters(&mut model, |name, [line, column], [height, width]| {
        if let Some(number) = name.strip_prefix("conv").and_then(|rest| rest.strip_suffix(".weights")) {
            // Ours: line of the window, column, input × output. PyTorch's: output, input, line, column.
            let n_inputs = inputs[number.parse::<usize>().unwrap() - 1];
            assert_eq!(height, side * side * n_inputs);
            return (column * n_inputs + line % n_inputs) * side * side + line / n_inputs;
        }
        if name == "fc1.weights" {
            // Ours: line of the image, column, channel. PyTorch's: channel, line, column.
            let (n_channels, side) = left;
            assert_eq!(height, n_channels * side * side);
            return (line % n_channels * side * side + line / n_channels) * width + column;
        }
        same_place(name, [line, column], [height, width])
    });
    assert_losses(model, &rows, 1e-8, expected);
}

#[test]
fn a_lenet_learns_as_in_pytorch() {
    assert_cnn("mnist", "1x28x28", (5, &[1, 8]), (16, 4), LENET);
}

#[test]
fn cnns_learn_as_in_pytorch() {
    assert_cnn("cifar", "1x28x28", (3, &[1, 32, 32]), (64, 7), CNN_28);
    assert_cnn("cifar", "3x32x32", (3, &[3, 32, 32]), (64, 8), CNN_32);
}

/// Sums in another order would differ in the last digits; those of a row are the same whatever it is scored with.
#[test]
fn a_row_is_scored_alike_alone_and_among_others() {
    let categories = Array2::from_shape_fn((ROWS, 2), |(row, field)| u32::from((row * (field + 3)) % 5 > 1));
    let plain = Rows::dense(features(64)).unwrap();
    let mixed = Rows::new(features(7), categories, vec![2, 2]).unwrap();
    let image = ImageShape { channels: 1, height: 8, width: 8 };
    let models = [
        ("linear", &plain, 2),
        ("linear", &mixed, 3),
        ("mlp:33,9", &plain, 2),
        ("embedding:3,mlp:17", &mixed, 4),
        ("cnn:conv3x5 relu pool2 fc21 relu", &plain, 3),
    ];
    for (name, rows, n_classes) in models {
        let form =
            RowsForm { n_dense: rows.n_dense(), cardinalities: rows.cardinalities(), image: Some(image) };
        let mut model = name.parse::<ModelSpec>().unwrap().build(form, n_classes, 1).unwrap();
        set_parameters(&mut model, same_place);
        let all = model.scores(rows).unwrap();
        for few in [&[0_u32][..], &[200], &[3, 70, 12], &[9; 15], &[5; 40]] {
            let scores = model.scores(&rows.select(few)).unwrap();
            for (&row, of_row) in few.iter().zip(scores.rows()) {
                assert_eq!(of_row, all.row(row as usize), "{name}: row {row} of {}", few.len());
            }
        }
    }
}
