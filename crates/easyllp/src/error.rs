//! The library's errors. Each message has the values that were found.
//!
//! Every variant is an *expected* error: bad data or a bad setting. A bug in the library panics
//! instead (`debug_assert!`, `expect("why")`).

use std::error::Error as StdError;
use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// A result whose error is the library's [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// An invalid input or setting.
///
/// Bags, rows, classes and columns are named by their index, which counts from 0 in the given
/// order: messages say "row index 0". Lines of files and layers count from 1: "line 1".
///
/// An error that another error caused has it as its [source](StdError::source), and does not repeat
/// its message: [`in_full`](Self::in_full) has both.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant is its documentation, and names its fields")]
pub enum Error {
    // Rows and tables
    #[error("there are no rows")]
    NoRows,
    #[error("rows have neither dense features nor categories")]
    NoFeatures,
    #[error("{n_rows} rows are more than the {limit} that row indices can count")]
    TooManyRows { n_rows: usize, limit: usize },
    #[error("row index {row} has {value} in dense column index {column}: features must be finite")]
    FeatureNotFinite { row: usize, column: usize, value: f32 },
    #[error(
        "row index {row} of a sparse matrix has numbers {start} to {end}, but there are {n_values}: starts of rows must ascend"
    )]
    SparseRow { row: usize, start: usize, end: usize, n_values: usize },
    #[error(
        "row index {row} of a sparse matrix has a number in column index {column}, but there are only {n_columns} columns"
    )]
    SparseColumn { row: usize, column: u32, n_columns: usize },
    #[error(
        "{what} does not support sparse rows: use a linear model trained with L-BFGS (without epochs, learning rate and batch size), \
         or convert the rows to a dense array"
    )]
    SparseRows { what: &'static str },
    #[error(
        "row index {row} has category index {id} in field index {field}, which has only {cardinality} categories"
    )]
    CategoryOutOfRange { row: usize, field: usize, id: u32, cardinality: u32 },
    #[error("field index {field} has {got} categories, but the model was made for {expected}")]
    Cardinality { field: usize, expected: u32, got: u32 },
    #[error("{what}: expected {expected}, got {got}")]
    Shape { what: &'static str, expected: usize, got: usize },
    #[error("column `{column}` is missing from the table")]
    ColumnMissing { column: String },
    #[error("duplicate column `{column}`")]
    ColumnTwice { column: String },
    #[error("column `{column}` is {got}, but the encoder was fitted on a {expected} one")]
    ColumnKind { column: String, expected: &'static str, got: &'static str },
    #[error(
        "column `{column}` holds {found}, but the model was trained on text such as `{example}`: give the text"
    )]
    NumbersForText { column: String, found: &'static str, example: String },
    #[error("{} has no column `{column}`; it has {columns}", path.display())]
    NoSuchColumn { path: PathBuf, column: String, columns: String },
    #[error("column `{column}` has lists without a number")]
    EmptyLists { column: String },
    #[error("column `{column}` has numbers so large that they cannot be standardised")]
    NumbersTooLarge { column: String },
    #[error("column `{column}` has {value} in row index {row}: numbers must be finite, or missing")]
    NumberNotFinite { column: String, row: usize, value: f64 },
    #[error("column `{column}` has code {code} in row index {row}, but its dictionary has {len} entries")]
    CodeOutOfRange { column: String, row: usize, code: u32, len: usize },
    #[error("the encoder of column `{column}` is not as fitting leaves it: {reason}")]
    BadEncoder { column: String, reason: &'static str },
    #[error("these sums are not of parts of the same data: their {what} differ")]
    PartsDiffer { what: &'static str },

    // Files
    #[error("cannot write {path}")]
    CannotWrite { path: PathBuf, source: Cause },
    #[error("cannot read {path}")]
    CannotRead { path: PathBuf, source: Cause },
    #[error("{path} is given twice: its rows would count twice")]
    FileTwice { path: PathBuf },
    #[error("{path} cannot be read as a table")]
    BadFile { path: PathBuf, source: Cause },
    #[error(
        "{path} has an unknown format: its name must end in csv or tsv (also .gz, .zst), parquet, arrow, -ubyte(.gz) or bin; \
         to read it as text, set the delimiter"
    )]
    UnknownFormat { path: PathBuf },
    #[error("column `{column}` holds {found}, which cannot be a feature")]
    UnreadableColumn { column: String, found: String },
    #[error("column `{column}` has `{value}` in row index {row}, which is not a number")]
    NotANumber { column: String, row: usize, value: String },

    // Reports
    #[error(
        "{n_rows} rows have no report, with keys such as {keys} ({n_keys} in all); reports have keys such as \
         {report_keys} ({types}){hint}: complete the reports, or drop what does not match"
    )]
    RowsWithoutReport {
        n_rows: usize,
        n_keys: usize,
        keys: String,
        report_keys: String,
        types: String,
        hint: &'static str,
    },
    #[error(
        "{n_reports} reports have no rows, with keys such as {keys}; rows have keys such as {row_keys} ({types}): complete the rows, or drop what does not match"
    )]
    ReportsWithoutRows { n_reports: usize, keys: String, row_keys: String, types: String },
    #[error("key {key} is reported twice, at report indices {first} and {second}: a bag has one report")]
    ReportTwice { key: String, first: usize, second: usize },
    #[error("bag {key} reports a size of {reported}, but has {found} rows")]
    SizeDiffers { key: String, reported: f64, found: usize },
    #[error(
        "bag {key} has no number in column `{column}`: if small counts are suppressed, say below which number"
    )]
    CountMissing { key: String, column: String },
    #[error("bag {key} reports a count of {count}: without declared noise no count is negative")]
    CountNegative { key: String, count: f64 },
    #[error("bag {key} reports a count of {count}, but has only {size} rows")]
    CountOverSize { key: String, count: f64, size: usize },
    #[error("bag {key} reports a count of {count}: without declared noise a count is a whole number")]
    CountFraction { key: String, count: f64 },
    #[error("bag {key} has {size} rows, but its class counts sum to {counted}")]
    ReportDoesNotSum { key: String, size: usize, counted: f64 },
    #[error(
        "key `{column}` holds {rows} in the rows, such as {row_keys}, but {reports} in the reports, such as \
         {report_keys}: these cannot be compared; write the keys of both files alike"
    )]
    KeyKind {
        column: String,
        rows: &'static str,
        row_keys: String,
        reports: &'static str,
        report_keys: String,
    },
    #[error("column `{column}` holds {found}, which cannot be a key")]
    NotAKey { column: String, found: &'static str },
    #[error(
        "key `{column}` has {key} in the {table}, a floating-point number of at least 2^53, where whole numbers are \
         rounded: store keys as whole numbers or as text"
    )]
    KeyRounded { column: String, table: &'static str, key: String },

    // Bags
    #[error("there are no bags")]
    NoBags,
    #[error("bag index {bag} is empty")]
    EmptyBag { bag: usize },
    #[error("bag index {bag} holds row index {row}, but there are only {n_rows} rows")]
    RowOutOfRange { bag: usize, row: u32, n_rows: usize },
    #[error("row index {row} is in bag index {bag}, but there are only {n_bags} bags")]
    BagOutOfRange { row: usize, bag: u32, n_bags: usize },
    #[error("bag index {bag} does not exist: there are only {n_bags} bags")]
    NoSuchBag { bag: usize, n_bags: usize },
    #[error(
        "row index {row} is in bag index {first} and again in bag index {second}: a row belongs to one bag"
    )]
    RowTwice { row: u32, first: usize, second: usize },
    #[error("task index {task} has other bags than task index 0: tasks side by side have the same")]
    BagsDiffer { task: usize },
    #[error("a task of {n_classes} classes: at least 2 are needed")]
    TooFewClasses { n_classes: usize },
    #[error("a task of {n_classes} classes: at most {limit} are supported")]
    TooManyClasses { n_classes: usize, limit: usize },
    #[error(
        "bag index {bag} reports {count} rows of class index {class}: a count is a finite number of at most {limit:e}"
    )]
    CountNotFinite { bag: usize, class: usize, count: f64, limit: f64 },
    #[error(
        "bag index {bag} reports {count} rows of class index {class}: without declared noise a count is a whole number"
    )]
    CountNotWhole { bag: usize, class: usize, count: f64 },
    #[error(
        "bag index {bag} of {size} rows reports {count} of class index {class}: a count lies in 0 to {size}"
    )]
    CountOutOfRange { bag: usize, class: usize, count: f64, size: usize },
    #[error("bag index {bag} has {size} rows but its class counts sum to {counted}")]
    CountsDoNotSum { bag: usize, size: usize, counted: f64 },
    #[error("bag index {bag} declares noise of scale {scale}: a scale lies in 0 to {limit:e}")]
    NoiseScale { bag: usize, scale: f64, limit: f64 },
    #[error("duplicate class `{class}`")]
    ClassTwice { class: String },
    #[error("{classes} cannot be the classes of a task: {reason}")]
    BadClasses { classes: String, reason: String },
    #[error(
        "the reports count {counted}, but the model's classes are {classes}: give one count column for each of these \
         classes, and name the class of a column that has another name"
    )]
    ClassesDiffer { counted: String, classes: String },
    #[error("the models differ in their classes: {first} against {second}")]
    ModelsDiffer { first: String, second: String },
    #[error(
        "column `{column}` has {values}, but the model's classes are {classes}: every label must be one of them{hint}"
    )]
    UnknownLabels { column: String, values: String, classes: String, hint: &'static str },
    #[error("row index {row} has no label in column `{column}`")]
    NoLabel { column: String, row: usize },
    #[error(
        "column `{column}` has {n_values} distinct values, more than the {limit} classes that a label may have: choose \
         another column, or say which values are positive"
    )]
    TooManyLabels { column: String, n_values: usize, limit: usize },
    #[error("no row has `{value}` in column `{column}`")]
    LabelMissing { column: String, value: String },
    #[error("row index {row} has label {label}, but there are only {n_classes} classes")]
    LabelOutOfRange { row: usize, label: u32, n_classes: usize },
    #[error("{what} needs at least {needed} bags, got {got}")]
    TooFewBags { what: &'static str, needed: usize, got: usize },
    #[error("{what} needs rows of both classes, but by their counts the bags hold one only")]
    OneClass { what: &'static str },
    #[error("requires two classes, found {n_classes}")]
    TwoClassesOnly { n_classes: usize },

    // Correction
    #[error("class index {class} has prior {value}: a prior lies in 0 to 1")]
    PriorOutOfRange { class: usize, value: f64 },
    #[error("the prior sums to {sum}, not to 1")]
    PriorDoesNotSum { sum: f64 },
    #[error(
        "bag index {bag} has proportion {proportion}, which is noisy and cannot be drawn from: use soft targets"
    )]
    NoSurrogate { bag: usize, proportion: f64 },

    #[error("row index {row} has a target of {value} in column index {column}: targets must be finite")]
    TargetNotFinite { row: usize, column: usize, value: f32 },

    // Training
    #[error("EASYLLP_VECTORS is `{name}`, which this machine does not have: choose one of {available}")]
    UnknownVectors { name: String, available: String },
    #[error("{name} is {value}: it must be {expected}")]
    Setting { name: &'static str, value: String, expected: &'static str },
    #[error("unknown {what} `{name}`: choose one of {choices}")]
    UnknownName { what: &'static str, name: String, choices: &'static str },
    #[error("L-BFGS and SGD need a loss that stays convex for any target, and {loss} does not: use Adam")]
    NotConvex { loss: &'static str },
    #[error("L-BFGS requires a linear model: use Adam")]
    NotLinear,
    #[error("{loss} loss requires two classes, found {n_classes}: use softmax")]
    BinaryLoss { loss: &'static str, n_classes: usize },
    #[error(
        "the corrected loss has no minimum: it fell to {loss} in iteration {iteration} and keeps falling; raise `l2`"
    )]
    Unbounded { iteration: usize, loss: f64 },
    #[error("{value} in line index {line}, column index {column} of {block}: parameters must be finite")]
    ParameterNotFinite { block: String, line: usize, column: usize, value: f32 },
    #[error("rows have {n_fields} categorical fields, which this model cannot take: use an embedding net")]
    FieldsWithoutEmbedding { n_fields: usize },
    #[error(
        "unknown model `{name}`: choose linear, mlp:WIDTHS, embedding:WIDTH,mlp:WIDTHS or cnn:LAYERS, such as mlp:256,128 or cnn:mnist"
    )]
    UnknownModel { name: String },
    #[error("a cnn needs to know the shape of its images, such as 1x28x28")]
    NoImageShape,
    #[error("images of shape {shape} do not have {n_dense} numbers, as the rows have")]
    ImageShape { shape: String, n_dense: usize },
    #[error("layer {layer}, `{text}`: {reason}")]
    BadLayer { layer: usize, text: String, reason: String },
    #[error("the module has no parameter to learn that its scores depend on")]
    NothingToLearn,
    #[error(
        "`{name}` of the module takes no gradient, as running means of batch norm do not: use layer or group norm"
    )]
    ModuleBuffer { name: String },
    #[error("the module fails on two rows of zeros: {reason}")]
    ModuleFailed { reason: String },
    #[error("models in columns are trained with Adam")]
    ColumnsWithoutAdam,
    #[error("a loss of whole bags requires Adam: set `epochs`")]
    BagsWithoutAdam,
    #[error("method {method} requires a linear model with logistic or softmax loss")]
    LinearLogLossOnly { method: String },
    #[error("method {method} requires a linear model")]
    LinearOnly { method: String },
    #[error("method {method} requires a convex loss, found {loss}: use logistic, softmax or squared")]
    ConvexOnly { method: String, loss: String },
    #[error("{what} requires row labels, found counts of bags")]
    RowLabelsOnly { what: String },
    #[error("{what} requires row labels, given as bags of one row: bag index {bag} has {size} rows")]
    NotLabelled { what: String, bag: usize, size: usize },
    #[error("method {method} supports the losses logistic and softmax, which give log-odds; found {loss}")]
    LogOddsOnly { method: String, loss: String },
    #[error(
        "rows have {n_fields} categorical fields, and models in columns take none: train them one by one"
    )]
    FieldsInColumns { n_fields: usize },
    #[error("task index {task}")]
    Task { task: usize, source: Box<Error> },
    #[error("no row has a target")]
    NoTargets,
    #[error("training row index {row} does not exist: there are only {n_rows} rows")]
    TrainingRowOutOfRange { row: u32, n_rows: usize },
    #[error(
        "training diverged in epoch {epoch}, batch {batch} (loss {loss}): lower the learning rate, or raise the \
         weight decay"
    )]
    Diverged { epoch: usize, batch: usize, loss: f64 },

    // Settings of a fit
    #[error("{reason}")]
    Config { reason: String },
    #[error("parameters of {method}")]
    Parameters { method: &'static str, source: Cause },
    #[error("unknown method `{name}`: choose one of {choices}")]
    UnknownMethod { name: String, choices: String },
    #[error("method {method} has no parameter `{name}`: its parameters are {known}")]
    UnknownParameter { method: &'static str, name: String, known: String },
    #[error("parameter `{name}` of {method} is {value}: expected {expected}")]
    BadParameter { method: &'static str, name: String, value: String, expected: String },
    #[error("expected a number above 0, found {number}")]
    NotPositive { number: f64 },
    #[error("expected a number of at least 0, found {number}")]
    Negative { number: f64 },
    #[error(
        "the model was trained by method `{method}`, which is not built in: it predicts, but it cannot be trained again by name"
    )]
    ForeignMethod { method: String },
    #[error(
        "a validation share of {holdout} holds out {n_held_out} of {n_bags} bags, at least 2 are required: hold out more, or none"
    )]
    TooFewHeldOut { holdout: f64, n_bags: usize, n_held_out: usize },
    #[error("no candidate has a finite metric on the validation bags")]
    NoValidationMetric,
    #[error("training was interrupted")]
    Interrupted,

    // Evaluation
    #[error("scores of a margin loss give no probabilities: train with a loss that does, such as logistic")]
    NoProbabilities,
    #[error("row index {row} has a score of {value} in column index {column}: scores must be finite")]
    ScoreNotFinite { row: usize, column: usize, value: f32 },

    // Model files
    #[error("{path} is not a model that can be read")]
    BadModelFile { path: PathBuf, source: Cause },
    #[error("the rows have categories, and the encoder that made them is not known: set it for the fit")]
    NoEncoder,
    #[error("invalid model")]
    BadModel { source: Cause },
    #[error(
        "column `{column}` is hashed, which ONNX has no operator for: train with a larger vocabulary, or with a column of \
         fewer values"
    )]
    OnnxHash { column: String },
    #[error("a column without a name cannot be an input of ONNX")]
    OnnxNoName,
    #[error("the model has {n_bytes} bytes, and an ONNX file of one piece at most {limit}")]
    OnnxTooLarge { n_bytes: usize, limit: usize },

    // Embedded data
    #[error("the embedded data set {dataset} is damaged")]
    DamagedData { dataset: &'static str, source: Cause },
}

