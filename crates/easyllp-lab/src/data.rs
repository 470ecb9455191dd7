//! READ: the data sets of the experiments, and the paper's binary tasks on them.

mod archive;
mod criteo;
mod download;
mod sets;
mod synthetic_ctr;

pub use download::{DownloadError, MirrorFailure, Origin};
pub use synthetic_ctr::{Clicks, clicks};

use crate::error::{Error, Result};
use easyllp::model::RowsForm;
use easyllp::table::{Column, Encoder, EncoderOptions, Source, Table};
use easyllp::{Rows, datasets, model::ImageShape};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// A data set by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DatasetName {
    /// 70,000 handwritten digits of 28 × 28 pixels.
    Mnist,
    /// 60,000 photographs of 32 × 32 pixels in three colours.
    Cifar10,
    /// 5,620 handwritten digits of 8 × 8 pixels, embedded.
    Optdigits,
    /// 48,842 people of a census, embedded.
    Adult,
    /// Synthetic clicks in the layout of Criteo's log.
    SyntheticCtr,
    /// Criteo's Kaggle log, from the user's own copy.
    Criteo,
}

impl DatasetName {
    /// All data sets.
    pub const ALL: [Self; 6] =
        [Self::Mnist, Self::Cifar10, Self::Optdigits, Self::Adult, Self::SyntheticCtr, Self::Criteo];

    /// A one-line description of the content and its source.
    pub fn about(self) -> &'static str {
        match self {
            Self::Mnist => "70,000 handwritten digits of 28 × 28 pixels; downloaded, 12 MB",
            Self::Cifar10 => "60,000 photographs of 32 × 32 pixels in ten classes; downloaded, 170 MB",
            Self::Optdigits => "5,620 handwritten digits of 8 × 8 pixels; label `digit`: 0 to 9; embedded",
            Self::Adult => {
                "48,842 people of the 1994 census, 14 columns; label `income`: <=50K or >50K; embedded"
            }
            Self::Criteo => {
                "1.2 million ad views of Criteo's Kaggle log; from your own copy, criteo/train.txt"
            }
            Self::SyntheticCtr => {
                "120,000 ad views in the layout of Criteo's log, with known chances of a click; made up"
            }
        }
    }

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mnist => "mnist",
            Self::Cifar10 => "cifar10",
            Self::Optdigits => "optdigits",
            Self::Adult => "adult",
            Self::SyntheticCtr => "synthetic-ctr",
            Self::Criteo => "criteo",
        }
    }

    /// Whether its rows have categorical fields in addition to numbers.
    pub(crate) fn has_fields(self) -> bool {
        matches!(self, Self::Adult | Self::SyntheticCtr | Self::Criteo)
    }

    /// The name in result keys; it changes when the data change.
    fn kept_as(self) -> &'static str {
        match self {
            Self::SyntheticCtr => "synthetic-ctr, stronger effects",
            other => other.as_str(),
        }
    }

    /// The name in titles.
    pub fn title(self) -> &'static str {
        match self {
            Self::Mnist => "MNIST",
            Self::Cifar10 => "CIFAR-10",
            Self::Optdigits => "Optdigits",
            Self::Adult => "Adult",
            Self::SyntheticCtr => "Synthetic CTR",
            Self::Criteo => "Criteo",
        }
    }
}

/// Training and test rows, encoded for models.
pub struct Data {
    /// The data set.
    pub name: DatasetName,
    /// The training rows.
    pub train: Rows<'static>,
    /// The test rows.
    pub test: Rows<'static>,
    /// The shape of images, for image data.
    pub image: Option<ImageShape>,
    classes: Vec<&'static str>,
    train_labels: Vec<u32>,
    test_labels: Vec<u32>,
}

/// A task: binary, or with as many classes as the data set.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// The name.
    pub name: String,
    /// The number of classes.
    pub n_classes: usize,
    /// The label of each training row.
    pub train: Vec<u32>,
    /// The label of each test row.
    pub test: Vec<u32>,
}

/// The folder of data sets: `EASYLLP_DATA`, or the user's cache.
pub fn default_folder() -> PathBuf {
    let cache = || {
        std::env::var_os("HOME").map_or_else(|| PathBuf::from("."), |home| Path::new(&home).join(".cache"))
    };
    std::env::var_os("EASYLLP_DATA").map_or_else(|| cache().join("easyllp"), PathBuf::from)
}

