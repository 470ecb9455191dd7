//! The network as a whole: gradients, sameness, refusals. Kernels are tested beside themselves.

use super::*;
use crate::error::Error;
use crate::loss::LossName;
use crate::method::Supervised;
use crate::model::Scorer;
use crate::optim::Adam;
use crate::train::Aim;
use crate::train::{Optimizer, Trainer};

fn model(layers: &str, image: &str, n_classes: usize) -> Cnn {
    Cnn::new(&layers.parse().unwrap(), image.parse().unwrap(), n_classes, 3).unwrap()
}

fn images(model: &Cnn, n_rows: usize) -> Rows<'static> {
    let ImageShape { channels, height, width } = model.image();
    let pixel = |(row, pixel): (usize, usize)| ((row * 71 + pixel * 13) as f32 * 0.37).sin();
    Rows::dense(Array2::from_shape_fn((n_rows, channels * height * width), pixel)).unwrap()
}

const LEARN: Pass = Pass::Learn { draw: 9 };

fn scores(model: &Cnn, rows: &Rows, pass: Pass, tape: &mut CnnTape) -> Array2<f32> {
    let mut scores = Array2::zeros((rows.n_rows(), model.n_scores()));
    model.forward(&rows.as_dense().unwrap().batch(0..rows.n_rows()), pass, tape, scores.view_mut());
    scores
}

/// The loss is Σ c·score with odd factors c.
fn check_gradient(layers: &str, image: &str) {
    let n_rows = 3;
    let model = model(layers, image, 3);
    let rows = images(&model, n_rows);
    let dscores = Array2::from_shape_fn((n_rows, 3), |(i, j)| ((i + 2 * j) as f32 + 0.3).cos());
    let mut tape = CnnTape::default();
    scores(&model, &rows, LEARN, &mut tape);
    let mut gradient = model.parameters.zero_gradient();
    (0..model.parameters.0.len()).for_each(|block| gradient.dense_mut(block).fill(f32::NAN));
    model.backward(&rows.as_dense().unwrap().batch(0..n_rows), &mut tape, dscores.view(), &mut gradient);
    for block in 0..model.parameters.0.len() {
        let slopes = gradient.dense_mut(block).clone();
        // All of a few, a few of many.
        for (place, &slope) in slopes.indexed_iter().step_by(1 + slopes.len() / 97) {
            let mut shifted = model.clone();
            let [below, here, above] = [-0.002, 0.0, 0.002].map(|step| {
                shifted.parameters.0[block].values[place] = model.parameters.0[block].values[place] + step;
                (&scores(&shifted, &rows, LEARN, &mut tape) * &dscores).mapv(f64::from).sum()
            });
            // On one side of a kink, if not on both.
            let differences = [above - below, 2.0 * (above - here), 2.0 * (here - below)].map(|d| d / 0.004);
            let close = differences.iter().any(|d| (d - f64::from(slope)).abs() < 2e-3 + 1e-3 * d.abs());
            let name = model.parameters.0[block].name();
            assert!(close, "{layers}, {name} at {place:?}: {slope} {differences:?}");
        }
    }
}

#[test]
fn the_gradient_equals_finite_differences_for_each_kind_of_layer() {
    for (layers, image) in [
        ("conv3x5", "1x5x4"),
        ("conv1x3 tanh", "2x3x3"),
        ("conv3x5 relu conv2x3 gelu", "2x6x5"),
        ("conv3x5:same relu conv3x17:same relu", "1x4x5"),
        ("conv2x3:same:stride2 tanh conv3x4:stride2 relu", "3x11x9"),
        ("conv3x4 relu pool2 conv2x3 tanh", "1x8x9"),
        ("conv3x4 pool2 conv2x3 tanh", "1x8x9"),
        ("conv3x4 tanh pool3:stride2 avgpool2", "1x11x11"),
        ("conv3x4:same gelu avgpool3:stride1 conv3x3:same", "1x6x6"),
        ("pool2 dropout0.3 conv3x4 relu dropout0.4 conv3x3:same relu pool2 dropout0.2", "2x12x12"),
        ("conv3x4 relu pool2 fc7 gelu dropout0.3 fc5 gelu dropout0.3", "1x8x8"),
        ("conv3x4 relu pool2 fc9 relu dropout0.3 fc7 tanh fc6 gelu dropout0.2 fc5 relu", "1x8x8"),
        ("fc7 tanh", "2x3x2"),
        ("pool2", "2x4x4"),
    ] {
        check_gradient(layers, image);
    }
}

