//! REPORT: the model file, which holds everything needed to score new rows.
//!
//! A model file is one safetensors file. Each block of parameters is a tensor under the block's
//! name. The header's metadata has one key:
//!
//! ```text
//! easyllp: "CHECKSUM {DESCRIPTION}"
//! ```
//!
//! The description is JSON. The checksum (128-bit xxh3, in hex) covers every byte of the file
//! except itself. Its algorithm and position are the same in all formats. There is only one key
//! because safetensors stores metadata in a hash map, whose order differs from run to run; with one
//! key the same model gives the same bytes.
//!
//! A checksum detects accidental damage, not forgery. Every value that is read is therefore
//! validated.

use crate::atomic::{AtomicFile, cannot_write};
use crate::classes::Classes;
use crate::config::FitConfig;
use crate::error::{Cause, Error, Result, check_length};
use crate::loss::Link;
use crate::model::{AnyModel, ImageShape, Model, ModelSpec, RowsForm, Scorer};
use crate::prior::LabelPrior;
use crate::rows::Rows;
use crate::table::Encoder;
use crate::training_bags::TrainingBags;
use ndarray::Array2;
use safetensors::tensor::{Dtype, Metadata, View};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

/// The format that is written, and the newest one that can be read.
const FORMAT: u32 = 1;

/// The metadata's only key.
const KEY: &str = "easyllp";

/// How many bytes say how long the header is.
const LENGTH: usize = 8;

/// How the header of every model file begins.
const OPENING: &[u8] = br#"{"__metadata__":{"easyllp":""#;

/// Where the checksum stands.
const CHECKSUM: Range<usize> = LENGTH + OPENING.len()..LENGTH + OPENING.len() + 32;

/// A trained model with everything needed to score new rows, and how it was trained.
///
/// It is stored as one file and read back bit for bit; the same model gives the same bytes.
///
/// ```
/// use easyllp::table::{Column, Encoder, EncoderOptions, Table};
/// use easyllp::{
///     ModelFile,
///     ModelSpec,
///     classes::Classes,
///     correction::LabelPrior,
///     loss::Link,
///     model::{AnyModel, LinearModel},
///     training_bags::TrainingBags,
/// };
///
/// let table = Table::new(vec![("age".into(), Column::Numeric(vec![20.0, 40.0]))])?;
/// let encoder = Encoder::fit(&table, EncoderOptions::default())?;
/// let model = AnyModel::Linear(LinearModel::for_rows(&encoder.encode(&table)?, 2)?);
/// let file = ModelFile {
///     encoder,
///     classes: Classes::sorted(&["no", "yes"])?.0,
///     loss: "logistic".into(),
///     link: Link::Logit,
///     method: "easyllp".into(),
///     config: None,
///     prior: LabelPrior::binary(0.25)?,
///     settings: [("optimizer".into(), "adam".into())].into(),
///     fingerprint: "3f21".into(),
///     training_bags: TrainingBags::default(),
///     name: ModelSpec::Linear,
///     image: None,
///     model,
/// };
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("model.safetensors");
/// file.save(&path)?;
/// assert_eq!(ModelFile::load(&path)?, file);
///
/// let mut bytes = file.to_bytes()?;
/// *bytes.last_mut().unwrap() ^= 1;
/// assert!(ModelFile::from_bytes(&bytes).is_err());
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFile {
    /// The columns that the model reads, and how they are encoded as features.
    pub encoder: Encoder,
    /// The name of each class; two for a model with one score.
    pub classes: Classes,
    /// The name of the training loss.
    pub loss: String,
    /// What the scores mean.
    pub link: Link,
    /// The name of the training method.
    pub method: String,
    /// The training settings; `None` for a method that is not built in.
    pub config: Option<FitConfig>,
    /// The label prior of the training rows.
    pub prior: LabelPrior,
    /// How the model was trained, as text.
    pub settings: BTreeMap<String, String>,
    /// A fingerprint of the training data.
    pub fingerprint: String,
    /// Hashes of the training bags: metrics on these would be too good.
    pub training_bags: TrainingBags,
    /// The model's architecture.
    pub name: ModelSpec,
    /// The shape of the images in the dense features, for image models.
    pub image: Option<ImageShape>,
    /// The model.
    pub model: AnyModel,
}

impl ModelFile {
    /// Writes the model to a file, atomically.
    pub fn save(&self, path: &Path) -> Result<()> {
        let bytes = self.to_bytes()?;
        let mut file = AtomicFile::create(path)?;
        file.write_all(&bytes).map_err(|error| cannot_write(path, error))?;
        file.commit()
    }