/// Downloads a data set into the folder and checks it; files that are already complete are kept.
/// `watch` receives the name of a file, the bytes that are there and the total, and may cancel the
/// download.
pub fn get(
    name: DatasetName,
    folder: &Path,
    origin: &Origin,
    watch: &mut dyn FnMut(&str, u64, u64) -> ControlFlow<()>,
) -> Result<PathBuf> {
    let folder = folder.join(name.as_str());
    let mut fetch = |file: &download::Published| {
        download::fetch(file, &folder, origin, &mut |done, bytes| watch(file.name, done, bytes))
    };
    match name {
        DatasetName::Mnist => {
            for file in &sets::MNIST {
                fetch(file)?;
            }
        }
        DatasetName::Cifar10 => {
            let is_there = |(_, name, sum): &(&str, &str, &str)| {
                let opened = std::fs::File::open(folder.join(name));
                opened.and_then(|mut file| download::sha256(&mut file)).is_ok_and(|found| found == *sum)
            };
            if !sets::CIFAR10_MEMBERS.iter().all(is_there) {
                take_members(&sets::CIFAR10, &sets::CIFAR10_MEMBERS, &folder, fetch)?;
            }
        }
        // Embedded, made up as they are needed, or for the user to bring.
        DatasetName::Optdigits | DatasetName::Adult | DatasetName::SyntheticCtr | DatasetName::Criteo => {}
    }
    Ok(folder)
}

/// Extracts members of an archive into the folder. The archive is then deleted, unless it was there
/// before.
fn take_members(
    file: &download::Published,
    members: &[(&str, &str, &str)],
    folder: &Path,
    mut fetch: impl FnMut(&download::Published) -> Result<PathBuf, DownloadError>,
) -> Result<()> {
    let is_ours = !folder.join(file.name).exists();
    let archive = fetch(file)?;
    archive::unpack_tar_gz(&archive, members, folder)?;
    if is_ours {
        // Its members are all that is read; if it cannot be removed, it does no harm.
        let _ = std::fs::remove_file(archive);
    }
    Ok(())
}

/// Whether the files of a data set are in the folder with the right size; embedded and synthetic
/// data need none.
pub fn is_here(name: DatasetName, folder: &Path) -> bool {
    let length = |file: &str| {
        let found = std::fs::metadata(folder.join(name.as_str()).join(file));
        found.ok().filter(std::fs::Metadata::is_file).map(|found| found.len())
    };
    match name {
        DatasetName::Mnist => sets::MNIST.iter().all(|file| length(file.name) == Some(file.bytes)),
        DatasetName::Cifar10 => {
            let mut members = sets::CIFAR10_MEMBERS.iter();
            members.all(|(_, name, _)| length(name) == Some(sets::CIFAR10_MEMBER_BYTES))
        }
        // A user's copy may be a part of it.
        DatasetName::Criteo => length("train.txt").is_some_and(|bytes| bytes > 0),
        DatasetName::Optdigits | DatasetName::Adult | DatasetName::SyntheticCtr => true,
    }
}

/// Reads a data set, from the folder unless it is embedded or synthetic.
pub(crate) fn load(name: DatasetName, folder: &Path) -> Result<Data> {
    match name {
        DatasetName::Mnist => {
            let of_part =
                |part: &str| images(folder, "mnist", &[&format!("mnist/{part}-images-idx3-ubyte.gz")]);
            let image = ImageShape { channels: 1, height: 28, width: 28 };
            of_images(name, image, 255.0, of_part("train")?, of_part("t10k")?, DIGITS.to_vec())
        }
        DatasetName::Cifar10 => {
            let names: Vec<String> = (1..=5).map(|batch| format!("cifar10/data_batch_{batch}.bin")).collect();
            let train: Vec<&str> = names.iter().map(String::as_str).collect();
            let train = images(folder, "cifar10", &train)?;
            let test = images(folder, "cifar10", &["cifar10/test_batch.bin"])?;
            let image = ImageShape { channels: 3, height: 32, width: 32 };
            of_images(name, image, 255.0, train, test, CIFAR_CLASSES.to_vec())
        }
        DatasetName::Optdigits => {
            let digits = datasets::optdigits()?;
            let image = ImageShape { channels: 1, height: 8, width: 8 };
            let part = |part: datasets::Labelled| (part.table, part.labels);
            of_images(name, image, 16.0, part(digits.train), part(digits.test), DIGITS.to_vec())
        }
        DatasetName::Adult => {
            let people = datasets::adult()?;
            let encoder = Encoder::fit(&people.train.table, EncoderOptions::default())?;
            Ok(Data {
                name,
                train: encoder.encode(&people.train.table)?,
                test: encoder.encode(&people.test.table)?,
                image: None,
                classes: people.classes,
                train_labels: people.train.labels,
                test_labels: people.test.labels,
            })
        }
        DatasetName::SyntheticCtr => {
            let [train, test] = clicks();
            Ok(of_clicks(name, [train.into_rows()?, test.into_rows()?]))
        }
        DatasetName::Criteo => Ok(of_clicks(name, criteo::read(folder)?)),
    }
}

