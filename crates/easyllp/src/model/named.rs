//! Models by name, for the command line, files and other languages, and a model of any built-in
//! type.

use super::cnn::CnnTape;
use super::embedding::EmbeddingTape;
use super::mlp::MlpTape;
use super::{
    Architecture, Cnn, Embedding, EmbeddingNet, Gradient, Hidden, ImageShape, LinearModel, Mlp, Model,
    Parameters, Pass,
};
use crate::classes::n_columns;
use crate::error::{Error, Result};
use crate::rows::{Csr, RowBatch, Rows};
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A model architecture by name, such as `linear`, `mlp:64,32` or `cnn:mnist`.
///
/// - `linear`: a linear model;
/// - `mlp:256,128`: fully connected layers of these widths;
/// - `embedding:16,mlp:256,128`: an embedding of 16 values per categorical field, then such layers;
/// - `cnn:mnist`, `cnn:cifar`, or `cnn:` and the [layers](Architecture) of a network for images.
///
/// ```
/// use easyllp::ModelSpec;
///
/// let name: ModelSpec = "embedding:16,mlp:256,128".parse()?;
/// assert_eq!(name.to_string(), "embedding:16,mlp:256,128");
/// assert!("mlp:0".parse::<ModelSpec>().is_err());
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ModelSpec {
    /// [`LinearModel`].
    #[default]
    Linear,
    /// [`Mlp`] with these widths.
    Mlp(Vec<usize>),
    /// [`EmbeddingNet`].
    Embedding {
        /// The embedding width.
        width: usize,
        /// The widths of the layers that follow.
        widths: Vec<usize>,
    },
    /// [`Cnn`].
    Cnn(Architecture),
}

/// The shape of the rows that a model is created for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowsForm<'s> {
    /// The number of dense features per row.
    pub n_dense: usize,
    /// The number of categories of each field.
    pub cardinalities: &'s [u32],
    /// The shape of the images in the dense features, if any.
    pub image: Option<ImageShape>,
}

impl ModelSpec {
    /// Creates the model for rows of a given shape; random weights are drawn from the seed.
    pub fn build(&self, form: RowsForm, n_classes: usize, seed: u64) -> Result<AnyModel> {
        Ok(match self {
            Self::Linear => AnyModel::Linear(LinearModel::new(form.n_dense, form.cardinalities, n_classes)?),
            Self::Mlp(widths) => {
                form.without_categories()?;
                AnyModel::Mlp(Mlp::new(form.n_dense, &Hidden::new(widths), n_classes, seed)?)
            }
            Self::Embedding { width, widths } => {
                let embedding =
                    Embedding { n_dense: form.n_dense, cardinalities: form.cardinalities, width: *width };
                AnyModel::Embedding(EmbeddingNet::new(embedding, &Hidden::new(widths), n_classes, seed)?)
            }
            Self::Cnn(architecture) => {
                form.without_categories()?;
                let image = form.image.ok_or(Error::NoImageShape)?;
                let n_pixels = image.channels * image.height * image.width;
                if n_pixels != form.n_dense {
                    return Err(Error::ImageShape { shape: image.to_string(), n_dense: form.n_dense });
                }
                AnyModel::Cnn(Box::new(Cnn::new(architecture, image, n_classes, seed)?))
            }
        })
    }

    /// The number of parameters of the model, if it can be counted; checked before allocation.
    pub(crate) fn n_parameters(&self, form: RowsForm, n_classes: usize) -> Option<usize> {
        let n_scores = n_columns(n_classes);
        let n_categories =
            form.cardinalities.iter().try_fold(0_usize, |sum, &n| sum.checked_add(n as usize))?;
        match self {
            Self::Linear => form.n_dense.checked_add(1)?.checked_add(n_categories)?.checked_mul(n_scores),
            Self::Mlp(widths) => of_layers(form.n_dense, widths, n_scores),
            Self::Embedding { width, widths } => {
                let n_inputs = form.cardinalities.len().checked_mul(*width)?.checked_add(form.n_dense)?;
                of_layers(n_inputs, widths, n_scores)?.checked_add(n_categories.checked_mul(*width)?)
            }
            Self::Cnn(architecture) => {
                let (n_in_body, n_features, widths) = architecture.sizes(form.image?).ok()?;
                of_layers(n_features, &widths, n_scores)?.checked_add(n_in_body)
            }
        }
    }
}

/// Weights and biases of fully connected layers.
fn of_layers(n_inputs: usize, widths: &[usize], n_scores: usize) -> Option<usize> {
    let mut n_inputs = n_inputs;
    widths.iter().chain([&n_scores]).try_fold(0_usize, |sum, &width| {
        let of_layer = n_inputs.checked_add(1)?.checked_mul(width)?;
        n_inputs = width;
        sum.checked_add(of_layer)
    })
}

