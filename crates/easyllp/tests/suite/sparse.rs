//! Sparse matrices as rows: the same model as of the dense matrix, or a refusal that says why.

use easyllp::bagging::{Sizes, random};
use easyllp::fit::{OptimizerConfig, Penalty};
use easyllp::method::{CountLikelihood, LaplacianMeanMap, Positive, Supervised};
use easyllp::model::Hidden;
use easyllp::train::{Aim, OnePass};
use easyllp::{
    Bags, Error, FitConfig, ModelFile, ModelSpec, Rows,
    classes::Classes,
    correction::LabelPrior,
    loss::LossName,
    method::TargetRule,
    model::{Cnn, LinearModel, Mlp, Scorer},
    optim::{Adam, Lbfgs, Sgd},
    rows::Csr,
    train::{Optimizer, Trainer},
};
use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::ops::ControlFlow;

/// A matrix of mostly zeros in both forms, and labels; of the sparse one rows have their columns in no order, the first column has its
/// numbers in two parts, and the last one has none.
fn data(n_rows: usize, n_columns: usize, n_classes: u32) -> (Rows<'static>, Rows<'static>, Vec<u32>) {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut dense = Array2::<f32>::zeros((n_rows, n_columns));
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    let mut labels = Vec::new();
    for row in 0..n_rows {
        let mut score = 0.0;
        for _ in 0..8 {
            // Few columns are in most rows, most in few.
            let place = rng.random::<f64>().powi(3) * (n_columns - 1) as f64;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a place in 0..n_columns"
            )]
            let column = place as u32;
            let value = f32::from(rng.random_range(-8_i8..=8)) / 4.0;
            dense[[row, column as usize]] += value;
            score += value * (column as f32 * 0.9).sin();
            columns.push(column);
            values.push(value);
        }
        for part in [0.25, 0.5] {
            dense[[row, 0]] += part;
            columns.push(0);
            values.push(part);
        }
        starts.push(values.len());
        let noise = rng.random::<f32>() * 2.0 - 1.0;
        labels.push(u32::from(score + noise > 0.0) + u32::from(score + noise > 1.0 && n_classes > 2));
    }
    let sparse = Rows::sparse(Csr::new(n_columns, starts, columns, values).unwrap());
    (Rows::dense(dense).unwrap(), sparse, labels)
}

fn fit(rows: &Rows, labels: &[u32], n_classes: usize, l2: f64) -> LinearModel {
    let trainer = Trainer { optimizer: Optimizer::Lbfgs(Lbfgs { l2, ..Lbfgs::default() }), seed: 1 };
    let loss = LossName::cross_entropy(n_classes).training().unwrap();
    let mut model = LinearModel::for_rows(rows, n_classes).unwrap();
    trainer
        .fit(&mut model, rows, Aim::Targets(&mut Supervised::new(labels, n_classes).unwrap(), loss))
        .unwrap();
    model
}

/// L-BFGS ends where no gradient is above 1e-7, from where a weight has at most 1e-7/l2 to go, and 1e-6 by the Hessian.
#[test]
fn train_to_the_same_model_as_dense_ones() {
    for (n_columns, n_classes) in [(20, 2), (700, 2), (20, 3), (2000, 2)] {
        let (dense, sparse, labels) = data(1500, n_columns, n_classes);
        let n_classes = n_classes as usize;
        let (of_dense, of_sparse) =
            (fit(&dense, &labels, n_classes, 0.01), fit(&sparse, &labels, n_classes, 0.01));
        for (a, b) in of_dense.weights().iter().zip(of_sparse.weights()) {
            assert!((a - b).abs() < 2e-5, "{n_columns} {n_classes}: {a} {b}");
        }
        assert!(of_sparse.weights().row(n_columns - 1).iter().all(|weight| weight.abs() < 1e-9));
        // Either model scores either form.
        let (one, other) = (of_sparse.scores(&dense).unwrap(), of_sparse.scores(&sparse).unwrap());
        for (a, b) in one.iter().zip(&other) {
            assert!((a - b).abs() < 1e-4, "{a} {b}");
        }
    }
}

