//! A trained model: what a model file holds.

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

/// Between two lines of progress within an epoch.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Scores, and what is unfamiliar in their rows.
type Scores<'py> = (Bound<'py, PyArray2<f32>>, Vec<String>);

/// A trained model with its encoders, classes and prior; `save` and `load` share the program's file.
#[pyclass(frozen, module = "easyllp._easyllp")]
pub(crate) struct Model(ModelFile);

#[pymethods]
impl Model {
    /// Trains by the settings; the second part of the answer is JSON on how it went.
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
        config.check(bags.sizes().all(|size| size == 1)).map_err(failure)?;
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

    /// The bytes, which are written to a file, too, if one is named.
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

    /// Scores as the model gives them: one column for two classes, else one a class. With what is unfamiliar in the rows.
    fn scores<'py>(&self, py: Python<'py>, features: Features) -> PyResult<Scores<'py>> {
        let (scores, lines) = self.of_rows(py, &features, |rows| self.0.model.scores(rows))?;
        Ok((scores.into_pyarray(py), lines))
    }

    /// The probability of each class, likewise.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        features: Features,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, Vec<String>)> {
        let (probabilities, lines) = self.of_rows(py, &features, |rows| self.0.probabilities(rows))?;
        Ok((probabilities.into_pyarray(py), lines))
    }

    /// Scores of rows in bags, likewise, and how many of these bags it was trained on, in words, if there are some.
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

    /// What the values of classes are: `text`, `integer`, `float`, `boolean` or `counted`.
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

    /// The settings that it was trained with, as JSON, and its method in words; None if the method is not a built-in one.
    #[getter]
    fn config(&self) -> Option<(String, String)> {
        let config = self.0.config.as_ref()?;
        Some((json!(config).to_string(), config.method.to_string()))
    }

    /// How it was trained, in words.
    #[getter]
    fn settings(&self) -> std::collections::BTreeMap<String, String> {
        self.0.settings.clone()
    }

    /// The columns of a table that it reads; an array is one column of lists.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.encoder.columns().iter().map(|column| column.name.clone()).collect()
    }

    /// How many columns an array must have, if it reads arrays.
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

    /// The column that each dense feature comes from.
    #[getter]
    fn dense_columns(&self) -> Vec<String> {
        let names = (0..).map_while(|place| self.0.encoder.dense_column(place));
        names.map(str::to_owned).collect()
    }

    /// What a score says: `logit` or `identity`.
    #[getter]
    fn link(&self) -> &'static str {
        if self.0.link == Link::Identity { "identity" } else { "logit" }
    }

    /// The score above which a row of a task of two classes is taken for class 1.
    #[getter]
    fn threshold(&self) -> f64 {
        self.0.link.threshold()
    }

    /// Weights of a linear model, one line a dense feature, and its intercepts; None for others.
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

/// Tells of a training, and hears that it shall stop.
struct Telling<'t, 'w> {
    line: &'t Line<'w>,
    what: String,
    epochs: usize,
    /// The iteration of L-BFGS, and about how many there will be.
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
