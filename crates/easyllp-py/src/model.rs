//! A trained model: the content of a model file.

use crate::bags::bags;
use crate::config::config;
use crate::evaluation::{named, told};
use crate::failure::failure;
use crate::features::Features;
use crate::work::{Line, pooled, without_lock};
use easyllp::diagnose::randomness;
use easyllp::fit::{FitEvent, StageOptimizer};
use easyllp::table::EncoderOptions;
use easyllp::{
    Error, ModelFile,
    classes::{ClassKind, Classes},
    loss::Link,
    model::{ImageShape, Scorer as _},
    train::Progress,
};
use ndarray::Array2;
use numpy::{IntoPyArray, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The time between two progress lines within an epoch.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Scores, and the unfamiliar values of their rows.
type Scores<'py> = (Bound<'py, PyArray2<f32>>, Vec<String>);

/// A trained model with its encoders, classes and prior; `save` and `load` use the program's file
/// format.
#[pyclass(frozen, module = "easyllp._easyllp")]
pub(crate) struct Model(ModelFile);

#[pymethods]
impl Model {
    /// Trains with these settings; the second return value is JSON with the training log.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "keywords of a private function")]
    fn fit(
        py: Python,
        features: Features,
        of_row: PyReadonlyArray1<u32>,
        counts: PyReadonlyArray2<f64>,
        noise: Option<(String, Vec<f64>)>,
        classes: (Vec<String>, &str),
        settings: &str,
        image: Option<&str>,
        encoding: (usize, u32),
        n_threads: Option<usize>,
        is_verbose: bool,
    ) -> PyResult<(Self, String)> {
        let config = config(settings)?;
        let (names, kind) = classes;
        let classes =
            ClassKind::from_name(kind).and_then(|kind| Classes::new(names, kind)).map_err(failure)?;
        let image = image.map(str::parse::<ImageShape>).transpose().map_err(failure)?;
        let bags = bags(&of_row, &counts, noise)?;
        config.check(bags.have_row_labels()).map_err(failure)?;
        let (max_vocabulary, hash_buckets) = encoding;
        let lent = features.lent();
        let (file, outcome) = without_lock(py, n_threads, is_verbose, |line| {
            let found = randomness(&bags)?;
            let (encoder, rows) = lent.encoded(EncoderOptions { max_vocabulary, hash_buckets })?;
            line.say(format!("optimizer: {}", config.optimizer_choice()));
            let mut progress = Telling::begin(line);
            let mut watch = |event: FitEvent| progress.see(&event);
            let fitting = config.fitting(&rows, &bags).encoder(encoder).classes(classes).image(image);
            let fitted = fitting.watch(&mut watch).run()?;
            fitted.notes.iter().for_each(|note| line.say(note.clone()));
            let metrics = fitted.validation_metrics()?;
            let validation = fitted.validation.as_ref().zip(metrics).map(|(validation, metrics)| {
                json!({ "metrics": named(metrics), "n_bags": validation.bags.n_bags() })
            });
            let l2 = match fitted.optimizer() {
                StageOptimizer::Lbfgs(lbfgs) => Some(lbfgs.l2),
                StageOptimizer::Adam(adam) => Some(adam.weight_decay),
                StageOptimizer::Sgd(_) | StageOptimizer::None => None,
            };
            let outcome = json!({
                "log": fitted.log(),
                "notes": fitted.notes,
                "l2": l2,
                "validation": validation,
                "optimizer": config.optimizer_choice().name,
                "randomness": told(&found),
                "assumes_random_bags": config.method.assumes_random_bags(),
            });
            Ok((fitted.into_file()?, outcome.to_string()))
        })?;
        Ok((Self(file), outcome))
    }

    #[staticmethod]
    fn load(py: Python, path: PathBuf) -> PyResult<Self> {
        py.detach(|| ModelFile::load(&path)).map(Self).map_err(failure)
    }

