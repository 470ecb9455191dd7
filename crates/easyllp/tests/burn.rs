//! Networks written with Burn. A test binary of its own: it alone needs Burn, which takes minutes to compile.
//!
//! Weights are set by hand: Burn's initializers draw from the process's one random stream, and would disturb the dropout of a
//! test beside them.

use burn::module::{Initializer, Module, Param};
use burn::nn::{
    BatchNorm, BatchNormConfig, Dropout, DropoutConfig, Embedding, EmbeddingConfig, LayerNorm,
    LayerNormConfig, Linear, LinearConfig,
};
use burn::tensor::activation::{relu, sigmoid, tanh};
use burn::tensor::{Device, Int, Tensor, TensorData};
use easyllp::bagging::{self, Sizes};
use easyllp::model::{Block, BurnModel, BurnScores, Hidden, Pass, Updates};
use easyllp::train::Aim;
use easyllp::{
    Bags, Error, Rows,
    classes::n_columns,
    loss::LossName,
    method::EasyLlp,
    model::{Mlp, Model, Scorer},
    optim::Adam,
    rows::RowBatch,
    train::{Optimizer, TrainLog, Trainer},
};
use ndarray::Array2;

fn linear(n_inputs: usize, n_outputs: usize) -> Linear {
    LinearConfig::new(n_inputs, n_outputs).with_initializer(Initializer::Zeros).init(&Device::flex())
}

/// An [`Mlp`] with one hidden layer, in Burn's words.
#[derive(Module, Debug)]
struct TwoLayers {
    hidden: Linear,
    dropout: Dropout,
    out: Linear,
}

impl TwoLayers {
    fn new(widths: [usize; 3], dropout: f64) -> Self {
        let [n_inputs, width, n_scores] = widths;
        Self {
            hidden: linear(n_inputs, width),
            dropout: DropoutConfig::new(dropout).init(),
            out: linear(width, n_scores),
        }
    }
}

impl BurnScores for TwoLayers {
    fn scores(&self, dense: Tensor<2>, _categories: Tensor<2, Int>) -> Tensor<2> {
        self.out.forward(self.dropout.forward(relu(self.hidden.forward(dense))))
    }
}

/// Much that an [`Mlp`] has not: embeddings, a norm, a way around, one layer used twice, a parameter of three dimensions,
/// one that is frozen and one that scores do not depend on.
#[derive(Module, Debug)]
struct Odd {
    table: Embedding,
    norm: LayerNorm,
    /// The same parameters again and again.
    steps: Vec<Linear>,
    cube: Param<Tensor<3>>,
    frozen: Linear,
    unused: Linear,
}

impl Odd {
    fn new() -> Self {
        let device = Device::flex();
        let table = EmbeddingConfig::new(4, 3).with_initializer(Initializer::Zeros).init(&device);
        Self {
            table,
            norm: LayerNormConfig::new(5).init(&device),
            steps: vec![linear(5, 5); 2],
            cube: Initializer::Zeros.init([5, 3, 2], &device),
            frozen: LinearConfig::new(5, 5).with_initializer(Initializer::Ones).init(&device).no_grad(),
            unused: linear(2, 2),
        }
    }
}

impl BurnScores for Odd {
    fn scores(&self, dense: Tensor<2>, categories: Tensor<2, Int>) -> Tensor<2> {
        let n_rows = dense.dims()[0];
        let embedded = self.table.forward(categories).reshape([n_rows, 3]);
        let mut state = self.norm.forward(Tensor::cat(vec![dense, embedded], 1));
        for step in &self.steps {
            state = state.clone() + tanh(step.forward(state));
        }
        let gate = sigmoid(self.frozen.forward(state.clone()) * 0.1);
        let cube = self.cube.val();
        let first = (state * gate).matmul(cube.clone().slice([0..5, 0..3, 0..1]).reshape([5, 3]));
        first * cube.slice([0..1, 0..3, 1..2]).reshape([1, 3])
    }
}

