//! Model files as they are written, and files as nobody should have written them.

use super::*;
use crate::model::LinearModel;
use crate::table::{Column, EncoderOptions, Table};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::fs;

/// A model of these columns, with weights that are no round numbers.
fn model_file(columns: Vec<(String, Column)>, n_classes: usize) -> ModelFile {
    let table = Table::new(columns).unwrap();
    let encoder = Encoder::fit(&table, EncoderOptions { max_vocabulary: 3, hash_buckets: 5 }).unwrap();
    let mut model = LinearModel::for_rows(&encoder.encode(&table).unwrap(), n_classes).unwrap();
    let mut next = 0.0_f32;
    for block in &mut model.parameters_mut().0 {
        block.values.mapv_inplace(|_| {
            next += 0.7;
            next.sin()
        });
    }
    ModelFile {
        encoder,
        classes: Classes::sorted(&(0..n_classes).map(|class| format!("☃ \"{class}\"")).collect::<Vec<_>>())
            .unwrap()
            .0,
        loss: crate::loss::LossName::cross_entropy(n_classes).as_str().into(),
        link: Link::Logit,
        config: None,
        method: "easyllp".into(),
        prior: LabelPrior::known(vec![1.0 / n_classes as f64; n_classes]).unwrap(),
        settings: [("optimizer".into(), "adam".into()), ("läuft".into(), "\\ \u{0} ✓".into())].into(),
        fingerprint: "00c0ffee".into(),
        training_bags: TrainingBags::default(),
        name: ModelSpec::Linear,
        image: None,
        model: AnyModel::Linear(model),
    }
}

fn numbers() -> (String, Column) {
    ("number".into(), Column::Numeric(vec![0.1, 0.7, 1e-3, 2.9]))
}

fn lists() -> (String, Column) {
    let values = ndarray::array![[0.3_f32, 1.0], [0.1, 7.0], [0.0, -3.0], [9.1, 0.2]];
    ("list".into(), Column::Vector(values))
}

fn words() -> (String, Column) {
    ("word".into(), Column::categorical(["x", "y", "x", "☃"]))
}

fn hashed() -> (String, Column) {
    ("hashed".into(), Column::categorical(["a", "b", "c", "d"]))
}

/// One of each kind of column.
fn example() -> ModelFile {
    model_file(vec![numbers(), lists(), words(), hashed()], 3)
}

/// Binary, one number: as small as files get.
fn small() -> ModelFile {
    ModelFile { settings: BTreeMap::new(), ..model_file(vec![numbers()], 2) }
}

fn reason(outcome: Result<ModelFile>) -> String {
    match outcome {
        Err(Error::BadModel { source }) => source.to_string(),
        other => panic!("{other:?}"),
    }
}

/// Gives edited bytes the checksum that they should have, as a forger would.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(checksum) = checksum(&bytes) {
        bytes[CHECKSUM].copy_from_slice(checksum.as_bytes());
    }
    bytes
}

/// A file with this description, these tensors and so many bytes of numbers, and the right checksum.
fn forged(description: &Value, tensors: &str, n_bytes: usize) -> Vec<u8> {
    let text = json!(format!("{:032} {description}", 0));
    let header = format!(r#"{{"__metadata__":{{"easyllp":{text}}},{tensors}}}"#);
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.bytes());
    bytes.resize(bytes.len() + n_bytes, 0);
    sealed(bytes)
}

/// The description and the tensors in the header of a file.
fn header(file: &ModelFile) -> (Value, String) {
    let bytes = file.to_bytes().unwrap();
    let mut header: Value = serde_json::from_slice(split(&bytes).unwrap().0).unwrap();
    let text = header["__metadata__"][KEY].as_str().unwrap().to_owned();
    header.as_object_mut().unwrap().remove("__metadata__");
    let tensors = header.to_string();
    (serde_json::from_str(&text[33..]).unwrap(), tensors[1..tensors.len() - 1].to_owned())
}

#[test]
fn what_is_written_is_read_back() {
    let files = [
        small(),
        example(),
        model_file(vec![words(), numbers()], 2),
        model_file(vec![words(), hashed()], 2),
        model_file(vec![hashed()], 7),
        model_file(vec![lists()], 10),
    ];
    for file in files {
        let bytes = file.to_bytes().unwrap();
        assert_eq!(ModelFile::from_bytes(&bytes).unwrap(), file);
    }
}

#[test]
fn the_same_model_gives_the_same_bytes() {
    let bytes = example().to_bytes().unwrap();
    for _ in 0..20 {
        assert_eq!(example().to_bytes().unwrap(), bytes);
    }
    assert_eq!(ModelFile::from_bytes(&bytes).unwrap().to_bytes().unwrap(), bytes);
}

