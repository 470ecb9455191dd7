//! What is written, read back by a small reader: names, operators and numbers. That runtimes compute the same is tested
//! with one, in python/tests/test_onnx.py.

use super::*;
use crate::classes::Classes;
use crate::loss::LossName;
use crate::model::{Activation, AnyModel, Hidden, ImageShape, LinearModel, Mlp, ModelSpec, RowsForm};
use crate::prior::LabelPrior;
use crate::table::{Column, Encoder, EncoderOptions, Table};
use std::collections::HashSet;

/// The fields of a message: a number, or bytes.
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for place in 0.. {
            let (&first, rest) = bytes.split_first().expect("a number that ends");
            *bytes = rest;
            value |= u64::from(first & 0x7f) << (7 * place);
            if first < 0x80 {
                break;
            }
        }
        value
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let number = varint(&mut bytes);
        let inside = if key & 7 == 2 {
            let (inside, rest) = bytes.split_at(usize::try_from(number).unwrap());
            bytes = rest;
            inside
        } else {
            &[]
        };
        fields.push((key >> 3, number, inside));
    }
    fields
}

fn all(bytes: &[u8], field: u64) -> Vec<&[u8]> {
    fields(bytes).into_iter().filter(|(number, ..)| *number == field).map(|(_, _, inside)| inside).collect()
}

fn texts(bytes: &[u8], field: u64) -> Vec<String> {
    all(bytes, field).into_iter().map(|text| String::from_utf8(text.to_vec()).unwrap()).collect()
}

fn numbers(bytes: &[u8], field: u64) -> Vec<u64> {
    fields(bytes).into_iter().filter(|(number, ..)| *number == field).map(|(_, value, _)| value).collect()
}

/// What a file says: name, kind and shape of inputs and outputs, and its operators in order.
struct Read {
    inputs: Vec<String>,
    outputs: Vec<String>,
    operators: Vec<String>,
    graph: Vec<u8>,
}

/// Reads a file, and makes sure that each name is given once and before it is used.
fn read(file: &ModelFile) -> Read {
    let bytes = file.to_onnx().unwrap();
    assert_eq!(numbers(&bytes, 1), [8]);
    let graph = all(&bytes, 7)[0].to_vec();
    let described = |info: &&[u8]| {
        let tensor = all(all(info, 2)[0], 1)[0];
        let kind = match numbers(tensor, 1)[0] {
            1 => "float",
            8 => "string",
            11 => "double",
            other => panic!("kind {other}"),
        };
        let shape = all(tensor, 2)[0];
        let sizes = all(shape, 1).into_iter().map(|size| match &texts(size, 2)[..] {
            [name] => name.clone(),
            _ => numbers(size, 1)[0].to_string(),
        });
        format!("{} {kind}[{}]", texts(info, 1)[0], sizes.collect::<Vec<_>>().join(", "))
    };
    let mut known = HashSet::new();
    let given = all(&graph, 11).into_iter().map(|info| texts(info, 1).remove(0));
    for name in given.chain(all(&graph, 5).into_iter().map(|tensor| texts(tensor, 8).remove(0))) {
        assert!(known.insert(name.clone()), "duplicate {name}");
    }
    let mut operators = Vec::new();
    for node in all(&graph, 1) {
        for input in texts(node, 1) {
            assert!(known.contains(&input), "{input} is used before it is there");
        }
        for output in texts(node, 2) {
            assert!(known.insert(output.clone()), "duplicate {output}");
        }
        operators.push(texts(node, 4).remove(0));
    }
    let outputs = all(&graph, 12);
    assert!(outputs.iter().all(|info| known.contains(&texts(info, 1)[0])));
    Read {
        inputs: all(&graph, 11).iter().map(described).collect(),
        outputs: outputs.iter().map(described).collect(),
        operators,
        graph,
    }
}

fn column(name: &str) -> (String, Column) {
    let column = match name {
        "missing" => Column::Numeric(vec![0.5, f64::NAN, 3.0]),
        "image" => Column::Vector(ndarray::Array2::from_shape_fn((3, 32), |(i, j)| ((i + j) % 5) as f32)),
        "word" | "other" => Column::categorical(["x", "y", "x"]),
        _ => Column::Numeric(vec![1.0, 2.0, 4.0]),
    };
    (name.into(), column)
}

fn model_file(columns: &[&str], model: &str, n_classes: usize) -> ModelFile {
    let table = Table::new(columns.iter().map(|name| column(name)).collect()).unwrap();
    let encoder = Encoder::fit(&table, EncoderOptions::default()).unwrap();
    let (n_dense, cardinalities) = encoder.shape();
    let name: ModelSpec = model.parse().unwrap();
    let image = matches!(name, ModelSpec::Cnn(_)).then_some(ImageShape { channels: 2, height: 4, width: 4 });
    let form = RowsForm { n_dense, cardinalities: &cardinalities, image };
    ModelFile {
        encoder,
        classes: Classes::sorted(&["a", "b", "c"][..n_classes]).unwrap().0,
        loss: LossName::cross_entropy(n_classes).as_str().into(),
        link: crate::loss::Link::Logit,
        config: None,
        method: "easyllp".into(),
        prior: LabelPrior::known(vec![1.0 / n_classes as f64; n_classes]).unwrap(),
        settings: [].into(),
        fingerprint: "00c0ffee".into(),
        training_bags: crate::training_bags::TrainingBags::default(),
        model: name.build(form, n_classes, 1).unwrap(),
        name,
        image,
    }
}

