//! REPORT: export model files as ONNX.
//!
//! ```text
//!   columns ──► features ──► scores ──► outputs
//!   inputs      features.rs  scores.rs  outputs.rs
//!                            cnn.rs
//! ```
//!
//! The graph contains everything from the columns of a table to the name of a class. proto.rs
//! encodes bytes, graph.rs builds the graph.

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

/// The maximum size of a protocol buffers message.
const MOST_BYTES: usize = i32::MAX as usize;

impl ModelFile {
    /// Exports the model as an ONNX file that maps the columns of a table to the name of a class.
    /// It runs in any runtime with operator set 17 (and `ai.onnx.ml` 3 for text).
    ///
    /// Each column is an input under its own name, with any number of rows:
    ///
    /// | column | input | |
    /// |---|---|---|
    /// | numbers | `double[rows, 1]` | NaN is missing |
    /// | lists of numbers | `float[rows, width]` | an image channel by channel, line by line |
    /// | text | `string[rows, 1]` | the empty text is missing; a text not seen in training is
    /// handled as *any other value* |
    ///
    /// The outputs, in this order; if a column has the same name, the output gets a number as
    /// suffix:
    ///
    /// | output | |
    /// |---|---|
    /// | `label` | `string[rows]`: the name of the predicted class |
    /// | `probabilities` | `float[rows, classes]`: of all classes, also if there are two |
    /// | `scores` | `float[rows, 1]` for two classes (of the second), else `float[rows, classes]` |
    ///
    /// The metadata describe the model. `classes` holds JSON: the names in the order of the columns
    /// of `probabilities`, which is that of [`Classes`](crate::classes::Classes) and of Python's
    /// `predict_proba`. Probabilities match the library's up to rounding. An ONNX graph does not
    /// reject infinite numbers, as [`Encoder::encode`](crate::table::Encoder::encode) does.
    ///
    /// # Errors
    ///
    /// [`Error::OnnxHash`] for a hashed column: ONNX has no operator for the hash. Use a larger
    /// vocabulary
    /// ([`EncoderOptions::max_vocabulary`](crate::table::EncoderOptions::max_vocabulary)) to keep
    /// the values of such a column.
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