/// Numbers that look random, within ±0.6.
fn fill(model: &mut (impl Model + Clone)) {
    for (number, block) in model.parameters_mut().blocks_mut().iter_mut().enumerate() {
        let values = Array2::from_shape_fn(block.values().dim(), |(line, column)| {
            0.6 * ((17 * line * line + 31 * column + 7 * number) as f32 * 0.73 + 0.4).sin()
        });
        block.set(values.view()).unwrap();
    }
}

fn features(n_rows: usize, n_features: usize) -> Array2<f32> {
    Array2::from_shape_fn((n_rows, n_features), |(row, column)| {
        ((row * row * 13 + 29 * column) as f32 * 0.37).sin()
    })
}

/// Scores and gradients of one pass to learn; the loss is Σ c·score with odd factors c.
fn learn<M: Model>(model: &M, batch: &RowBatch) -> (Array2<f32>, Vec<Array2<f32>>) {
    let mut scores = Array2::zeros((batch.n_rows(), model.n_scores()));
    let dscores = factors(scores.dim());
    let mut gradient = model.parameters().zero_gradient();
    let blocks = model.parameters().blocks();
    let is_dense = |block: usize| blocks[block].updates() == Updates::Dense;
    (0..blocks.len())
        .filter(|&block| is_dense(block))
        .for_each(|block| gradient.dense_mut(block).fill(f32::NAN));
    let mut tape = M::Tape::default();
    model.forward(batch, Pass::Learn { draw: 3 }, &mut tape, scores.view_mut());
    model.backward(batch, &mut tape, dscores.view(), &mut gradient);
    let mut of_block = |block: usize| {
        if is_dense(block) {
            return gradient.dense_mut(block).clone();
        }
        // A product with the rows' features, which Adam would multiply out.
        let width = blocks[block].values().ncols();
        let derivative = gradient.of_rows_mut(block)[..batch.n_rows() * width].to_vec();
        batch.dense.t().dot(&Array2::from_shape_vec((batch.n_rows(), width), derivative).unwrap())
    };
    (scores, (0..blocks.len()).map(&mut of_block).collect())
}

fn factors(dim: (usize, usize)) -> Array2<f32> {
    Array2::from_shape_fn(dim, |(row, column)| ((row + 2 * column) as f32 + 0.3).cos())
}

fn largest_difference<'n>(
    left: impl IntoIterator<Item = &'n f32>,
    right: impl IntoIterator<Item = &'n f32>,
) -> f32 {
    left.into_iter().zip(right).fold(0.0, |largest, (left, right)| largest.max((left - right).abs()))
}

/// The same network with the same weights, as Burn's and as ours.
fn twins(rows: &Rows, width: usize, n_classes: usize) -> (BurnModel<TwoLayers>, Mlp) {
    let module = TwoLayers::new([rows.n_dense(), width, n_columns(n_classes)], 0.0);
    let mut theirs = BurnModel::for_rows(module, rows, n_classes).unwrap();
    let mut ours = Mlp::for_rows(rows, &Hidden::new(&[width]), n_classes, 1).unwrap();
    fill(&mut theirs);
    fill(&mut ours);
    (theirs, ours)
}

#[test]
fn scores_and_gradients_are_those_of_our_mlp() {
    for n_classes in [2, 3] {
        let rows = Rows::dense(features(50, 4)).unwrap();
        let (theirs, ours) = twins(&rows, 9, n_classes);
        for (block, mirror) in theirs.parameters().blocks().iter().zip(ours.parameters().blocks()) {
            assert_eq!(block.values(), mirror.values());
        }
        let names: Vec<&str> = theirs.parameters().blocks().iter().map(Block::name).collect();
        assert_eq!(names, ["hidden.weight", "hidden.bias", "out.weight", "out.bias"]);
        let expected = ours.scores(&rows).unwrap();
        assert!(expected.iter().any(|score| score.abs() > 0.1));
        assert!(largest_difference(&theirs.scores(&rows).unwrap(), &expected) < 1e-5);
        let batch = rows.as_dense().unwrap().batch(0..50);
        let ((scores, gradients), (_, expected_gradients)) = (learn(&theirs, &batch), learn(&ours, &batch));
        assert!(largest_difference(&scores, &expected) < 1e-5);
        for (gradient, expected) in gradients.iter().zip(&expected_gradients) {
            assert!(expected.iter().any(|slope| slope.abs() > 0.1));
            assert!(largest_difference(gradient, expected) < 1e-4, "{gradient} {expected}");
        }
    }
}