    fn save(&self, py: Python, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.0.save(&path)).map_err(failure)
    }

    #[staticmethod]
    fn from_bytes(py: Python, bytes: &[u8]) -> PyResult<Self> {
        py.detach(|| ModelFile::from_bytes(bytes)).map(Self).map_err(failure)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.0.to_bytes()).map_err(failure)?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((py.get_type::<Self>().getattr("from_bytes")?, (self.to_bytes(py)?,)))
    }

    /// The model file as bytes, also written to `path` if given.
    #[pyo3(signature = (path=None))]
    fn to_onnx<'py>(&self, py: Python<'py>, path: Option<PathBuf>) -> PyResult<Bound<'py, PyBytes>> {
        let written = py.detach(|| {
            let onnx = self.0.to_onnx()?;
            path.map_or(Ok(()), |path| easyllp::files::write_whole(&path, &onnx))?;
            Ok(onnx)
        });
        let onnx = written.map_err(failure)?;
        Ok(PyBytes::new(py, &onnx))
    }

    /// Raw scores: one column for two classes, else one per class; with the unfamiliar values of
    /// the rows.
    fn scores<'py>(&self, py: Python<'py>, features: Features) -> PyResult<Scores<'py>> {
        let (scores, lines) = self.of_rows(py, &features, |rows| self.0.model.scores(rows))?;
        Ok((scores.into_pyarray(py), lines))
    }

    /// The probability of each class; with the unfamiliar values of the rows.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        features: Features,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, Vec<String>)> {
        let (probabilities, lines) = self.of_rows(py, &features, |rows| self.0.probabilities(rows))?;
        Ok((probabilities.into_pyarray(py), lines))
    }

    /// Raw scores of rows in bags, and how many of these bags the model was trained on, as text, if any.
    fn scores_of_bags<'py>(
        &self,
        py: Python<'py>,
        features: Features,
        of_row: PyReadonlyArray1<u32>,
        counts: PyReadonlyArray2<f64>,
        noise: Option<(String, Vec<f64>)>,
    ) -> PyResult<(Scores<'py>, Option<String>)> {
        let bags = bags(&of_row, &counts, noise)?;
        let lent = features.lent();
        let (scores, lines, overlap) = pooled(py, || {
            let (rows, unfamiliar) = lent.new_rows(&self.0.encoder)?;
            let overlap = self.0.training_bags.overlap(&rows.hashes(), &bags);
            Ok((self.0.model.scores(&rows)?, unfamiliar.lines(), overlap))
        })?;
        Ok(((scores.into_pyarray(py), lines), overlap.map(easyllp::training_bags::Overlap::words)))
    }

    #[getter]
    fn classes(&self) -> Vec<String> {
        self.0.classes.names().to_vec()
    }

    /// The type of the class values: `text`, `integer`, `float`, `boolean` or `counted`.
    #[getter]
    fn class_kind(&self) -> &'static str {
        self.0.classes.kind().as_str()
    }

    #[getter]
    fn prior(&self) -> Vec<f64> {
        self.0.prior.classes().to_vec()
    }

    #[getter]
    fn method(&self) -> String {
        self.0.method.clone()
    }

    #[getter]
    fn name(&self) -> String {
        self.0.name.to_string()
    }

    #[getter]
    fn loss(&self) -> String {
        self.0.loss.clone()
    }

    /// The training settings as JSON, and the method as text; None if the method is not built in.
    #[getter]
    fn config(&self) -> Option<(String, String)> {
        let config = self.0.config.as_ref()?;
        Some((json!(config).to_string(), config.method.to_string()))
    }

    /// How the model was trained, as text.
    #[getter]
    fn settings(&self) -> std::collections::BTreeMap<String, String> {
        self.0.settings.clone()
    }

    /// The table columns that the model reads; an array is one column of lists.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.encoder.columns().iter().map(|column| column.name.clone()).collect()
    }

    /// The number of columns that an array must have, if the model reads arrays.
    #[getter]
    fn width(&self) -> Option<usize> {
        use easyllp::table::ColumnEncoding;
        match self.0.encoder.columns() {
            [only] => match &only.encoding {
                ColumnEncoding::AsIs { width } => Some(*width),
                ColumnEncoding::StandardiseVector { means, .. } => Some(means.len()),
                _ => None,
            },
            _ => None,
        }
    }

    /// The column of each dense feature.
    #[getter]
    fn dense_columns(&self) -> Vec<String> {
        let names = (0..).map_while(|place| self.0.encoder.dense_column(place));
        names.map(str::to_owned).collect()
    }

    /// What a score means: `logit` or `identity`.
    #[getter]
    fn link(&self) -> &'static str {
        if self.0.link == Link::Identity { "identity" } else { "logit" }
    }

    /// The threshold of the score for the positive class.
    #[getter]
    fn threshold(&self) -> f64 {
        self.0.link.threshold()
    }

    /// Weights of a linear model, one line per dense feature, and its intercepts; None for others.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Option<(Bound<'py, PyArray2<f32>>, Vec<f32>)> {
        let linear = self.0.model.as_linear()?;
        Some((linear.weights().to_owned().into_pyarray(py), linear.intercept().iter().copied().collect()))
    }
}

impl Model {
    fn of_rows<T: Send>(
        &self,
        py: Python,
        features: &Features,
        of: impl Fn(&easyllp::Rows) -> Result<Array2<T>, Error> + Sync,
    ) -> PyResult<(Array2<T>, Vec<String>)> {
        let lent = features.lent();
        pooled(py, || {
            let (rows, unfamiliar) = lent.new_rows(&self.0.encoder)?;
            Ok((of(&rows)?, unfamiliar.lines()))
        })
    }
}

/// Reports progress of a training run, and whether to stop it.
struct Telling<'t, 'w> {
    line: &'t Line<'w>,
    what: String,
    epochs: usize,
    /// The current iteration of L-BFGS, and the estimated total.
    iteration: Option<(usize, Option<usize>)>,
    told: Instant,
}

impl<'t, 'w> Telling<'t, 'w> {
    fn begin(line: &'t Line<'w>) -> Self {
        Self { line, what: String::new(), epochs: 0, iteration: None, told: Instant::now() }
    }

    fn see(&mut self, event: &FitEvent) -> ControlFlow<()> {
        match *event {
            FitEvent::Started { what, epochs, rows, .. } => {
                (self.what, self.epochs) = (what.to_owned(), epochs);
                self.line.say(format!("{what}: {rows} rows"));
            }
            FitEvent::Progress(Progress::Iteration { iteration, left }) => {
                self.iteration = Some((iteration, left.map(|left| iteration + left)));
            }
            FitEvent::Progress(Progress::Epoch(log)) if self.line.is_heard() => {
                self.told = Instant::now();
                let where_it_is = match self.iteration.take() {
                    Some((iteration, Some(of))) => format!("iteration {iteration} of about {of}"),
                    Some((iteration, None)) => format!("iteration {iteration}"),
                    None => format!("epoch {} of {}", log.epoch, self.epochs),
                };
                self.line.say(format!("{}: {where_it_is}, loss {:.4}", self.what, log.loss));
            }
            FitEvent::Progress(Progress::Batch { epoch, rows_done, n_rows })
                if self.told.elapsed() >= LINE_EVERY =>
            {
                self.told = Instant::now();
                self.line.say(format!("{}: epoch {epoch}, {rows_done} of {n_rows} rows", self.what));
            }
            FitEvent::Progress(_) => {}
        }
        self.line.goes_on()
    }
}