fn of_clicks(name: DatasetName, parts: [(Rows<'static>, Vec<u32>); 2]) -> Data {
    let [(train, train_labels), (test, test_labels)] = parts;
    Data { name, train, test, image: None, classes: vec!["no click", "click"], train_labels, test_labels }
}

const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
const CIFAR_CLASSES: [&str; 10] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

fn images(folder: &Path, dataset: &'static str, files: &[&str]) -> Result<(Table, Vec<u32>)> {
    let paths: Vec<PathBuf> = files.iter().map(|file| folder.join(file)).collect();
    if !paths.iter().all(|path| path.exists()) {
        return Err(Error::NoData { dataset, folder: folder.into() });
    }
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let source = Source::open(&names, BTreeMap::new())?;
    let labels = source.read(&["label".into()])?;
    let Ok(Column::Numeric(labels)) = labels.column("label") else {
        return Err(Error::NoData { dataset, folder: folder.into() });
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "labels are bytes")]
    let labels = labels.iter().map(|&label| label as u32).collect();
    Ok((source.read(&["pixels".into()])?, labels))
}

fn of_images(
    name: DatasetName,
    image: ImageShape,
    brightest: f32,
    (train, train_labels): (Table, Vec<u32>),
    (test, test_labels): (Table, Vec<u32>),
    classes: Vec<&'static str>,
) -> Result<Data> {
    // From 0 to 1, as the paper's field has them.
    let pixels = |table: &Table| match table.columns() {
        [(_, Column::Vector(pixels))] => Ok(Rows::dense(pixels.mapv(|pixel| pixel / brightest))?),
        _ => Err(Error::from(easyllp::Error::ColumnMissing { column: "pixels".into() })),
    };
    let (train, test) = (pixels(&train)?, pixels(&test)?);
    Ok(Data { name, train, test, image: Some(image), classes, train_labels, test_labels })
}

impl Data {
    /// The shape of the rows, for creating a model.
    pub fn form(&self) -> RowsForm<'_> {
        RowsForm {
            n_dense: self.train.n_dense(),
            cardinalities: self.train.cardinalities(),
            image: self.image,
        }
    }

    /// The name in result keys. The user's own data may change in size, so its rows are counted.
    pub(crate) fn kept_as(&self) -> String {
        let name = self.name.kept_as();
        match self.name {
            DatasetName::Criteo => format!("{name}, {} and {} rows", self.train.n_rows(), self.test.n_rows()),
            _ => name.into(),
        }
    }

    /// Tasks by name: `one-vs-all` gives one per class; `even-vs-odd`, `animal-vs-machine`, `all-classes`, or the
    /// name of a class against the rest; for two classes, `label`.
    pub fn tasks(&self, names: &[String]) -> Result<Vec<Task>> {
        let mut tasks = Vec::new();
        for name in names {
            match name.as_str() {
                "one-vs-all" if self.classes.len() > 2 => {
                    tasks
                        .extend((0..).zip(&self.classes).map(|(class, name)| self.against_rest(class, name)));
                }
                name => tasks.push(self.task(name)?),
            }
        }
        Ok(tasks)
    }

    fn task(&self, name: &str) -> Result<Task> {
        let is_cifar = self.name == DatasetName::Cifar10;
        let has_digits = self.classes == DIGITS;
        Ok(match name {
            "even-vs-odd" if has_digits => self.binary("even vs odd", |digit| digit % 2),
            // From bird to horse.
            "animal-vs-machine" if is_cifar => {
                self.binary("animal vs machine", |class| u32::from((2..=7).contains(&class)))
            }
            "all-classes" if self.classes.len() > 2 => Task {
                name: "all classes".into(),
                n_classes: self.classes.len(),
                train: self.train_labels.clone(),
                test: self.test_labels.clone(),
            },
            "label" if self.classes.len() == 2 => self.binary(self.classes[1], |class| class),
            _ => {
                let class =
                    (0..).zip(&self.classes).find(|(_, class)| **class == name && self.classes.len() > 2);
                let Some((class, name)) = class else { return Err(self.no_task(name)) };
                self.against_rest(class, name)
            }
        })
    }

    fn no_task(&self, task: &str) -> Error {
        let mut known: Vec<&str> = match self.name {
            DatasetName::Mnist | DatasetName::Optdigits => vec!["even-vs-odd", "one-vs-all"],
            DatasetName::Cifar10 => vec!["animal-vs-machine", "one-vs-all"],
            DatasetName::Adult | DatasetName::SyntheticCtr | DatasetName::Criteo => vec!["label"],
        };
        if self.classes.len() > 2 {
            known.extend(&self.classes);
        }
        Error::NoTask { dataset: self.name.as_str(), task: task.into(), known: known.join(", ") }
    }

    fn against_rest(&self, class: u32, name: &str) -> Task {
        self.binary(&format!("{name} vs rest"), |label| u32::from(label == class))
    }

    fn binary(&self, name: &str, is_positive: impl Fn(u32) -> u32) -> Task {
        let of = |labels: &[u32]| labels.iter().map(|&label| is_positive(label)).collect();
        Task { name: name.into(), n_classes: 2, train: of(&self.train_labels), test: of(&self.test_labels) }
    }
}