fn bags(n_rows: usize) -> Bags {
    let labels: Vec<u32> = features(n_rows, 1).iter().map(|&feature| u32::from(feature > 0.1)).collect();
    Bags::from_labels(bagging::random(n_rows, &Sizes::Fixed(4), 1).unwrap(), &labels, 2).unwrap()
}

fn train(model: &mut (impl Model + Clone), rows: &Rows, settings: Adam) -> TrainLog {
    let loss = LossName::Logistic.training().unwrap();
    let trainer = Trainer { optimizer: Optimizer::Adam(settings), seed: 2 };
    trainer.fit(model, rows, Aim::Targets(&mut EasyLlp::new(&bags(rows.n_rows())), loss)).unwrap()
}

/// Five steps, then a training with all that Adam has; a batch is two chunks.
#[test]
fn it_learns_as_our_mlp_does() {
    let rows = Rows::dense(features(600, 4)).unwrap();
    let steps = Adam { epochs: 5, batch_size: 600, average: false, ..Adam::default() };
    let all =
        Adam { epochs: 4, batch_size: 200, weight_decay: 0.01, clip_norm: Some(0.5), ..Adam::default() };
    for settings in [steps, all] {
        let (mut theirs, mut ours) = twins(&rows, 16, 2);
        let before = ours.clone();
        let log = train(&mut theirs, &rows, settings.clone());
        let expected = train(&mut ours, &rows, settings);
        for (epoch, expected) in log.epochs.iter().zip(&expected.epochs) {
            assert!((epoch.loss - expected.loss).abs() < 1e-5, "{epoch:?} {expected:?}");
        }
        assert!(expected.epochs[3].loss < expected.epochs[0].loss - 1e-3, "{expected:?}");
        let blocks = theirs.parameters().blocks().iter().zip(ours.parameters().blocks());
        for ((block, expected), before) in blocks.zip(before.parameters().blocks()) {
            assert!(largest_difference(block.values(), expected.values()) < 1e-4, "{}", block.name());
            assert!(largest_difference(before.values(), expected.values()) > 1e-3, "{}", block.name());
        }
    }
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.try_into_vec_as().unwrap()
}

fn odd_rows(n_rows: u32) -> Rows<'static> {
    let ids = Array2::from_shape_fn((n_rows as usize, 1), |(row, _)| [0, 2, 1, 2, 0][row % 5]);
    Rows::new(features(n_rows as usize, 2), ids, vec![4]).unwrap()
}