/// The built-in networks without their kinks, some of which a difference would cross among this many pixels.
#[test]
fn the_gradient_equals_finite_differences_in_networks_of_full_size() {
    for (layers, image) in [(Architecture::MNIST, "1x28x28"), (Architecture::CIFAR, "3x12x12")] {
        check_gradient(&layers.replace("relu", "tanh").replace("pool", "avgpool"), image);
    }
}

#[test]
fn an_image_by_hand() {
    // Two channels, 2 × 3 pixels, one window of 2 × 2 that picks single numbers.
    let mut model = model("conv2x1 relu", "2x2x3", 2);
    let rows = Rows::dense(Array2::from_shape_fn((1, 12), |(_, i)| i as f32)).unwrap();
    let pick = |ky: usize, kx: usize, channel: usize| (ky * 2 + kx) * 2 + channel;
    let blocks = model.parameters_mut().blocks_mut();
    let mut weights = Array2::zeros((8, 1));
    weights[[pick(0, 1, 0), 0]] = 1.0;
    weights[[pick(1, 0, 1), 0]] = 100.0;
    blocks[0].set(weights.view()).unwrap();
    blocks[1].set(ndarray::array![[0.5]].view()).unwrap();
    blocks[2].set(ndarray::array![[1.0], [0.0]].view()).unwrap();
    blocks[3].set(ndarray::array![[0.25]].view()).unwrap();
    // Channel 0 at (0, 1) is 1, channel 1 at (1, 0) is 6 + 3.
    assert_eq!(model.scores(&rows).unwrap(), ndarray::array![[1.0 + 900.0 + 0.5 + 0.25]]);
    let names: Vec<&str> = model.parameters().blocks().iter().map(Block::name).collect();
    assert_eq!(names, ["conv1.weights", "conv1.bias", "fc1.weights", "fc1.bias"]);
}

#[test]
fn weights_are_drawn_from_the_seed_within_their_bounds() {
    let model = |seed| Cnn::new(&"cifar".parse().unwrap(), "3x16x16".parse().unwrap(), 2, seed).unwrap();
    assert_eq!(model(1), model(1));
    assert_ne!(model(1), model(2));
    let inputs = [27, 27, 288, 288, 288, 288, 1024, 1024, 128, 128];
    for (block, inputs) in model(1).parameters().blocks().iter().zip(inputs) {
        let bound = 1.0 / (inputs as f32).sqrt();
        let largest = block.values().iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        assert!(largest <= bound, "{} {largest}", block.name());
        assert!(largest > 0.9 * bound || block.values().len() < 20, "{} {largest}", block.name());
    }
}

#[test]
fn a_used_tape_changes_nothing() {
    let first = model("conv3x5:same relu pool2 dropout0.5 conv2x4 tanh fc6 relu", "1x8x8", 2);
    let other = model("conv3x5:same gelu conv3x5:same relu fc6 relu", "2x8x8", 2);
    let (rows, others) = (images(&first, 5), images(&other, 5));
    let fresh = scores(&first, &rows, LEARN, &mut CnnTape::default());
    let mut tape = CnnTape::default();
    scores(&other, &others, LEARN, &mut tape);
    assert_eq!(fresh, scores(&first, &rows, LEARN, &mut tape));
    scores(&first, &rows, Pass::Score, &mut tape);
    assert_eq!(fresh, scores(&first, &rows, LEARN, &mut tape));
    assert_ne!(fresh, scores(&first, &rows, Pass::Learn { draw: 10 }, &mut tape));
    // Another kernel that makes images of the same shape.
    let [wide, narrow] = ["conv3x4 relu", "conv2x4:stride2 relu"].map(|layers| model(layers, "1x4x4", 2));
    let rows_of_both = images(&wide, 5);
    let gradient_of = |model: &Cnn, tape: &mut CnnTape| {
        let mut gradient = model.parameters.zero_gradient();
        let batch = rows_of_both.as_dense().unwrap().batch(0..5);
        let mut scores = Array2::zeros((5, 1));
        model.forward(&batch, LEARN, tape, scores.view_mut());
        model.backward(&batch, tape, scores.view(), &mut gradient);
        (0..2).map(|block| gradient.dense_mut(block).clone()).collect::<Vec<_>>()
    };
    let fresh_gradient = gradient_of(&narrow, &mut CnnTape::default());
    gradient_of(&wide, &mut tape);
    assert_eq!(fresh_gradient, gradient_of(&narrow, &mut tape));
    // Images lie side by side on the tape, but do not see each other.
    let one_by_one = Rows::dense(rows.as_dense().unwrap().batch(2..3).dense).unwrap();
    let all = first.scores(&rows).unwrap();
    assert_eq!(all.row(2), first.scores(&one_by_one).unwrap().row(0));
    let by_columns = rows.as_dense().unwrap().batch(0..5).dense.t().as_standard_layout().into_owned();
    assert_eq!(all, first.scores(&Rows::dense(by_columns.t()).unwrap()).unwrap());
}

