//! From the columns of a table to features, as the encoder makes them.

use super::graph::{Attribute, Element, Graph, Value, int};
use crate::error::{Error, Result};
use crate::table::{ColumnEncoder, ColumnEncoding, Encoder};
use ndarray::arr0;

/// What a model sees of rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Features {
    /// Rows × dense features, if there are any.
    pub(super) dense: Option<Value>,
    /// Rows × fields, if there are any: the lines of a model's table of all categories, field after field.
    pub(super) lines: Option<Value>,
}

impl Features {
    /// Adds an input for each column, and what makes features of them.
    pub(super) fn add(graph: &mut Graph, encoder: &Encoder) -> Result<Self> {
        let inputs = encoder.columns().iter().map(|column| add_input(graph, column));
        let inputs = inputs.collect::<Result<Vec<Value>>>()?;
        let (mut dense, mut fields, mut first_line) = (Dense::default(), Vec::new(), 0);
        for (column, &input) in encoder.columns().iter().zip(&inputs) {
            match &column.encoding {
                ColumnEncoding::Standardise { mean, scale, flags_missing, .. } => {
                    dense.number(input, *mean, *scale, *flags_missing);
                }
                ColumnEncoding::StandardiseVector { means, scale, .. } => {
                    let wide = graph.cast(input, Element::Double);
                    dense.list(standardised(graph, wide, means, &[*scale]), means.len());
                }
                ColumnEncoding::AsIs { width } => dense.list(input, *width),
                ColumnEncoding::Vocabulary(values) => {
                    fields.push(line_of(graph, input, values, first_line));
                    first_line += int(values.len()) + 1;
                }
                ColumnEncoding::Hash(_) => return Err(Error::OnnxHash { column: column.name.clone() }),
            }
        }
        let lines = (!fields.is_empty()).then(|| graph.side_by_side(&fields));
        Ok(Self { dense: dense.add(graph), lines })
    }
}

fn add_input(graph: &mut Graph, column: &ColumnEncoder) -> Result<Value> {
    let (element, width) = match &column.encoding {
        // Doubles, as tables have them: dates and amounts have more digits than a float.
        ColumnEncoding::Standardise { .. } => (Element::Double, 1),
        ColumnEncoding::StandardiseVector { means, .. } => (Element::Float, means.len()),
        ColumnEncoding::AsIs { width } => (Element::Float, *width),
        ColumnEncoding::Vocabulary(_) | ColumnEncoding::Hash(_) => (Element::Text, 1),
    };
    // To ONNX, a value without a name is one that is not there.
    if column.name.is_empty() {
        return Err(Error::OnnxNoName);
    }
    Ok(graph.input(&column.name, element, width))
}

/// Dense features, column by column. All single numbers are standardised at once, and brought into their order in the end.
#[derive(Debug, Default)]
struct Dense {
    numbers: Vec<Value>,
    means: Vec<f64>,
    scales: Vec<f64>,
    /// Of the lists, as features.
    lists: Vec<Value>,
    n_in_lists: usize,
    /// Where each feature is found.
    found: Vec<Found>,
}

/// Where a dense feature stands, before features are brought into their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Number(usize),
    Flag(usize),
    InList(usize),
}

impl Dense {
    fn number(&mut self, input: Value, mean: f64, scale: f64, flags_missing: bool) {
        let place = self.numbers.len();
        self.found.push(Found::Number(place));
        self.found.extend(flags_missing.then_some(Found::Flag(place)));
        self.numbers.push(input);
        self.means.push(mean);
        self.scales.push(scale);
    }

    fn list(&mut self, features: Value, width: usize) {
        self.found.extend((self.n_in_lists..self.n_in_lists + width).map(Found::InList));
        self.n_in_lists += width;
        self.lists.push(features);
    }

    /// All features, if there are any.
    fn add(self, graph: &mut Graph) -> Option<Value> {
        let n_numbers = self.numbers.len();
        let has_flags = self.found.iter().any(|found| matches!(found, Found::Flag(_)));
        let first_in_lists = if has_flags { 2 * n_numbers } else { n_numbers };
        let mut parts = Vec::new();
        if n_numbers > 0 {
            let numbers = graph.side_by_side(&self.numbers);
            let standardised = standardised(graph, numbers, &self.means, &self.scales);
            let missing = graph.node("IsNaN", &[numbers], &[]);
            let zero = graph.floats("zero", &arr0(0.0));
            parts.push(graph.node("Where", &[missing, zero, standardised], &[]));
            if has_flags {
                parts.push(graph.cast(missing, Element::Float));
            }
        }
        parts.extend(&self.lists);
        let place = |found: &Found| match *found {
            Found::Number(place) => int(place),
            Found::Flag(place) => int(n_numbers + place),
            Found::InList(place) => int(first_in_lists + place),
        };
        let order: Vec<i64> = self.found.iter().map(place).collect();
        if parts.is_empty() {
            return None;
        }
        let parts = graph.side_by_side(&parts);
        if order.iter().copied().eq(0..int(first_in_lists + self.n_in_lists)) {
            return Some(parts);
        }
        let order = graph.ints("order", &order);
        Some(graph.node("Gather", &[parts, order], &[Attribute::Int("axis", 1)]))
    }
}

/// (x − mean)/scale, in doubles as the encoder does it; 0 where the scale is 0.
fn standardised(graph: &mut Graph, wide: Value, means: &[f64], scales: &[f64]) -> Value {
    let scale = |&scale: &f64| if scale > 0.0 { scale } else { f64::INFINITY };
    let means = graph.doubles("means", means);
    let scales = graph.doubles("scales", &scales.iter().map(scale).collect::<Vec<f64>>());
    let centred = graph.node("Sub", &[wide, means], &[]);
    let quotient = graph.node("Div", &[centred, scales], &[]);
    graph.cast(quotient, Element::Float)
}

/// The line of a value: the field's first for one that is not in the vocabulary, then one for each that is.
fn line_of(graph: &mut Graph, input: Value, vocabulary: &[String], first: i64) -> Value {
    // An encoder must have a key. The empty one is a missing value, which nobody knows either.
    let nothing = [String::new()];
    let (keys, lines) = match vocabulary {
        [] => (&nothing[..], vec![first]),
        _ => (vocabulary, (first + 1..=first + int(vocabulary.len())).collect()),
    };
    let attributes = [
        Attribute::Texts("keys_strings", keys),
        Attribute::Ints("values_int64s", &lines),
        Attribute::Int("default_int64", first),
    ];
    graph.node("LabelEncoder", &[input], &attributes)
}