#[test]
fn the_gradient_equals_finite_differences() {
    let rows = odd_rows(7);
    let mut model = BurnModel::for_rows(Odd::new(), &rows, 3).unwrap();
    fill(&mut model);
    let shapes: Vec<_> =
        model.parameters().blocks().iter().map(|block| (block.name(), block.values().dim())).collect();
    // `frozen` is not to be learnt, and `steps.1` is `steps.0` again.
    let expected = [
        ("table.weight", (4, 3)),
        ("norm.gamma", (1, 5)),
        ("norm.beta", (1, 5)),
        ("steps.0.weight", (5, 5)),
        ("steps.0.bias", (1, 5)),
        ("cube", (5, 6)),
        ("unused.weight", (2, 2)),
        ("unused.bias", (1, 2)),
    ];
    assert_eq!(shapes, expected);

    let batch = rows.as_dense().unwrap().batch(0..7);
    let (_, gradients) = learn(&model, &batch);
    let factors = factors((7, 3));
    let loss = |model: &BurnModel<Odd>| (&model.scores(&rows).unwrap() * &factors).mapv(f64::from).sum();
    for (block, gradient) in gradients.iter().enumerate() {
        for (place, &slope) in gradient.indexed_iter() {
            let [below, above] = [-0.002, 0.002].map(|step| {
                let mut shifted = model.clone();
                let block = &mut shifted.parameters_mut().blocks_mut()[block];
                let mut values = block.values().to_owned();
                values[place] += step;
                block.set(values.view()).unwrap();
                loss(&shifted)
            });
            let difference = (above - below) / 0.004;
            let name = expected[block].0;
            assert!((difference - f64::from(slope)).abs() < 3e-3, "{name} {place:?}: {slope} {difference}");
        }
    }
    // Category 3 is in no row, and scores do not depend on `unused`.
    assert!(gradients[0].row(3).iter().chain(&gradients[6]).all(|slope| slope.to_bits() << 1 == 0));
    assert!(gradients[..6].iter().all(|gradient| gradient.iter().any(|slope| slope.abs() > 0.01)));
}

#[test]
fn a_module_is_handed_out_as_it_was_learnt() {
    let rows = odd_rows(40);
    let mut model = BurnModel::for_rows(Odd::new(), &rows, 3).unwrap();
    fill(&mut model);
    let weights = |model: &BurnModel<Odd>, of: fn(&Odd) -> &Linear| of(model.module()).weight.val();
    let learnt = weights(&model, |module| &module.steps[1]);
    assert!(!learnt.is_autodiff());
    let expected = model.parameters().blocks()[3].values().to_owned();
    assert_eq!(numbers(learnt), expected.into_raw_vec_and_offset().0);
    assert_eq!(numbers(weights(&model, |module| &module.frozen)), [1.0; 25]);
    model.parameters_mut().blocks_mut()[3].set(Array2::zeros((5, 5)).view()).unwrap();
    assert_eq!(numbers(weights(&model, |module| &module.steps[0])), [0.0; 25]);
    // The module gives the same scores as the model.
    let dense = TensorData::new(features(40, 2).into_raw_vec_and_offset().0, [40, 2]);
    let ids = TensorData::new(
        rows.as_dense().unwrap().batch(0..40).categories.iter().map(|&id| i64::from(id)).collect(),
        [40, 1],
    );
    let device = Device::flex();
    let scores = model.module().scores(Tensor::from_data(dense, &device), Tensor::from_data(ids, &device));
    assert!(!scores.is_autodiff());
    assert_eq!(numbers(scores), model.scores(&rows).unwrap().into_raw_vec_and_offset().0);
}

/// With dropout, which draws from a stream that all threads share, and a last batch that is not full.
#[test]
fn threads_do_not_change_a_byte() {
    let rows = Rows::dense(features(1500, 4)).unwrap();
    let settings = Adam { epochs: 2, batch_size: 400, ..Adam::default() };
    let [one, again, two, three] = [1, 1, 2, 3].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut model = BurnModel::for_rows(TwoLayers::new([4, 30, 1], 0.4), &rows, 2).unwrap();
            fill(&mut model);
            let log = train(&mut model, &rows, settings.clone());
            (model.parameters().clone(), log, model.scores(&rows).unwrap())
        })
    });
    assert_eq!(one, again);
    assert_eq!(one, two);
    assert_eq!(one, three);
    let mut without = BurnModel::for_rows(TwoLayers::new([4, 30, 1], 0.0), &rows, 2).unwrap();
    fill(&mut without);
    train(&mut without, &rows, settings);
    assert_ne!(&one.0, without.parameters());
}

#[derive(Module, Debug)]
struct Normed {
    norm: BatchNorm,
    out: Linear,
}

impl BurnScores for Normed {
    fn scores(&self, dense: Tensor<2>, _categories: Tensor<2, Int>) -> Tensor<2> {
        self.out.forward(self.norm.forward(dense))
    }
}