impl RowsForm<'_> {
    fn without_categories(&self) -> Result<()> {
        match self.cardinalities.len() {
            0 => Ok(()),
            n_fields => Err(Error::FieldsWithoutEmbedding { n_fields }),
        }
    }
}

impl FromStr for ModelSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let widths = |list: &str| -> Option<Vec<usize>> {
            list.split(',').map(|width| width.trim().parse().ok().filter(|&width| width > 0)).collect()
        };
        let unknown = || Error::UnknownModel { name: text.into() };
        match text.split_once(':') {
            None if text == "linear" => Ok(Self::Linear),
            Some(("mlp", list)) => Ok(Self::Mlp(widths(list).ok_or_else(unknown)?)),
            Some(("embedding", rest)) => {
                let (width, list) = rest.split_once(",mlp:").ok_or_else(unknown)?;
                let width = width.parse().ok().filter(|&width| width > 0).ok_or_else(unknown)?;
                Ok(Self::Embedding { width, widths: widths(list).ok_or_else(unknown)? })
            }
            Some(("cnn", layers)) => Ok(Self::Cnn(layers.parse()?)),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for ModelSpec {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        let list = |widths: &[usize]| widths.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        match self {
            Self::Linear => to.write_str("linear"),
            Self::Mlp(widths) => write!(to, "mlp:{}", list(widths)),
            Self::Embedding { width, widths } => write!(to, "embedding:{width},mlp:{}", list(widths)),
            Self::Cnn(architecture) => write!(to, "cnn:{architecture}"),
        }
    }
}

impl TryFrom<String> for ModelSpec {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<ModelSpec> for String {
    fn from(name: ModelSpec) -> Self {
        name.to_string()
    }
}

/// A model of any built-in type.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyModel {
    /// Linear in the features.
    Linear(LinearModel),
    /// Fully connected layers.
    Mlp(Mlp),
    /// Embeddings, then fully connected layers.
    Embedding(EmbeddingNet),
    /// Convolutions, then fully connected layers.
    Cnn(Box<Cnn>),
}

/// What [`AnyModel`] keeps from `forward` to `backward`: the tape of the model it is.
#[derive(Debug, Default)]
pub enum AnyTape {
    /// Of a linear model, or of any other before its first pass.
    #[default]
    Empty,
    /// Of fully connected layers.
    Mlp(MlpTape),
    /// Of embeddings and layers.
    Embedding(EmbeddingTape),
    /// Of convolutions and layers.
    Cnn(Box<CnnTape>),
}

/// Dispatches a call to the model.
macro_rules! on_each {
    ($model:expr, $inner:ident => $call:expr) => {
        match $model {
            AnyModel::Linear($inner) => $call,
            AnyModel::Mlp($inner) => $call,
            AnyModel::Embedding($inner) => $call,
            AnyModel::Cnn($inner) => $call,
        }
    };
}

impl AnyModel {
    /// The number of categories of each field.
    pub(crate) fn cardinalities(&self) -> &[u32] {
        match self {
            Self::Linear(model) => model.cardinalities(),
            Self::Embedding(model) => model.cardinalities(),
            Self::Mlp(_) | Self::Cnn(_) => &[],
        }
    }

    /// The model as a linear one, if it is.
    pub fn as_linear(&self) -> Option<&LinearModel> {
        match self {
            Self::Linear(model) => Some(model),
            _ => None,
        }
    }
}

impl Model for AnyModel {
    type Tape = AnyTape;

    fn n_scores(&self) -> usize {
        on_each!(self, model => model.n_scores())
    }

    fn check(&self, rows: &Rows) -> Result<()> {
        on_each!(self, model => model.check(rows))
    }

    fn parameters(&self) -> &Parameters {
        on_each!(self, model => model.parameters())
    }

    fn parameters_mut(&mut self) -> &mut Parameters {
        on_each!(self, model => model.parameters_mut())
    }

    fn rows_at_once(&self) -> usize {
        on_each!(self, model => model.rows_at_once())
    }

    fn forward(&self, rows: &RowBatch, pass: Pass, tape: &mut AnyTape, scores: ArrayViewMut2<f32>) {
        match (self, &mut *tape) {
            (Self::Linear(model), _) => model.forward(rows, pass, &mut (), scores),
            (Self::Mlp(model), AnyTape::Mlp(tape)) => model.forward(rows, pass, tape, scores),
            (Self::Embedding(model), AnyTape::Embedding(tape)) => model.forward(rows, pass, tape, scores),
            (Self::Cnn(model), AnyTape::Cnn(tape)) => model.forward(rows, pass, tape, scores),
            (_, tape) => {
                *tape = match self {
                    Self::Linear(_) => AnyTape::Empty,
                    Self::Mlp(_) => AnyTape::Mlp(MlpTape::default()),
                    Self::Embedding(_) => AnyTape::Embedding(EmbeddingTape::default()),
                    Self::Cnn(_) => AnyTape::Cnn(Box::default()),
                };
                self.forward(rows, pass, tape, scores);
            }
        }
    }

