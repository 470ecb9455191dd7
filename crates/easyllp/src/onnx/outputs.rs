//! From scores to outputs, by the model's [`Link`].

use super::graph::{Attribute, Element, Graph, Value};
use crate::error::{Error, Result};
use crate::loss::Link;
use ndarray::{Array1, arr0, arr1};

/// Adds the outputs: `label`, `probabilities` and `scores`.
pub(super) fn add(graph: &mut Graph, scores: Value, link: Link, classes: &[String]) -> Result<()> {
    let is_binary = classes.len() == 2;
    let class = if is_binary { of_two(graph, scores, link) } else { likeliest(graph, scores) };
    let names = graph.texts("classes", classes);
    let label = graph.node("Gather", &[names, class], &[Attribute::Int("axis", 0)]);
    let probabilities = match link {
        Link::Logit => {
            let log_odds = if is_binary { with_zero(graph, scores) } else { scores };
            graph.node("Softmax", &[log_odds], &[Attribute::Int("axis", 1)])
        }
        Link::Identity if is_binary => {
            let positive = clipped(graph, scores);
            let one = graph.floats("one", &arr0(1.0));
            let negative = graph.node("Sub", &[one, positive], &[]);
            graph.side_by_side(&[negative, positive])
        }
        Link::Identity => shares(graph, scores, classes.len()),
        Link::Margin => return Err(Error::NoProbabilities),
    };
    graph.output(label, "label", Element::Text, None);
    graph.output(probabilities, "probabilities", Element::Float, Some(classes.len()));
    graph.output(scores, "scores", Element::Float, Some(if is_binary { 1 } else { classes.len() }));
    Ok(())
}

/// The class of each row, from one score.
fn of_two(graph: &mut Graph, scores: Value, link: Link) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "ONNX compares f32, which has 0 and a half")]
    let threshold = graph.floats("threshold", &arr0(link.threshold() as f32));
    let is_positive = graph.node("Greater", &[scores, threshold], &[]);
    let class = graph.cast(is_positive, Element::Int64);
    let columns = graph.ints("columns", &[1]);
    graph.node("Squeeze", &[class, columns], &[])
}

/// The class of each row; of equal ones the first.
fn likeliest(graph: &mut Graph, scores: Value) -> Value {
    graph.node("ArgMax", &[scores], &[Attribute::Int("axis", 1), Attribute::Int("keepdims", 0)])
}

/// Scores of two classes. Their softmax is the logistic function; unlike the operator `Sigmoid` in
/// some runtimes it is accurate for small values.
fn with_zero(graph: &mut Graph, scores: Value) -> Value {
    let zero_and_one = graph.floats("zero_and_one", &arr1(&[0.0, 1.0]));
    graph.node("Mul", &[scores, zero_and_one], &[])
}

fn clipped(graph: &mut Graph, scores: Value) -> Value {
    let [low, high] = [("low", 0.0), ("high", 1.0)].map(|(name, end)| graph.floats(name, &arr0(end)));
    graph.node("Clip", &[scores, low, high], &[])
}

/// Each clipped score's share of their sum; even shares where that is 0.
fn shares(graph: &mut Graph, scores: Value, n_classes: usize) -> Value {
    let clipped = clipped(graph, scores);
    let columns = graph.ints("columns", &[1]);
    let sum = graph.node("ReduceSum", &[clipped, columns], &[Attribute::Int("keepdims", 1)]);
    let shares = graph.node("Div", &[clipped, sum], &[]);
    let zero = graph.floats("zero", &arr0(0.0));
    let is_something = graph.node("Greater", &[sum, zero], &[]);
    let even = graph.floats("even", &Array1::from_elem(n_classes, 1.0 / n_classes as f32));
    graph.node("Where", &[is_something, shares, even], &[])
}