/// Nothing to learn, or nothing learnt.
#[derive(Module, Debug)]
struct Still {
    unused: Option<Linear>,
}

impl BurnScores for Still {
    fn scores(&self, dense: Tensor<2>, _categories: Tensor<2, Int>) -> Tensor<2> {
        dense.sum_dim(1)
    }
}

/// Forgets rows.
#[derive(Module, Debug)]
struct Pooled {
    out: Linear,
}

impl BurnScores for Pooled {
    fn scores(&self, dense: Tensor<2>, _categories: Tensor<2, Int>) -> Tensor<2> {
        self.out.forward(dense.mean_dim(0))
    }
}

#[test]
fn refuses_what_is_no_model_and_says_why() {
    let still = |unused| BurnModel::new(Still { unused }, 3, &[], 2).unwrap_err();
    assert_eq!(still(None), Error::NothingToLearn);
    assert_eq!(still(Some(linear(3, 1))), Error::NothingToLearn);
    let frozen = BurnModel::new(TwoLayers::new([3, 4, 1], 0.0).no_grad(), 3, &[], 2);
    assert_eq!(frozen.unwrap_err(), Error::NothingToLearn);

    let normed = Normed { norm: BatchNormConfig::new(3).init(&Device::flex()), out: linear(3, 1) };
    let error = BurnModel::new(normed, 3, &[], 2).unwrap_err();
    assert_eq!(error, Error::ModuleBuffer { name: "norm.running_mean".into() });
    assert!(error.to_string().ends_with("use layer or group norm"), "{error}");

    let with = |widths, n_dense, n_classes| {
        BurnModel::new(TwoLayers::new(widths, 0.0), n_dense, &[], n_classes).unwrap_err()
    };
    assert_eq!(with([3, 4, 1], 3, 1), Error::TooFewClasses { n_classes: 1 });
    let what = "scores that the module gives a row";
    assert_eq!(with([3, 4, 2], 3, 2), Error::Shape { what, expected: 1, got: 2 });
    assert_eq!(with([3, 4, 1], 3, 3), Error::Shape { what, expected: 3, got: 1 });
    let error = with([3, 4, 1], 5, 2);
    assert!(matches!(&error, Error::ModuleFailed { reason } if reason.contains('3')), "{error}");
    let error = BurnModel::new(Pooled { out: linear(3, 1) }, 3, &[], 2).unwrap_err();
    assert!(matches!(error, Error::Shape { expected: 2, got: 1, .. }), "{error}");

    let mut module = TwoLayers::new([3, 4, 1], 0.0);
    let infinite = Tensor::from_floats([0.0, 0.0, f32::INFINITY, 0.0], &Device::flex());
    module.hidden.bias = Some(Param::from_tensor(infinite));
    let error = BurnModel::new(module, 3, &[], 2).unwrap_err();
    let block = "hidden.bias".to_owned();
    assert_eq!(error, Error::ParameterNotFinite { block, line: 0, column: 2, value: f32::INFINITY });
}

#[test]
fn refuses_rows_of_another_form() {
    let model = BurnModel::for_rows(Odd::new(), &odd_rows(5), 3).unwrap();
    let refusal = |dense, ids, cardinalities| {
        let rows = Rows::new(dense, ids, cardinalities).unwrap();
        model.scores(&rows).unwrap_err()
    };
    let error = refusal(features(2, 3), Array2::zeros((2, 1)), vec![4]);
    assert_eq!(error, Error::Shape { what: "dense features", expected: 2, got: 3 });
    let error = refusal(features(2, 2), Array2::zeros((2, 2)), vec![4, 4]);
    assert_eq!(error, Error::Shape { what: "categorical fields", expected: 1, got: 2 });
    let error = refusal(features(2, 2), Array2::zeros((2, 1)), vec![9]);
    assert_eq!(error, Error::Cardinality { field: 0, expected: 4, got: 9 });
}