impl Error {
    /// The message, followed by those of its sources.
    ///
    /// ```
    /// let error = easyllp::ModelFile::from_bytes(b"no model").unwrap_err();
    /// assert_eq!(error.in_full(), format!("{error}: it does not begin as a model file does"));
    /// ```
    pub fn in_full(&self) -> String {
        let sources = std::iter::successors(self.source(), |&error| error.source());
        sources.fold(self.to_string(), |text, source| format!("{text}: {source}"))
    }
}

/// The error that caused an [`enum@Error`], or the reason in words.
///
/// It dereferences to the error, so that `downcast_ref` tells what it is. Two causes are equal if they say the same.
#[derive(Debug, Clone)]
pub struct Cause(Arc<dyn StdError + Send + Sync>);

impl<E: Into<Box<dyn StdError + Send + Sync>>> From<E> for Cause {
    fn from(error: E) -> Self {
        Self(Arc::from(error.into()))
    }
}

impl Deref for Cause {
    type Target = dyn StdError + Send + Sync;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(to)
    }
}

impl PartialEq for Cause {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

/// Checks that a length is the expected one.
pub(crate) fn check_length(what: &'static str, expected: usize, got: usize) -> Result<()> {
    if expected == got { Ok(()) } else { Err(Error::Shape { what, expected, got }) }
}