#[test]
fn steps_use_the_same_memory_again() {
    let model = model("conv3x5:same gelu pool2 dropout0.5 conv2x4 tanh fc6 relu", "1x8x8", 2);
    let rows = images(&model, 4);
    let mut tape = CnnTape::default();
    let mut gradient = model.parameters.zero_gradient();
    let mut step = |n_rows: usize| {
        let mut scores = Array2::zeros((n_rows, 1));
        let batch = rows.as_dense().unwrap().batch(0..n_rows);
        model.forward(&batch, LEARN, &mut tape, scores.view_mut());
        model.backward(&batch, &mut tape, scores.view(), &mut gradient);
        tape.body.places()
    };
    let first = step(4);
    assert_eq!(first, step(4));
    assert_eq!(first, step(3));
}

#[test]
fn threads_do_not_change_a_byte() {
    let train = |n_threads| {
        let mut model = model("conv3x5:same relu pool2 dropout0.2 conv2x4 tanh fc6 relu", "1x8x8", 2);
        let rows = images(&model, 700);
        let labels: Vec<u32> = (0..700).map(|row| row % 2).collect();
        let adam = Adam { epochs: 2, batch_size: 300, ..Adam::default() };
        let trainer = Trainer { optimizer: Optimizer::Adam(adam), seed: 1 };
        let loss = LossName::Logistic.training().unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| {
            trainer.fit(&mut model, &rows, Aim::Targets(&mut Supervised::new(&labels, 2).unwrap(), loss))
        })
        .unwrap();
        model
    };
    let one = train(1);
    assert_eq!(one, train(2));
    assert_eq!(one, train(3));
}

/// A bright spot above or below the middle, anywhere else: no single pixel tells.
#[test]
fn learns_what_a_linear_model_cannot() {
    let mut model = model("conv3x8:same relu pool2 conv3x8 relu fc16 relu", "1x10x10", 2);
    let n_rows = 1200;
    let label = |row: usize| u32::from((row * 7 + row / 5) % 2 == 1);
    let pattern = |(row, pixel): (usize, usize)| {
        let (x, y) = ((row * 5) % 8, (row * 3 / 2) % 8);
        let (dx, dy) = ((pixel % 10).wrapping_sub(x), (pixel / 10).wrapping_sub(y));
        // A diagonal stroke, or the other one.
        let on = dx < 3 && dy < 3 && if label(row) == 1 { dx == dy } else { dx + dy == 2 };
        f32::from(u8::from(on))
    };
    let rows = Rows::dense(Array2::from_shape_fn((n_rows, 100), pattern)).unwrap();
    let labels: Vec<u32> = (0..n_rows).map(label).collect();
    let adam = Adam { epochs: 8, batch_size: 50, learning_rate: 0.005, ..Adam::default() };
    let trainer = Trainer { optimizer: Optimizer::Adam(adam), seed: 1 };
    let loss = LossName::Logistic.training().unwrap();
    trainer.fit(&mut model, &rows, Aim::Targets(&mut Supervised::new(&labels, 2).unwrap(), loss)).unwrap();
    let scores = model.scores(&rows).unwrap();
    let right =
        labels.iter().zip(scores.column(0)).filter(|(label, score)| (**label == 1) == (**score > 0.0));
    assert!(right.count() as f64 / n_rows as f64 > 0.97);
}

#[test]
fn refuses_rows_of_another_form() {
    let model = model("conv3x5", "1x8x8", 2);
    let rows = Rows::dense(Array2::<f32>::zeros((2, 63))).unwrap();
    assert_eq!(
        model.scores(&rows).unwrap_err().to_string(),
        "dense features, the numbers of an image: expected 64, got 63"
    );
    let rows = Rows::new(Array2::<f32>::zeros((2, 64)), Array2::zeros((2, 1)), vec![1]).unwrap();
    assert!(matches!(model.scores(&rows), Err(Error::Shape { what: "categorical fields", .. })));
    let new =
        |layers: &str, n_classes| Cnn::new(&layers.parse().unwrap(), "1x8x8".parse().unwrap(), n_classes, 0);
    assert!(new("conv3x5", 1).is_err());
    assert!(new("conv9x5", 2).unwrap_err().to_string().starts_with("layer 1, `conv9x5`"));
    assert!(new("fc99999999999999 relu", 2).is_err());
}