#[test]
fn other_readers_of_safetensors_find_the_numbers() {
    let file = example();
    let bytes = file.to_bytes().unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    for block in &file.model.parameters().0 {
        let tensor = tensors.tensor(&block.name).unwrap();
        assert_eq!(tensor.shape(), block.values.shape());
        let first = f32::from_le_bytes(tensor.data()[..4].try_into().unwrap());
        assert_eq!(first.to_bits(), block.values[[0, 0]].to_bits());
    }
}

#[test]
fn the_description_is_sorted_json() {
    let (description, _) = header(&small());
    assert_eq!(description["format"], 1);
    assert_eq!(description["model"], "linear");
    assert_eq!(description["loss"], "logistic");
    assert_eq!(description["prior"], json!([0.5, 0.5]));
    assert_eq!(description["version"], env!("CARGO_PKG_VERSION"));
    let bytes = small().to_bytes().unwrap();
    let text = String::from_utf8_lossy(split(&bytes).unwrap().0);
    let places = description.as_object().unwrap().keys().map(|key| text.find(&format!("\\\"{key}\\\":")));
    assert!(places.is_sorted());
}

#[test]
fn every_truncation_is_refused() {
    let bytes = example().to_bytes().unwrap();
    for length in 0..bytes.len() {
        assert!(ModelFile::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
        assert!(ModelFile::from_bytes(&sealed(bytes[..length].to_vec())).is_err(), "{length} bytes, sealed");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(ModelFile::from_bytes(&longer).is_err());
    assert!(reason(ModelFile::from_bytes(&sealed(longer))).starts_with("bytes of tensors: expected"));
}

#[test]
fn every_change_of_a_byte_is_refused() {
    let mut bytes = small().to_bytes().unwrap();
    for place in 0..bytes.len() {
        for change in 1..=u8::MAX {
            bytes[place] ^= change;
            assert!(ModelFile::from_bytes(&bytes).is_err(), "byte {place} changed by {change}");
            bytes[place] ^= change;
        }
    }
    assert!(ModelFile::from_bytes(&bytes).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    /// With the checksum forged as well, a change is an error or makes another sound model, and never a panic.
    #[test]
    fn forged_changes_do_no_harm(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)
    ) {
        let mut bytes = example().to_bytes().unwrap();
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        if let Ok(file) = ModelFile::from_bytes(&sealed(bytes)) {
            prop_assert_eq!(&ModelFile::from_bytes(&file.to_bytes().unwrap()).unwrap(), &file);
        }
    }

    #[test]
    fn bytes_of_any_kind_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(ModelFile::from_bytes(&bytes).is_err());
        let opened = [&200_u64.to_le_bytes(), OPENING, &[b'0'; 32], &bytes].concat();
        prop_assert!(ModelFile::from_bytes(&sealed(opened)).is_err());
    }

    /// Numbers, priors and text come back to the last bit.
    #[test]
    fn any_content_is_read_back(
        values in prop::collection::vec(-1e9..1e9_f64, 2..5),
        weight in prop::num::f32::NORMAL | prop::num::f32::SUBNORMAL | prop::num::f32::ZERO,
        odds in prop::collection::vec(0.01..1.0_f64, 3),
        text in any::<String>(),
    ) {
        let mut file = model_file(vec![("number".into(), Column::Numeric(values))], 3);
        file.model.parameters_mut().0[0].values.fill(weight);
        file.prior = LabelPrior::known(odds.iter().map(|p| p / odds.iter().sum::<f64>()).collect()).unwrap();
        file.settings.insert(text.clone(), text);
        let read = ModelFile::from_bytes(&file.to_bytes().unwrap()).unwrap();
        prop_assert_eq!(read, file);
    }
}

#[test]
fn a_newer_format_is_refused_with_both_numbers() {
    let (mut description, tensors) = header(&small());
    description["format"] = json!(2);
    description["version"] = json!("0.9.0");
    description.as_object_mut().unwrap().remove("loss");
    let reason = reason(ModelFile::from_bytes(&forged(&description, &tensors, 8)));
    assert_eq!(reason, "it has format 2, written by easyllp 0.9.0, and the newest one known here is 1");
}

#[test]
fn forged_descriptions_are_refused() {
    let (description, tensors) = header(&small());
    assert_eq!(ModelFile::from_bytes(&forged(&description, &tensors, 8)).unwrap().classes, small().classes);
    let with = |key: &str, value: Value| {
        let mut description = description.clone();
        description[key] = value;
        reason(ModelFile::from_bytes(&forged(&description, &tensors, 8)))
    };
    let encoder = |encoding: Value| json!({"columns": [{"name": "number", "encoding": encoding}]});

    let classes = |names: &[&str]| with("classes", json!({"kind": "text", "names": names}));
    assert!(classes(&["a", "a"]).contains("duplicate class `a`"));
    assert!(classes(&["b", "a"]).contains("`b` sorts after `a`"));
    assert!(classes(&[]).contains("a task of 0 classes: at least 2 are needed"));
    assert!(classes(&["a"]).contains("a task of 1 classes: at least 2 are needed"));
    assert_eq!(classes(&["a", "b", "c"]), "it holds 8 bytes of numbers, not those of its model");
    assert!(with("prior", json!([0.5, 0.6])).contains("the prior sums to 1.1, not to 1"));
    assert_eq!(with("prior", json!([0.5, 0.25, 0.25])), "classes of the prior: expected 2, got 3");
    assert!(with("link", json!("best")).contains("unknown variant `best`"));
    assert!(with("model", json!("forest")).contains("unknown model `forest`"));
    let too_few = "it holds 8 bytes of numbers, not those of its model";
    assert_eq!(with("model", json!("mlp:99999999999,99999999999")), too_few);
    assert_eq!(with("model", json!("cnn:conv3x4")), too_few);
    assert!(with("image", json!("0x1")).contains("0x1"));
    assert!(with("format", json!(-1)).contains("invalid value"));
    assert!(with("settings", json!(null)).contains("invalid type"));
    assert_eq!(with("encoder", json!({"columns": []})), too_few);
    assert!(
        with(
            "encoder",
            encoder(json!({"standardise": {"mean": 0.0, "scale": -1.0, "flags_missing": false, "range": [0.0, 1.0]}}))
        )
        .contains("its scale at least 0")
    );
    assert!(with("encoder", encoder(json!({"hash": 1}))).contains("not F32 in [0, 1]"));
    let bags = |sketch: &str| json!({"sketch": sketch, "repeated_rows": 0.0, "equal_bags": 0.0});
    assert!(with("training_bags", bags("zz")).contains("hashes of training bags must be"));
    assert!(with("training_bags", bags(&"0".repeat(32))).contains("must be sorted"));
}

/// Networks come back to the last bit, and under another name they are refused.
#[test]
fn networks_are_stored_and_read_back() {
    let pixels =
        || ("pixels".into(), Column::Vector(Array2::from_shape_fn((4, 64), |(row, p)| (row * p % 7) as f32)));
    let word = ("word".into(), Column::categorical(["a", "b", "c", "d"]));
    for (name, columns, image) in [
        ("mlp:5,3", vec![numbers(), lists()], None),
        ("embedding:2,mlp:4", vec![numbers(), word], None),
        ("cnn:conv3x4:same relu pool2 fc5 relu", vec![pixels()], Some("1x8x8")),
    ] {
        let mut file = model_file(columns, 3);
        file.name = name.parse().unwrap();
        file.image = image.map(|image| image.parse().unwrap());
        let (n_dense, cardinalities) = file.encoder.shape();
        let form = RowsForm { n_dense, cardinalities: &cardinalities, image: file.image };
        file.model = file.name.build(form, 3, 7).unwrap();
        let bytes = file.to_bytes().unwrap();
        assert!(ModelFile::from_bytes(&bytes).unwrap() == file, "{name}");
        file.name = ModelSpec::Linear;
        assert!(file.to_bytes().is_err(), "{name}");
    }
}

#[test]
fn forged_sizes_ask_for_no_memory() {
    let (mut description, tensors) = header(&small());
    let hash = |field: u32| json!({"name": format!("{field:04}"), "encoding": {"hash": u32::MAX}});
    for n_fields in [1, 2, 1000] {
        description["encoder"] = json!({"columns": (0..n_fields).map(hash).collect::<Vec<_>>()});
        let tensor = |name: &str, n_lines: u64, start: u64, end: u64| {
            format!(r#""{name}":{{"dtype":"F32","shape":[{n_lines},1],"data_offsets":[{start},{end}]}}"#)
        };
        // What the encoder asks for, without the numbers: 16 GB and more.
        let n_lines = u64::from(u32::MAX) * u64::from(n_fields);
        let asked = [
            tensor("weights", 0, 0, 0),
            tensor("intercept", 1, 0, 4),
            tensor("categories", n_lines, 4, 4 + 4 * n_lines),
        ];
        let outcome = reason(ModelFile::from_bytes(&forged(&description, &asked.join(","), 8)));
        assert!(outcome.starts_with("bytes of tensors: expected"), "{outcome}");
        assert!(ModelFile::from_bytes(&forged(&description, &tensors, 8)).is_err());
    }
}

#[test]
fn forged_headers_are_refused() {
    let (description, tensors) = header(&small());
    let refused =
        |tensors: &str, n_bytes| reason(ModelFile::from_bytes(&forged(&description, tensors, n_bytes)));
    let extra = r#""extra":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}"#;
    assert_eq!(
        refused(&format!("{tensors},{extra}"), 12),
        "it holds 12 bytes of numbers, not those of its model"
    );
    assert!(refused(&tensors.replace("F32", "I32"), 8).contains("has I32 numbers"));
    assert_eq!(refused(&tensors.replace("weights", "waits"), 8), "tensor `weights` is missing");
    assert!(refused(&tensors.replace("[1,1]", "[1,1,1]"), 8).contains("in shape [1, 1, 1]"));

    // Sizes that are fine one by one, and overflow in sum.
    let step = (1_u64 << 61) - 1;
    let chain = |part: u64| {
        let (start, end) = (part * step, (part + 1) * step);
        format!(r#""{part}":{{"dtype":"U8","shape":[{step}],"data_offsets":[{start},{end}]}}"#)
    };
    let last = format!(r#""8":{{"dtype":"U8","shape":[6],"data_offsets":[{},{}]}}"#, 8 * step, u64::MAX - 1);
    let chain = (0..8).map(chain).chain([last]).collect::<Vec<_>>().join(",");
    assert_eq!(refused(&chain, 8), "bytes of tensors: expected 18446744073709551614, got 8");

    for length in [0, u64::MAX, 1 << 40] {
        let mut bytes = small().to_bytes().unwrap();
        bytes[..LENGTH].copy_from_slice(&length.to_le_bytes());
        assert!(ModelFile::from_bytes(&sealed(bytes)).is_err(), "{length}");
    }
    assert_eq!(reason(ModelFile::from_bytes(b"PK\x03\x04")), "it does not begin as a model file does");
}

#[test]
fn weights_that_are_no_numbers_are_refused() {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut file = small();
        file.model.parameters_mut().0[1].values[[0, 0]] = value;
        let expected = format!(
            "block `intercept` has {value} in line index 0, column index 0: parameters must be finite"
        );
        assert_eq!(file.to_bytes().unwrap_err(), Error::BadModel { source: expected.clone().into() });

        // The intercept's name is the first of the sorted ones that has numbers, so it stands before the weights.
        let mut bytes = small().to_bytes().unwrap();
        let start = bytes.len() - 8;
        bytes[start..start + 4].copy_from_slice(&value.to_le_bytes());
        assert_eq!(reason(ModelFile::from_bytes(&sealed(bytes))), expected);
    }
}

#[test]
fn parts_that_do_not_fit_together_are_not_written() {
    let refused = |change: &dyn Fn(&mut ModelFile)| {
        let mut file = example();
        change(&mut file);
        match file.to_bytes() {
            Err(Error::BadModel { source }) => source.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let categories = "the model and the encoder differ in their categories";
    assert_eq!(refused(&|file| file.model = small().model), categories);
    assert_eq!(
        refused(&|file| file.model = AnyModel::Linear(LinearModel::new(3, &[4, 5], 3).unwrap())),
        categories,
        "hashed comes before word"
    );
    assert!(
        refused(&|file| file.model = AnyModel::Linear(LinearModel::new(4, &[5, 4], 3).unwrap()))
            .contains("[4, 3]")
    );
    assert!(
        refused(&|file| file.model = AnyModel::Linear(LinearModel::new(3, &[5, 4], 2).unwrap()))
            .contains("[3, 1]")
    );
    assert!(refused(&|file| file.model.parameters_mut().0.truncate(1)).contains("blocks of parameters"));
    assert!(refused(&|file| file.model.parameters_mut().0[0].name = "other".into()).contains("`other`"));
    assert!(refused(&|file| file.classes = Classes::counted("a")).contains("prior: expected 2, got 3"));
    assert!(refused(&|file| file.prior = LabelPrior::binary(0.5).unwrap()).contains("prior"));
}

#[test]
fn files_are_saved_and_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    small().save(&path).unwrap();
    example().save(&path).unwrap();
    assert_eq!(ModelFile::load(&path).unwrap(), example());
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn a_save_that_fails_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let refused = small().save(&missing.join("model.safetensors")).unwrap_err();
    assert!(matches!(refused, Error::CannotWrite { .. }), "{refused}");
    assert!(!missing.exists());

    let path = folder.path().join("model.safetensors");
    small().save(&path).unwrap();
    let before = fs::read(&path).unwrap();
    let mut bad = small();
    bad.model.parameters_mut().0[0].values.fill(f32::NAN);
    assert!(bad.save(&path).is_err());
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn refused_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let refused = ModelFile::load(&path).unwrap_err();
    assert!(matches!(refused, Error::CannotRead { .. }), "{refused}");
    assert!(refused.in_full().starts_with(&format!("cannot read {}: ", path.display())));
    fs::write(&path, "age,income\n").unwrap();
    assert_eq!(
        ModelFile::load(&path).unwrap_err().in_full(),
        format!("{} is not a model that can be read: it does not begin as a model file does", path.display())
    );
    assert!(ModelFile::load(folder.path()).is_err());
}
