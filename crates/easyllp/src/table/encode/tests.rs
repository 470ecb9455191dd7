use super::*;
use crate::table::Column;
use ndarray::Array2;

fn table() -> Table {
    Table::new(vec![
        ("b".into(), Column::Numeric(vec![1.0, 3.0, 5.0, 7.0])),
        ("a".into(), Column::Numeric(vec![4.0; 4])),
        ("word".into(), Column::categorical(["x", "z", "y", "x"])),
    ])
    .unwrap()
}

#[test]
fn numbers_are_standardised_and_constants_do_no_harm() {
    let rows = Encoder::fit(&table(), EncoderOptions::default()).unwrap().encode(&table()).unwrap();
    let batch = rows.as_dense().unwrap().batch(0..4);
    assert_eq!(batch.dense.column(0).to_vec(), [0.0; 4]); // "a", by name
    let sd = 5f32.sqrt();
    for (got, expected) in batch.dense.column(1).iter().zip([-3.0 / sd, -1.0 / sd, 1.0 / sd, 3.0 / sd]) {
        assert!((got - expected).abs() < 1e-6);
    }
    assert_eq!(batch.categories.column(0).to_vec(), [1, 3, 2, 1]);
    assert_eq!(rows.cardinalities(), [4]);
}

#[test]
fn missing_numbers_stand_at_the_mean_and_are_flagged() {
    let table = |values| Table::new(vec![("a".into(), Column::Numeric(values))]).unwrap();
    let seen = table(vec![1.0, f64::NAN, 3.0]);
    let encoder = Encoder::fit(&seen, EncoderOptions::default()).unwrap();
    let rows = encoder.encode(&seen).unwrap();
    assert_eq!(
        rows.as_dense().unwrap().batch(0..3).dense,
        ndarray::array![[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    );
    // None was missing in training: a missing one is put at the mean, and there is no flag to raise.
    let encoder = Encoder::fit(&table(vec![1.0, 3.0]), EncoderOptions::default()).unwrap();
    assert_eq!(
        encoder.encode(&seen).unwrap().as_dense().unwrap().batch(0..3).dense,
        ndarray::array![[-1.0], [0.0], [1.0]]
    );
    let nothing = table(vec![f64::NAN; 2]);
    let encoder = Encoder::fit(&nothing, EncoderOptions::default()).unwrap();
    assert_eq!(
        encoder.encode(&nothing).unwrap().as_dense().unwrap().batch(0..2).dense,
        ndarray::array![[0.0, 1.0], [0.0, 1.0]]
    );
}

#[test]
fn lists_stay_as_they_are_if_the_encoder_says_so() {
    let lists = ndarray::array![[0.5_f32, -3.0], [1e9, 0.0]];
    let table = Table::new(vec![("x".into(), Column::Vector(lists.clone()))]).unwrap();
    assert_eq!(Encoder::as_is("x", 2).encode(&table).unwrap().as_dense().unwrap().batch(0..2).dense, lists);
    let message = Encoder::as_is("x", 3).encode(&table).unwrap_err().to_string();
    assert_eq!(message, "numbers in a list: expected 3, got 2");
    assert!(Encoder::as_is("x", 0).check().is_err());
    assert!(Encoder::as_is("x", usize::MAX).check().is_err());
}

#[test]
fn extreme_numbers_are_standardised_or_refused() {
    let encode = |values: Vec<f64>| -> Result<Array2<f32>> {
        let table = Table::new(vec![("a".into(), Column::Numeric(values))]).unwrap();
        Ok(Encoder::fit(&table, EncoderOptions::default())?
            .encode(&table)?
            .as_dense()
            .unwrap()
            .batch(0..2)
            .dense
            .to_owned())
    };
    // Nanoseconds since 1970, half a second apart.
    let times = encode(vec![1.7e18, 1.7e18 + 5e8]).unwrap();
    assert!((times[[0, 0]] + 1.0).abs() < 1e-3 && (times[[1, 0]] - 1.0).abs() < 1e-3, "{times}");
    assert_eq!(encode(vec![0.1; 2]).unwrap(), ndarray::array![[0.0], [0.0]]);
    assert_eq!(encode(vec![1e300, -1.0]).unwrap_err(), Error::NumbersTooLarge { column: "a".into() });
    let lists = Table::new(vec![("a".into(), Column::Vector(Array2::from_elem((7, 3), 0.1)))]).unwrap();
    let encoder = Encoder::fit(&lists, EncoderOptions::default()).unwrap();
    assert!(
        encoder
            .encode(&lists)
            .unwrap()
            .as_dense()
            .unwrap()
            .batch(0..7)
            .dense
            .iter()
            .all(|feature| feature.abs() < 1e-9)
    );
    assert!(Table::new(vec![("a".into(), Column::Vector(Array2::zeros((2, 0))))]).is_err());
}

#[test]
fn lists_share_one_scale() {
    // Variances 1, 0 and 8: the scale is the root of 3.
    let lists = ndarray::array![[1.0_f32, 5.0, 0.0], [3.0, 5.0, 4.0 * 2f32.sqrt()]];
    let table = Table::new(vec![
        ("a".into(), Column::Numeric(vec![0.0, 2.0])),
        ("list".into(), Column::Vector(lists)),
    ])
    .unwrap();
    let encoder = Encoder::fit(&table, EncoderOptions::default()).unwrap();
    let rows = encoder.encode(&table).unwrap();
    let scale = 3f32.sqrt();
    for (got, expected) in rows.as_dense().unwrap().batch(0..1).dense.iter().zip([
        -1.0,
        -1.0 / scale,
        0.0,
        -(8f32.sqrt()) / scale,
    ]) {
        assert!((got - expected).abs() < 1e-6, "{got} {expected}");
    }
    let shorter = Column::Vector(Array2::zeros((1, 2)));
    let shorter =
        Table::new(vec![("a".into(), Column::Numeric(vec![0.0])), ("list".into(), shorter)]).unwrap();
    assert!(encoder.encode(&shorter).is_err());
}

#[test]
fn many_values_are_hashed_each_field_its_own_way() {
    let values: Vec<String> = (0..500).map(|value| format!("v{value}")).collect();
    let column = || Column::categorical(values.iter().map(String::as_str));
    let table = Table::new(vec![("c".into(), column()), ("d".into(), column())]).unwrap();
    let options = EncoderOptions { max_vocabulary: 10, hash_buckets: 64 };
    let rows = Encoder::fit(&table, options).unwrap().encode(&table).unwrap();
    let batch = rows.as_dense().unwrap().batch(0..500);
    assert_eq!(rows.cardinalities(), [64, 64]);
    let used: std::collections::HashSet<u32> = batch.categories.column(0).iter().copied().collect();
    assert!(used.len() > 60, "500 values fill nearly all of 64 buckets, not {}", used.len());
    assert_ne!(batch.categories.column(0), batch.categories.column(1));
}

#[test]
fn hashed_text_is_encoded_as_the_text_is() {
    let values: Vec<String> = (0..500).map(|value| format!("v{}", value % 70)).collect();
    let text = || values.iter().map(String::as_str);
    let in_full = Table::new(vec![("c".into(), Column::categorical(text()))]).unwrap();
    let hashed = Table::new(vec![("c".into(), Column::Hashed(text().collect()))]).unwrap();
    for max_vocabulary in [69, 70] {
        let options = EncoderOptions { max_vocabulary, hash_buckets: 32 };
        let encoder = Encoder::fit(&in_full, options).unwrap();
        assert_eq!(Encoder::fit(&hashed, options).unwrap(), encoder);
        let ids =
            |table| encoder.encode(table).unwrap().as_dense().unwrap().batch(0..500).categories.to_owned();
        assert_eq!(ids(&hashed), ids(&in_full));
    }
    let too_many = EncoderOptions { max_vocabulary: 4097, hash_buckets: 1 };
    assert!(Encoder::fit(&hashed, too_many).is_err());
}

#[test]
fn an_encoder_is_stored_and_read_back() {
    let encoder = Encoder::fit(&table(), EncoderOptions::default()).unwrap();
    let stored = serde_json::to_string(&encoder).unwrap();
    assert_eq!(serde_json::from_str::<Encoder>(&stored).unwrap(), encoder);
}

#[test]
fn the_shape_is_that_of_the_rows() {
    let lists = ("list".into(), Column::Vector(Array2::zeros((4, 3))));
    let table = Table::new([table().columns(), &[lists]].concat()).unwrap();
    for max_vocabulary in [1, 10] {
        let encoder = Encoder::fit(&table, EncoderOptions { max_vocabulary, hash_buckets: 7 }).unwrap();
        let rows = encoder.encode(&table).unwrap();
        assert_eq!(encoder.shape(), (rows.n_dense(), rows.cardinalities().to_vec()));
        assert_eq!(encoder.check(), Ok(()));
        // "a", "b", three numbers of "list"; "word" is the only field.
        let names: Vec<Option<&str>> = (0..6).map(|place| encoder.dense_column(place)).collect();
        assert_eq!(names, [Some("a"), Some("b"), Some("list"), Some("list"), Some("list"), None]);
        assert_eq!([0, 1].map(|field| encoder.field_column(field)), [Some("word"), None]);
    }
}

#[test]
fn refuses_encoders_that_were_never_fitted() {
    let column = |name: &str, encoding| ColumnEncoder { name: name.into(), encoding };
    let number = |name: &str| {
        let range = (-1.0, 4.0);
        column(name, ColumnEncoding::Standardise { mean: 1.0, scale: 2.0, flags_missing: false, range })
    };
    let list = |means: &[f64], scale| ColumnEncoding::StandardiseVector {
        means: means.to_vec(),
        scale,
        range: (0.0, 1.0),
    };
    let words =
        |values: &[&str]| ColumnEncoding::Vocabulary(values.iter().copied().map(str::to_owned).collect());
    let refused = |columns: Vec<ColumnEncoder>| Encoder { columns }.check().is_err();
    assert!(!refused(vec![number("a"), number("b"), column("c", words(&["x", "y"]))]));
    assert!(refused(vec![number("b"), number("a")]));
    assert!(refused(vec![number("a"), number("a")]));
    for encoding in [
        ColumnEncoding::Standardise { mean: f64::NAN, scale: 1.0, flags_missing: false, range: (0.0, 1.0) },
        ColumnEncoding::Standardise { mean: 0.0, scale: -1.0, flags_missing: true, range: (0.0, 1.0) },
        ColumnEncoding::Standardise { mean: 0.0, scale: 1.0, flags_missing: true, range: (2.0, 1.0) },
        ColumnEncoding::Standardise { mean: 0.0, scale: 1.0, flags_missing: true, range: (0.0, f64::NAN) },
        list(&[0.0, f64::INFINITY], 1.0),
        list(&[0.0], -1.0),
        words(&["y", "x"]),
        words(&["x", "x"]),
        ColumnEncoding::Hash(0),
    ] {
        assert!(refused(vec![column("a", encoding)]));
    }
}

#[test]
fn refuses_tables_that_do_not_fit() {
    let encoder = Encoder::fit(&table(), EncoderOptions::default()).unwrap();
    let other = |columns| encoder.encode(&Table::new(columns).unwrap()).unwrap_err().to_string();
    let numbers = |name: &str| (name.to_owned(), Column::Numeric(vec![1.0]));
    assert_eq!(other(vec![numbers("a"), numbers("c")]), "column `b` is missing from the table");
    assert_eq!(
        other(vec![numbers("a"), numbers("b"), numbers("word")]),
        "column `word` is numeric, but the encoder was fitted on a categorical one"
    );
    assert!(Table::new(vec![numbers("a"), numbers("a")]).is_err());
    assert!(Table::new(vec![]).is_err());
    assert!(Table::new(vec![("a".into(), Column::Numeric(vec![f64::INFINITY]))]).is_err());
    let bad_code = Column::Categorical { dictionary: vec!["x".into()], codes: vec![1] };
    assert!(Table::new(vec![("a".into(), bad_code)]).is_err());
    assert!(Encoder::fit(&table(), EncoderOptions { hash_buckets: 0, max_vocabulary: 1 }).is_err());
}
