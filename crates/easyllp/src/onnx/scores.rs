//! From features to scores: one function per kind of model.

use super::cnn;
use super::features::Features;
use super::graph::{Attribute, Graph, Value, int};
use crate::error::{Error, Result};
use crate::model::{Activation, AnyModel, Block, EmbeddingNet, LinearModel, Model};
use ndarray::arr0;

/// Adds the model: rows × scores.
pub(super) fn add(graph: &mut Graph, model: &AnyModel, features: Features) -> Result<Value> {
    let of_dense = || features.dense.ok_or(Error::NoFeatures);
    match model {
        AnyModel::Linear(model) => linear(graph, model, features),
        AnyModel::Mlp(model) => {
            Ok(layers(graph, model.parameters().blocks(), model.activations(), of_dense()?))
        }
        AnyModel::Embedding(model) => embedding(graph, model, features),
        AnyModel::Cnn(model) => Ok(cnn::add(graph, model, of_dense()?)),
    }
}

fn linear(graph: &mut Graph, model: &LinearModel, features: Features) -> Result<Value> {
    let [weights, intercept, table] = model.parameters().blocks() else {
        unreachable!("a linear model has three blocks")
    };
    let intercept = constant(graph, intercept);
    let of_dense = features.dense.map(|dense| {
        let weights = constant(graph, weights);
        graph.node("Gemm", &[dense, weights, intercept], &[])
    });
    let of_categories = features.lines.map(|lines| {
        let table = constant(graph, table);
        // Rows × fields × scores.
        let weights = graph.node("Gather", &[table, lines], &[Attribute::Int("axis", 0)]);
        let fields = graph.ints("fields", &[1]);
        graph.node("ReduceSum", &[weights, fields], &[Attribute::Int("keepdims", 0)])
    });
    match (of_dense, of_categories) {
        (Some(of_dense), Some(of_categories)) => Ok(graph.node("Add", &[of_dense, of_categories], &[])),
        (Some(of_dense), None) => Ok(of_dense),
        (None, Some(of_categories)) => Ok(graph.node("Add", &[of_categories, intercept], &[])),
        (None, None) => Err(Error::NoFeatures),
    }
}

fn embedding(graph: &mut Graph, model: &EmbeddingNet, features: Features) -> Result<Value> {
    let [table, of_layers @ ..] = model.parameters().blocks() else {
        unreachable!("a network of embeddings has a block of them")
    };
    let lines = features.lines.ok_or(Error::NoFeatures)?;
    let width = table.values().ncols() * model.cardinalities().len();
    let table = constant(graph, table);
    let embeddings = graph.node("Gather", &[table, lines], &[Attribute::Int("axis", 0)]);
    // 0 leaves the number of rows as it is.
    let shape = graph.ints("side_by_side", &[0, int(width)]);
    let embeddings = graph.node("Reshape", &[embeddings, shape], &[]);
    let inputs: Vec<Value> = features.dense.into_iter().chain([embeddings]).collect();
    let inputs = graph.side_by_side(&inputs);
    Ok(layers(graph, of_layers, model.activations(), inputs))
}

/// Fully connected layers, weights and bias alternately, with these activations between them.
pub(super) fn layers(
    graph: &mut Graph,
    blocks: &[Block],
    mut activations: impl Iterator<Item = Activation>,
    mut value: Value,
) -> Value {
    let (layers, _) = blocks.as_chunks::<2>();
    for [weights, bias] in layers {
        let (weights, bias) = (constant(graph, weights), constant(graph, bias));
        value = graph.node("Gemm", &[value, weights, bias], &[]);
        if let Some(activation) = activations.next() {
            value = activated(graph, activation, value);
        }
    }
    value
}

pub(super) fn activated(graph: &mut Graph, activation: Activation, value: Value) -> Value {
    match activation {
        Activation::Relu => graph.node("Relu", &[value], &[]),
        Activation::Tanh => graph.node("Tanh", &[value], &[]),
        // z·Φ(z) in the words that runtimes know as GELU's: an operator of that name is too new for many of them.
        Activation::Gelu => {
            let [root, one, half] = [("root_of_two", std::f32::consts::SQRT_2), ("one", 1.0), ("half", 0.5)]
                .map(|(name, number)| graph.floats(name, &arr0(number)));
            let scaled = graph.node("Div", &[value, root], &[]);
            let erf = graph.node("Erf", &[scaled], &[]);
            let twice = graph.node("Add", &[erf, one], &[]);
            let product = graph.node("Mul", &[value, twice], &[]);
            graph.node("Mul", &[product, half], &[])
        }
    }
}

fn constant(graph: &mut Graph, block: &Block) -> Value {
    graph.floats(block.name(), &block.values())
}