    fn backward(
        &self,
        rows: &RowBatch,
        tape: &mut AnyTape,
        dscores: ArrayView2<f32>,
        gradient: &mut Gradient,
    ) {
        match (self, tape) {
            (Self::Linear(model), _) => model.backward(rows, &mut (), dscores, gradient),
            (Self::Mlp(model), AnyTape::Mlp(tape)) => model.backward(rows, tape, dscores, gradient),
            (Self::Embedding(model), AnyTape::Embedding(tape)) => {
                model.backward(rows, tape, dscores, gradient);
            }
            (Self::Cnn(model), AnyTape::Cnn(tape)) => model.backward(rows, tape, dscores, gradient),
            _ => panic!("backward without the forward pass of the same model"),
        }
    }

    fn sparse_scores(&self, rows: &Csr) -> Result<Array2<f32>> {
        on_each!(self, model => model.sparse_scores(rows))
    }

    fn as_linear_mut(&mut self) -> Option<&mut LinearModel> {
        match self {
            Self::Linear(model) => Some(model),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scorer;

    const FORM: RowsForm = RowsForm {
        n_dense: 64,
        cardinalities: &[],
        image: Some(ImageShape { channels: 1, height: 8, width: 8 }),
    };

    #[test]
    fn names_are_read_and_written() {
        for name in ["linear", "mlp:8", "mlp:8,4", "embedding:3,mlp:8,4", "cnn:conv3x4 relu pool2 fc5 relu"] {
            assert_eq!(name.parse::<ModelSpec>().unwrap().to_string(), name);
        }
        for name in [
            "",
            "forest",
            "mlp",
            "mlp:",
            "mlp:0",
            "mlp:8,,4",
            "mlp:-1",
            "embedding:4",
            "embedding:0,mlp:3",
            "cnn:",
            "linear:3",
        ] {
            assert!(name.parse::<ModelSpec>().is_err(), "{name}");
        }
    }

    #[test]
    fn parameters_are_counted_before_they_are_made() {
        let with_fields = RowsForm { n_dense: 3, cardinalities: &[5, 7], image: None };
        for (name, form) in [
            ("linear", with_fields),
            ("mlp:8,4", FORM),
            ("embedding:3,mlp:8,4", with_fields),
            ("cnn:conv3x4 relu pool2 fc5 relu", FORM),
            ("cnn:conv3x4:same relu conv3x2:stride2 relu avgpool2", FORM),
        ] {
            let name: ModelSpec = name.parse().unwrap();
            for n_classes in [2, 5] {
                let model = name.build(form, n_classes, 1).unwrap();
                assert_eq!(name.n_parameters(form, n_classes), Some(model.parameters().len()), "{name}");
            }
        }
        let huge: ModelSpec = "mlp:9999999999,9999999999".parse().unwrap();
        assert_eq!(huge.n_parameters(FORM, 2), None);
        assert!(huge.build(FORM, 2, 1).is_err());
    }

    #[test]
    fn refuses_rows_that_do_not_fit_the_class() {
        let build = |name: &str, form| name.parse::<ModelSpec>().unwrap().build(form, 2, 1).unwrap_err();
        let with_fields = RowsForm { cardinalities: &[2], ..FORM };
        assert_eq!(build("mlp:4", with_fields), Error::FieldsWithoutEmbedding { n_fields: 1 });
        assert_eq!(build("cnn:conv3x4", RowsForm { image: None, ..FORM }), Error::NoImageShape);
        assert!(matches!(build("cnn:conv3x4", RowsForm { n_dense: 63, ..FORM }), Error::ImageShape { .. }));
        assert!(matches!(build("embedding:4,mlp:4", FORM), Error::Setting { .. }));
    }

    /// Any model is the model it holds.
    #[test]
    fn scores_are_those_of_the_model_inside() {
        let rows = Rows::dense(ndarray::Array2::from_shape_fn((5, 64), |(row, pixel)| {
            ((row * 7 + pixel) % 11) as f32
        }))
        .unwrap();
        for name in ["linear", "mlp:6", "cnn:conv3x4 relu fc5 relu"] {
            let model = name.parse::<ModelSpec>().unwrap().build(FORM, 3, 2).unwrap();
            let inside = on_each!(&model, model => model.scores(&rows).unwrap());
            assert_eq!(model.scores(&rows).unwrap(), inside);
        }
    }
}