#[test]
fn threads_change_no_byte() {
    let (_, sparse, labels) = data(5000, 3000, 2);
    let run = |n_threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| {
            let model = fit(&sparse, &labels, 2, 1e-3);
            (model.scores(&sparse).unwrap(), model)
        })
    };
    assert_eq!(run(1), run(3));
}

/// With the penalty chosen on validation bags, saved and read again.
#[test]
fn go_the_whole_way() {
    let (_, sparse, labels) = data(3000, 500, 2);
    let bags = Bags::from_labels(random(3000, &Sizes::Fixed(4), 1).unwrap(), &labels, 2).unwrap();
    let config = FitConfig::default();
    let fitted = config.fitting(&sparse, &bags).classes(Classes::counted("clicks")).run().unwrap();
    let scores = fitted.model.scores(&sparse).unwrap();
    let right = scores.iter().zip(&labels).filter(|(score, label)| (**score > 0.0) == (**label == 1)).count();
    assert!(right > 2100, "{right} of 3000 rows");
    let file = fitted.into_file().unwrap();
    let read = ModelFile::from_bytes(&file.to_bytes().unwrap()).unwrap();
    assert_eq!(read.model.scores(&sparse).unwrap(), scores);
    assert_eq!(read.probabilities(&sparse).unwrap(), file.probabilities(&sparse).unwrap());
}

#[test]
fn what_needs_dense_rows_says_so() {
    let (_, sparse, labels) = data(60, 16, 2);
    let bags = Bags::from_labels(random(60, &Sizes::Fixed(4), 1).unwrap(), &labels, 2).unwrap();
    let loss = LossName::Logistic.training().unwrap();
    let mut linear = LinearModel::for_rows(&sparse, 2).unwrap();
    let adam = Trainer { optimizer: Optimizer::Adam(Adam::default()), seed: 1 };
    let mut rule = Supervised::new(&labels, 2).unwrap();
    let mut watch = |_| ControlFlow::Continue(());
    let refused = |what: &'static str, error: Error| {
        assert_eq!(error, Error::SparseRows { what });
        assert!(error.to_string().contains("convert the rows to a dense array"));
    };
    refused("training with Adam", adam.fit(&mut linear, &sparse, Aim::Targets(&mut rule, loss)).unwrap_err());
    let mut objective = CountLikelihood::new(&bags);
    let judged = adam.fit_watched(&mut linear, &sparse, Aim::Bags(&mut objective), &mut watch, None);
    refused("training with Adam", judged.unwrap_err());
    let one_pass = OnePass { settings: Sgd::default(), seed: 1, prior: LabelPrior::binary(0.5).unwrap() };
    refused("easyllp-sgd", one_pass.fit(&mut linear, &sparse, &bags, loss, &mut watch).unwrap_err());
    let mut rules: [&mut dyn TargetRule; 1] = [&mut rule];
    let columns =
        adam.fit_columns(&mut [linear], &sparse, &mut rules, loss, &mut |_, _| ControlFlow::Continue(None));
    refused("training models in columns", columns.unwrap_err());
    refused(
        "laplacian-mean-map",
        LaplacianMeanMap::new(&bags, &sparse, Positive::new(1.0).unwrap()).map(|_| ()).unwrap_err(),
    );
    let mlp = Mlp::new(16, &Hidden::new(&[4]), 2, 1).unwrap();
    refused("an MLP", mlp.scores(&sparse).unwrap_err());
    let cnn = Cnn::new(&"conv3x2".parse().unwrap(), "1x4x4".parse().unwrap(), 2, 1).unwrap();
    refused("a cnn", cnn.scores(&sparse).unwrap_err());
    let minibatches =
        OptimizerConfig { lr: Some(0.1), l2: Some(Penalty::Value(0.1)), ..OptimizerConfig::default() };
    let of_method = |words: &str| FitConfig { method: words.parse().unwrap(), ..FitConfig::default() };
    for (what, config) in [
        ("a model that is not linear", FitConfig { model: ModelSpec::Mlp(vec![4]), ..FitConfig::default() }),
        ("training with Adam", FitConfig { optimizer: minibatches, ..FitConfig::default() }),
        ("easyllp-sgd", of_method("easyllp-sgd")),
        ("laplacian-mean-map", of_method("laplacian-mean-map")),
    ] {
        refused(what, config.fit(&sparse, &bags).map(|_| ()).unwrap_err());
    }
}