    /// Reads a model from a file. A damaged or forged file gives an error, never an invalid model.
    pub fn load(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path)
            .map_err(|error| Error::CannotRead { path: path.into(), source: error.into() })?;
        Self::read(&bytes).map_err(|source| Error::BadModelFile { path: path.into(), source })
    }

    /// The model as the bytes of a model file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.write().map_err(|source| Error::BadModel { source })
    }

    /// Reads a model from the bytes of a model file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::read(bytes).map_err(|source| Error::BadModel { source })
    }

    /// The probability of each class for each row: N × C.
    pub fn probabilities(&self, rows: &Rows) -> Result<Array2<f64>> {
        self.link.probabilities_of(self.model.scores(rows)?.view(), self.classes.len())
    }

    /// The settings to train the same kind of model again.
    pub fn settings_to_refit(&self) -> Result<&FitConfig> {
        self.config.as_ref().ok_or_else(|| Error::ForeignMethod { method: self.method.clone() })
    }

    /// Checks that the file could be written and read back.
    pub(crate) fn check_sound(&self) -> Result<()> {
        self.check().and_then(|()| self.check_form()).map_err(|source| Error::BadModel { source })
    }

    fn write(&self) -> Checked<Vec<u8>> {
        self.check()?;
        self.check_form()?;
        let description = serde_json::to_string(&Description {
            classes: Cow::Borrowed(&self.classes),
            encoder: Cow::Borrowed(&self.encoder),
            fingerprint: Cow::Borrowed(&self.fingerprint),
            format: FORMAT,
            loss: Cow::Borrowed(&self.loss),
            link: self.link,
            config: self.config.as_ref().map(Cow::Borrowed),
            method: Cow::Borrowed(&self.method),
            image: self.image.map(|image| image.to_string().into()),
            model: Cow::Borrowed(&self.name),
            prior: Cow::Borrowed(&self.prior),
            settings: Cow::Borrowed(&self.settings),
            training_bags: Cow::Borrowed(&self.training_bags),
            version: env!("CARGO_PKG_VERSION").into(),
        })?;
        let metadata = [(KEY.to_owned(), format!("{:0>width$} {description}", "", width = CHECKSUM.len()))];
        let tensors = self.model.parameters().0.iter().map(|block| (block.name(), Tensor(&block.values)));
        let mut bytes = safetensors::serialize(tensors, Some(metadata.into_iter().collect()))?;
        let checksum = checksum(&bytes).expect("safetensors writes the metadata before all tensors");
        bytes[CHECKSUM].copy_from_slice(checksum.as_bytes());
        Ok(bytes)
    }

    fn read(bytes: &[u8]) -> Checked<Self> {
        let Some(checksum) = checksum(bytes) else { return refuse("it does not begin as a model file does") };
        if bytes[CHECKSUM] != *checksum.as_bytes() {
            return refuse("its checksum is another one, so it was cut short, damaged or edited");
        }
        let (header, data) = split(bytes).ok_or("its header is cut short")?;
        // Not `SafeTensors::deserialize`: its sum of forged sizes can overflow, and then it panics.
        let tensors: Metadata = serde_json::from_slice(header)?;
        let metadata = tensors.metadata().as_ref().and_then(|metadata| metadata.get(KEY));
        let Some(description) = metadata.and_then(|text| text.get(CHECKSUM.len() + 1..)) else {
            return refuse("it has no description");
        };
        let Stamp { format, version } = serde_json::from_str(description)?;
        if format != FORMAT {
            return refuse(format!(
                "it has format {format}, written by easyllp {version}, and the newest one known here is {FORMAT}"
            ));
        }
        let Description {
            classes,
            encoder,
            fingerprint,
            image,
            config,
            link,
            loss,
            method,
            model: name,
            prior,
            settings,
            training_bags,
            ..
        } = serde_json::from_str(description)?;
        let image = image.map(|image| image.parse::<ImageShape>()).transpose()?;
        encoder.check()?;
        let (n_dense, cardinalities) = encoder.shape();
        let form = RowsForm { n_dense, cardinalities: &cardinalities, image };
        let model = read_model(&name, form, classes.len(), &tensors, data)?;
        let file = Self {
            encoder: encoder.into_owned(),
            classes: classes.into_owned(),
            loss: loss.into_owned(),
            link,
            method: method.into_owned(),
            config: config.map(Cow::into_owned),
            prior: prior.into_owned(),
            settings: settings.into_owned(),
            fingerprint: fingerprint.into_owned(),
            training_bags: training_bags.into_owned(),
            name: name.into_owned(),
            image,
            model,
        };
        file.check()?;
        Ok(file)
    }

    /// Checks that the model matches its name, columns and classes: otherwise the file could not be
    /// read back.
    fn check_form(&self) -> Checked<()> {
        let (n_dense, cardinalities) = self.encoder.shape();
        let form = RowsForm { n_dense, cardinalities: &cardinalities, image: self.image };
        if self.model.cardinalities() != cardinalities {
            return refuse("the model and the encoder differ in their categories");
        }
        let made = self.name.build(form, self.classes.len(), 0)?;
        let (blocks, expected) = (self.model.parameters().blocks(), made.parameters().blocks());
        check_length("blocks of parameters", expected.len(), blocks.len())?;
        for (block, expected) in blocks.iter().zip(expected) {
            let (name, shape) = (expected.name(), expected.values.shape());
            if block.name != name || block.values.shape() != shape {
                let (got, got_shape) = (block.name(), block.values.shape());
                return refuse(format!("block `{got}` has shape {got_shape:?}, not `{name}` {shape:?}"));
            }
        }
        Ok(())
    }

    /// Checks that the model can score rows and be read back. Used before writing and after
    /// reading.
    fn check(&self) -> Checked<()> {
        check_length("classes of the prior", self.classes.len(), self.prior.classes().len())?;
        self.encoder.check()?;
        if let Some(flaw) = self.training_bags.flaw() {
            return refuse(flaw);
        }
        for block in self.model.parameters().blocks() {
            let name = block.name();
            let strange = block.values.indexed_iter().find(|(_, value)| !value.is_finite());
            if let Some(((line, column), value)) = strange {
                return refuse(format!(
                    "block `{name}` has {value} in line index {line}, column index {column}: parameters must be finite"
                ));
            }
        }
        Ok(())
    }
}