/// Whether a task is one of several one-vs-all tasks, whose accuracies are shown as one mean.
pub(crate) fn is_against_rest(task: &str) -> bool {
    task.ends_with(" vs rest")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_make_two_classes_of_many() {
        let digits = load(DatasetName::Optdigits, Path::new("nowhere")).unwrap();
        let tasks = digits.tasks(&["even-vs-odd".into(), "one-vs-all".into(), "7".into()]).unwrap();
        assert_eq!(tasks.len(), 12);
        assert_eq!((tasks[8].name.as_str(), &tasks[8]), ("7 vs rest", &tasks[11]));
        assert!(is_against_rest(&tasks[1].name) && !is_against_rest(&tasks[0].name));
        // Every digit is one of ten, and odd ones are those of five of them.
        let sum = |tasks: &[Task]| tasks.iter().flat_map(|task| &task.test).sum::<u32>();
        assert_eq!(sum(&tasks[1..11]) as usize, digits.test.n_rows());
        let odd: Vec<Task> = [2, 4, 6, 8, 10].map(|place| tasks[place].clone()).to_vec();
        assert_eq!(sum(&tasks[..1]), sum(&odd));
        let refused = digits.tasks(&["animal-vs-machine".into()]).unwrap_err().to_string();
        assert!(
            refused.contains("optdigits has no task `animal-vs-machine`") && refused.contains("even-vs-odd")
        );
    }

    #[test]
    fn it_is_known_beforehand_which_rows_have_fields() {
        for name in [DatasetName::Optdigits, DatasetName::Adult, DatasetName::SyntheticCtr] {
            let data = load(name, Path::new("nowhere")).unwrap();
            assert_eq!(name.has_fields(), data.train.n_fields() > 0, "{}", name.as_str());
        }
    }

    #[test]
    fn what_is_not_there_is_told_how_to_get() {
        let refused = load(DatasetName::Mnist, Path::new("nowhere")).err().unwrap().to_string();
        assert_eq!(
            refused,
            "mnist is not in nowhere: `easyllp datasets get mnist --dir nowhere` brings it there"
        );
    }

    #[test]
    fn a_folder_is_no_data_set_and_neither_is_half_of_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let (here, there) = (|name| is_here(name, folder.path()), |file: &str| folder.path().join(file));
        assert!(here(DatasetName::Adult) && !here(DatasetName::Mnist) && !here(DatasetName::Criteo));
        std::fs::create_dir(there("mnist")).unwrap();
        for (place, file) in sets::MNIST.iter().enumerate() {
            assert!(!here(DatasetName::Mnist), "{place} files");
            let written = std::fs::File::create(there("mnist").join(file.name)).unwrap();
            // Its length is all that is looked at, so that no byte of it need be there.
            written.set_len(file.bytes).unwrap();
        }
        assert!(here(DatasetName::Mnist));
        std::fs::write(there("mnist").join(sets::MNIST[1].name), "cut off").unwrap();
        assert!(!here(DatasetName::Mnist));
        std::fs::create_dir(there("criteo")).unwrap();
        std::fs::write(there("criteo/train.txt"), "a line").unwrap();
        assert!(here(DatasetName::Criteo));
    }

    #[test]
    fn an_archive_of_the_users_stays_and_one_of_ours_goes() {
        // SHA-256 of `first`.
        let members =
            [("in/first.bin", "first", "a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e")];
        let mut header = tar::Header::new_gnu();
        header.set_size(5);
        header.set_mode(0o644);
        let packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let mut builder = tar::Builder::new(packed);
        builder.append_data(&mut header, "in/first.bin", &b"first"[..]).unwrap();
        let archive = builder.into_inner().unwrap().finish().unwrap();
        let file =
            download::Published { name: "a.tar.gz", bytes: archive.len() as u64, sha256: None, mirrors: &[] };
        let [copies, folder] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let (copy, own) = (copies.path().join(file.name), folder.path().join(file.name));
        std::fs::write(&copy, archive).unwrap();
        let take = |from: &Path| {
            take_members(&file, &members, folder.path(), |file| {
                let origin = Origin::Folder(from.into());
                download::fetch(file, folder.path(), &origin, &mut |_, _| ControlFlow::Continue(()))
            })
        };
        take(copies.path()).unwrap();
        assert!(folder.path().join("first").exists() && copy.exists() && !own.exists());
        // Put there by the user, and given with --from.
        std::fs::copy(&copy, &own).unwrap();
        take(folder.path()).unwrap();
        assert!(own.exists());
    }

    /// What is kept is found by these words: one that changes is work that is lost.
    #[test]
    fn results_are_kept_by_the_rows_where_these_are_the_users() {
        let clicks = |n_test: usize| {
            let part =
                |n_rows: usize| (Rows::dense(ndarray::Array2::zeros((n_rows, 1))).unwrap(), vec![0; n_rows]);
            of_clicks(DatasetName::Criteo, [part(3), part(n_test)]).kept_as()
        };
        assert_eq!([clicks(1), clicks(2)], ["criteo, 3 and 1 rows", "criteo, 3 and 2 rows"]);
        let kept = |name| load(name, Path::new("nowhere")).unwrap().kept_as();
        assert_eq!(kept(DatasetName::Optdigits), "optdigits");
        assert_eq!(kept(DatasetName::SyntheticCtr), "synthetic-ctr, stronger effects");
    }

    #[test]
    fn clicks_are_the_same_every_time_and_their_chances_are_known() {
        let [one, two] = [0, 1].map(|_| load(DatasetName::SyntheticCtr, Path::new("nowhere")).unwrap());
        assert_eq!((&one.train_labels, one.train.n_fields()), (&two.train_labels, 26));
        let clicks = f64::from(one.train_labels.iter().sum::<u32>()) / one.train_labels.len() as f64;
        assert!((0.15..0.35).contains(&clicks), "{clicks}");
        // A sum of coins, each with its own chance; 2 of 100,000 such sums are further from what is expected.
        let [drawn, _] = super::clicks();
        let (expected, variance) = drawn
            .chances
            .iter()
            .fold((0.0, 0.0), |(sum, variance), chance| (sum + chance, variance + chance * (1.0 - chance)));
        let off = f64::from(drawn.labels.iter().sum::<u32>()) - expected;
        assert!(drawn.labels == one.train_labels && off.abs() < 4.3 * f64::sqrt(variance), "{off}");
    }
}
