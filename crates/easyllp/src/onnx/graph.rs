//! A graph of ONNX as it grows: inputs, constants, nodes, outputs, each value under a name of its own.
//!
//! Numbers of fields are those of [onnx.proto](https://github.com/onnx/onnx/blob/main/onnx/onnx.proto).

use super::proto::Message;
use ndarray::{ArrayBase, Data, Dimension};
use std::collections::HashSet;

/// The operators that come with ONNX's own, for classical models.
const ML_DOMAIN: &str = "ai.onnx.ml";

/// What a tensor holds, by the numbers of `TensorProto.DataType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Float = 1,
    Int64 = 7,
    Text = 8,
    Double = 11,
}

/// A tensor somewhere in the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Value(usize);

/// An attribute of a node.
#[derive(Debug, Clone, Copy)]
pub(super) enum Attribute<'a> {
    Int(&'static str, i64),
    Ints(&'static str, &'a [i64]),
    Texts(&'static str, &'a [String]),
}

#[derive(Debug, Default)]
pub(super) struct Graph {
    /// Of each value.
    names: Vec<String>,
    taken: HashSet<String>,
    inputs: Vec<Message>,
    constants: Vec<Message>,
    nodes: Vec<Node>,
    outputs: Vec<Message>,
}

#[derive(Debug)]
struct Node {
    operator: &'static str,
    inputs: Vec<Value>,
    output: Value,
    attributes: Vec<Message>,
}

impl Graph {
    /// An input of rows × width. Inputs come first, so that each has the name it is asked for.
    pub(super) fn input(&mut self, name: &str, element: Element, width: usize) -> Value {
        let value = self.value(name);
        self.inputs.push(value_info(&self.names[value.0], element, Some(width)));
        value
    }

    /// A constant of these numbers.
    pub(super) fn floats<S: Data<Elem = f32>, D: Dimension>(
        &mut self,
        name: &str,
        values: &ArrayBase<S, D>,
    ) -> Value {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(name, Element::Float, values.shape(), bytes)
    }

    /// A constant list.
    pub(super) fn doubles(&mut self, name: &str, values: &[f64]) -> Value {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(name, Element::Double, &[values.len()], bytes)
    }

    /// A constant list.
    pub(super) fn ints(&mut self, name: &str, values: &[i64]) -> Value {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(name, Element::Int64, &[values.len()], bytes)
    }

    /// A constant list.
    pub(super) fn texts(&mut self, name: &str, values: &[String]) -> Value {
        let value = self.value(name);
        let tensor = self.tensor(value, Element::Text, &[values.len()]);
        self.constants.push(tensor.each(values, |tensor, text| tensor.text(6, text)));
        value
    }

    fn constant(&mut self, name: &str, element: Element, shape: &[usize], bytes: Vec<u8>) -> Value {
        let value = self.value(name);
        let tensor = self.tensor(value, element, shape);
        self.constants.push(tensor.bytes(9, &bytes));
        value
    }

    fn tensor(&self, value: Value, element: Element, shape: &[usize]) -> Message {
        Message::default()
            .each(shape, |tensor, &size| tensor.int(1, int(size)))
            .int(2, element as i64)
            .text(8, &self.names[value.0])
    }

    /// What an operator makes of its inputs.
    pub(super) fn node(
        &mut self,
        operator: &'static str,
        inputs: &[Value],
        attributes: &[Attribute],
    ) -> Value {
        let output = self.value(operator);
        let attributes = attributes.iter().map(Attribute::message).collect();
        self.nodes.push(Node { operator, inputs: inputs.to_vec(), output, attributes });
        output
    }

    /// The same numbers as another kind of them.
    pub(super) fn cast(&mut self, value: Value, element: Element) -> Value {
        self.node("Cast", &[value], &[Attribute::Int("to", element as i64)])
    }

    /// Matrices side by side.
    pub(super) fn side_by_side(&mut self, values: &[Value]) -> Value {
        match values {
            [only] => *only,
            _ => self.node("Concat", values, &[Attribute::Int("axis", 1)]),
        }
    }

    /// Declares what a node made an output: of rows × width, or one per row.
    pub(super) fn output(&mut self, value: Value, name: &str, element: Element, width: Option<usize>) {
        let name = self.free(name);
        self.outputs.push(value_info(&name, element, width));
        self.names[value.0].clone_from(&name);
        self.taken.insert(name);
    }

    /// The finished graph, a `GraphProto`.
    pub(super) fn finish(self) -> Message {
        let name = |value: &Value| self.names[value.0].as_str();
        Message::default()
            .each(&self.nodes, |graph, node| {
                let domain = if node.operator == "LabelEncoder" { ML_DOMAIN } else { "" };
                let message = Message::default()
                    .each(&node.inputs, |message, input| message.text(1, name(input)))
                    .text(2, name(&node.output))
                    .text(3, name(&node.output))
                    .text(4, node.operator)
                    .each(&node.attributes, |message, attribute| message.message(5, attribute))
                    .text(7, domain);
                graph.message(1, &message)
            })
            .text(2, "easyllp")
            .each(&self.constants, |graph, tensor| graph.message(5, tensor))
            .each(&self.inputs, |graph, input| graph.message(11, input))
            .each(&self.outputs, |graph, output| graph.message(12, output))
    }

    fn value(&mut self, name: &str) -> Value {
        let name = self.free(name);
        self.taken.insert(name.clone());
        self.names.push(name);
        Value(self.names.len() - 1)
    }

    /// The name, or with a number behind it the first that no value has.
    fn free(&self, name: &str) -> String {
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        names.find(|name| !self.taken.contains(name)).expect("numbers do not end")
    }
}

impl Attribute<'_> {
    fn message(&self) -> Message {
        let named = |name| Message::default().text(1, name);
        match *self {
            Self::Int(name, value) => named(name).int(3, value).int(20, 2),
            Self::Ints(name, values) => {
                named(name).each(values, |message, &value| message.int(8, value)).int(20, 7)
            }
            Self::Texts(name, values) => {
                named(name).each(values, |message, value| message.text(9, value)).int(20, 8)
            }
        }
    }
}

/// A `ModelProto` around a graph, with its metadata.
pub(super) fn model(graph: &Message, known: &[(&str, &str)]) -> Message {
    /// Of ONNX 1.12 (2022), which every runtime of today reads; nothing newer is needed.
    const IR_VERSION: i64 = 8;
    const OPERATORS: [(&str, i64); 2] = [("", 17), (ML_DOMAIN, 3)];
    Message::default()
        .int(1, IR_VERSION)
        .text(2, "easyllp")
        .text(3, env!("CARGO_PKG_VERSION"))
        .message(7, graph)
        .each(OPERATORS, |model, (domain, version)| {
            model.message(8, &Message::default().text(1, domain).int(2, version))
        })
        .each(known, |model, (key, value)| model.message(14, &Message::default().text(1, key).text(2, value)))
}

/// A `ValueInfoProto` of rows × width, or of one value a row.
fn value_info(name: &str, element: Element, width: Option<usize>) -> Message {
    let rows = Message::default().text(2, "rows");
    let columns = width.map(|width| Message::default().int(1, int(width)));
    let shape = Message::default().message(1, &rows).each(columns, |shape, width| shape.message(1, &width));
    let tensor = Message::default().int(1, element as i64).message(2, &shape);
    Message::default().text(1, name).message(2, &Message::default().message(1, &tensor))
}

/// A size as ONNX writes it.
pub(super) fn int(size: usize) -> i64 {
    i64::try_from(size).expect("no array has so many numbers")
}