#[test]
fn every_kind_of_model_is_written() {
    let scores = |columns: &[&str], model: &str, n_classes| {
        let operators = read(&model_file(columns, model, n_classes)).operators.join(" ");
        // Two classes end in `Greater Cast Squeeze Gather Mul Softmax`, three in `ArgMax Gather Softmax`.
        let end = if n_classes == 2 { " Greater" } else { " ArgMax" };
        operators.split_once(end).unwrap().0.to_owned()
    };
    assert_eq!(scores(&["a"], "linear", 2), "Sub Div Cast IsNaN Where Gemm");
    assert_eq!(
        scores(&["a", "other", "word"], "linear", 3),
        "LabelEncoder LabelEncoder Concat Sub Div Cast IsNaN Where Gemm Gather ReduceSum Add"
    );
    assert_eq!(scores(&["word"], "linear", 2), "LabelEncoder Gather ReduceSum Add");
    assert_eq!(scores(&["a", "b"], "mlp:4,3", 2), "Concat Sub Div Cast IsNaN Where Gemm Relu Gemm Relu Gemm");
    assert_eq!(
        scores(&["a", "word"], "embedding:3,mlp:4", 3),
        "LabelEncoder Sub Div Cast IsNaN Where Gather Reshape Concat Gemm Relu Gemm"
    );
    assert_eq!(
        scores(&["image"], "cnn:conv3x4:same tanh pool2 dropout0.5 conv2x3 avgpool1 fc5 relu", 2),
        "Cast Sub Div Cast Reshape Conv Tanh MaxPool Conv AveragePool Flatten Gemm Relu Gemm"
    );
    let mut gelu = model_file(&["a"], "mlp:4", 2);
    let hidden = Hidden { activation: Activation::Gelu, ..Hidden::new(&[4]) };
    gelu.model = AnyModel::Mlp(Mlp::new(1, &hidden, 2, 1).unwrap());
    assert!(read(&gelu).operators.join(" ").contains("Gemm Div Erf Add Mul Mul Gemm"));
}

#[test]
fn inputs_are_columns_and_outputs_have_their_names() {
    let Read { inputs, outputs, .. } = read(&model_file(&["word", "a", "missing", "image"], "linear", 3));
    assert_eq!(
        inputs,
        ["a double[rows, 1]", "image float[rows, 32]", "missing double[rows, 1]", "word string[rows, 1]"]
    );
    assert_eq!(outputs, ["label string[rows]", "probabilities float[rows, 3]", "scores float[rows, 3]"]);
    // Columns keep their names, whatever they are.
    let Read { inputs, outputs, .. } = read(&model_file(&["label", "Gemm", "scores", "means"], "linear", 2));
    assert_eq!(inputs.len(), 4);
    assert!(inputs.contains(&"label double[rows, 1]".into()), "{inputs:?}");
    assert_eq!(outputs, ["label_2 string[rows]", "probabilities float[rows, 2]", "scores_2 float[rows, 1]"]);
}

/// Numbers come first, then flags, then lists; the model wants them column by column.
#[test]
fn features_are_brought_into_their_order() {
    let Read { graph, .. } = read(&model_file(&["a", "image", "missing"], "linear", 2));
    let order = all(&graph, 5).into_iter().find(|tensor| texts(tensor, 8) == ["order"]).unwrap();
    let (places, _) = all(order, 9)[0].as_chunks::<8>();
    let places: Vec<i64> = places.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect();
    // `a`; 32 numbers of `image`, behind two numbers and two flags; `missing`; its flag.
    assert_eq!(places, [&[0][..], &(4..36).collect::<Vec<i64>>(), &[1, 3]].concat());
}

#[test]
fn categories_are_lines_of_one_table() {
    let Read { graph, .. } = read(&model_file(&["other", "word"], "embedding:2,mlp:3", 2));
    let encoders: Vec<(Vec<String>, Vec<u64>, u64)> = all(&graph, 1)
        .into_iter()
        .filter(|node| texts(node, 4) == ["LabelEncoder"])
        .map(|node| {
            assert_eq!(texts(node, 7), ["ai.onnx.ml"]);
            let [keys, values, default] = all(node, 5)[..] else { panic!("three attributes") };
            (texts(keys, 9), numbers(values, 8), numbers(default, 3)[0])
        })
        .collect();
    let keys = vec!["x".to_owned(), "y".to_owned()];
    assert_eq!(encoders, [(keys.clone(), vec![1, 2], 0), (keys, vec![4, 5], 3)]);
}

#[test]
fn refuses_what_onnx_cannot_say() {
    let table = Table::new(vec![column("a"), column("word")]).unwrap();
    let encoder = Encoder::fit(&table, EncoderOptions { max_vocabulary: 1, hash_buckets: 5 }).unwrap();
    let model = LinearModel::for_rows(&encoder.encode(&table).unwrap(), 2).unwrap();
    let hashed = ModelFile { encoder, model: AnyModel::Linear(model), ..model_file(&["a"], "linear", 2) };
    assert_eq!(hashed.to_onnx().unwrap_err(), Error::OnnxHash { column: "word".into() });
    assert_eq!(model_file(&[""], "linear", 2).to_onnx().unwrap_err(), Error::OnnxNoName);
    let other = ModelFile {
        classes: Classes::sorted(&["a", "b", "c"]).unwrap().0,
        ..model_file(&["a"], "linear", 2)
    };
    assert!(matches!(other.to_onnx(), Err(Error::BadModel { .. })));
    assert_eq!(check_size(MOST_BYTES), Ok(()));
    assert!(check_size(MOST_BYTES + 1).is_err());
}

#[test]
fn the_same_model_gives_the_same_bytes() {
    let file = model_file(&["a", "missing", "word"], "embedding:3,mlp:4", 3);
    assert_eq!(file.to_onnx(), file.to_onnx());
}