/// The description of a model in a file. Keys are sorted.
#[derive(Serialize, Deserialize)]
struct Description<'m> {
    classes: Cow<'m, Classes>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    config: Option<Cow<'m, FitConfig>>,
    encoder: Cow<'m, Encoder>,
    fingerprint: Cow<'m, str>,
    format: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    image: Option<Cow<'m, str>>,
    link: Link,
    loss: Cow<'m, str>,
    method: Cow<'m, str>,
    model: Cow<'m, ModelSpec>,
    prior: Cow<'m, LabelPrior>,
    settings: Cow<'m, BTreeMap<String, String>>,
    training_bags: Cow<'m, TrainingBags>,
    version: Cow<'m, str>,
}

/// The part of a description that stays the same in every format.
#[derive(Deserialize)]
struct Stamp {
    format: u32,
    version: String,
}

/// The outcome, or why a model is refused.
type Checked<T> = std::result::Result<T, Cause>;

fn refuse<T>(reason: impl Into<Cause>) -> Checked<T> {
    Err(reason.into())
}

/// A block of parameters, as safetensors writes it.
struct Tensor<'m>(&'m Array2<f32>);

impl View for Tensor<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        self.0.shape()
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.0.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn data_len(&self) -> usize {
        size_of::<f32>() * self.0.len()
    }
}

/// The model of this name and form with the numbers of a file.
fn read_model(
    name: &ModelSpec,
    form: RowsForm,
    n_classes: usize,
    tensors: &Metadata,
    data: &[u8],
) -> Checked<AnyModel> {
    // `Metadata` has made sure that tensors are as long as their shapes say and follow on each other. If they also fill
    // the data, then a model with as many numbers is no larger than the file: a small file cannot ask for much memory.
    check_length("bytes of tensors", tensors.data_len(), data.len())?;
    let n_bytes = name.n_parameters(form, n_classes).and_then(|n| n.checked_mul(size_of::<f32>()));
    if n_bytes != Some(data.len()) {
        return refuse(format!("it holds {} bytes of numbers, not those of its model", data.len()));
    }
    let mut model = name.build(form, n_classes, 0)?;
    check_length("tensors", model.parameters().0.len(), tensors.tensors().len())?;
    for block in &mut model.parameters_mut().0 {
        let (name, shape) = (&block.name, block.values.shape());
        let Some(tensor) = tensors.info(name) else { return refuse(format!("tensor `{name}` is missing")) };
        if tensor.dtype != Dtype::F32 || tensor.shape != shape {
            let (kind, got) = (tensor.dtype, &tensor.shape);
            return refuse(format!(
                "tensor `{name}` has {kind} numbers in shape {got:?}, not F32 in {shape:?}"
            ));
        }
        let (numbers, _) = data.get(tensor.data_offsets.0..).unwrap_or_default().as_chunks();
        block.values.iter_mut().zip(numbers).for_each(|(value, bytes)| *value = f32::from_le_bytes(*bytes));
    }
    Ok(model)
}

/// A file's header and the bytes of its tensors.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH>()?;
    rest.split_at_checked(u64::from_le_bytes(*length).try_into().ok()?)
}

/// The checksum that these bytes should have, if they begin as a model file does.
fn checksum(bytes: &[u8]) -> Option<String> {
    let (before, after) = (bytes.get(..CHECKSUM.start)?, bytes.get(CHECKSUM.end..)?);
    let mut hash = Xxh3::new();
    hash.update(before);
    hash.update(after);
    before.ends_with(OPENING).then(|| format!("{:032x}", hash.digest128()))
}

#[cfg(test)]
mod tests;
