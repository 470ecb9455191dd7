//! REPORT: model files as ONNX, which other programs and languages can run.
//!
//! ```text
//!   columns ──► features ──► scores ──► outputs
//!   inputs      features.rs  scores.rs  outputs.rs
//!                            cnn.rs
//! ```
//!
//! Everything from the columns of a table to the name of a class is inside the graph. proto.rs writes bytes, graph.rs what
//! they say.

mod cnn;
mod features;
mod graph;
mod outputs;
mod proto;
mod scores;

use crate::artifact::ModelFile;
use crate::error::{Error, Result};
use crate::model::Model;
use features::Features;
use graph::Graph;

/// The most bytes that a message of protocol buffers may have.
const MOST_BYTES: usize = i32::MAX as usize;

impl ModelFile {
    /// The model as the bytes of an ONNX file: everything from the columns of a table to the name of a class, for any
    /// runtime that knows operator set 17 (and `ai.onnx.ml` 3, if there is text).
    ///
    /// It has an input for each column, by the column's name, with any number of rows:
    ///
    /// | column | input | |
    /// |---|---|---|
    /// | numbers | `double[rows, 1]` | NaN is missing |
    /// | lists of numbers | `float[rows, width]` | an image channel by channel, line by line |
    /// | text | `string[rows, 1]` | the empty text is missing; one that was not seen in training is any other |
    ///
    /// and three outputs, in this order; if a column has the name of one, that one has a number behind its own:
    ///
    /// | output | |
    /// |---|---|
    /// | `label` | `string[rows]`: the name of the class that the scores speak for |
    /// | `probabilities` | `float[rows, classes]`: of all classes, also if they are two |
    /// | `scores` | `float[rows, 1]` for two classes (of the second), else `float[rows, classes]` |
    ///
    /// Its metadata say what the model is, and `classes` in JSON: the names in the order of the columns of `probabilities`,
    /// which is that of [`Classes`](crate::classes::Classes) and of Python's `predict_proba`. Probabilities are ours but for rounding. Numbers that are
    /// infinite are refused by [`Encoder::encode`](crate::table::Encoder::encode), and not by an ONNX graph, which makes
    /// of them what it can.
    ///
    /// # Errors
    ///
    /// [`Error::OnnxHash`] for a column that is hashed: no operator of ONNX hashes. A larger vocabulary
    /// ([`EncoderOptions::max_vocabulary`](crate::table::EncoderOptions::max_vocabulary)) keeps the values of such a column.
    ///
    /// ```
    /// use easyllp::table::{Column, Encoder, EncoderOptions, Table};
    /// use easyllp::{Bags, FitConfig, bagging};
    ///
    /// let ages = (0..400).map(f64::from).collect();
    /// let cities = (0..400).map(|row| if row % 3 == 0 { "Bern" } else { "Wien" });
    /// let table =
    ///     Table::new(vec![("age".into(), Column::Numeric(ages)), ("city".into(), Column::categorical(cities))])?;
    /// let encoder = Encoder::fit(&table, EncoderOptions::default())?;
    /// let labels: Vec<u32> = (0..400).map(|row| u32::from(row > 250)).collect();
    /// let bags = Bags::from_labels(bagging::random(400, &bagging::Sizes::Fixed(4), 1)?, &labels, 2)?;
    /// let rows = encoder.encode(&table)?;
    /// let file = FitConfig::default().fitting(&rows, &bags).encoder(encoder).run()?.into_file()?;
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("model.onnx");
    /// easyllp::files::write_whole(&path, &file.to_onnx()?)?;
    /// # assert!(std::fs::metadata(&path).unwrap().len() > 500);
    /// # Ok::<(), easyllp::Error>(())
    /// ```
    pub fn to_onnx(&self) -> Result<Vec<u8>> {
        self.check_sound()?;
        check_size(self.model.parameters().len().saturating_mul(size_of::<f32>()))?;
        let mut graph = Graph::default();
        let features = Features::add(&mut graph, &self.encoder)?;
        let scores = scores::add(&mut graph, &self.model, features)?;
        outputs::add(&mut graph, scores, self.link, self.classes.names())?;
        let classes = serde_json::to_string(self.classes.names()).expect("text is JSON");
        let known = [
            ("classes", classes.as_str()),
            ("data", &self.fingerprint),
            ("loss", self.loss.as_str()),
            ("method", &self.method),
            ("model", &self.name.to_string()),
        ];
        let bytes = graph::model(&graph.finish(), &known).into_bytes();
        check_size(bytes.len())?;
        Ok(bytes)
    }
}

fn check_size(n_bytes: usize) -> Result<()> {
    if n_bytes > MOST_BYTES { Err(Error::OnnxTooLarge { n_bytes, limit: MOST_BYTES }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
