//! Class names, their order, labels, and the score and target columns of classes.
//!
//! A task of two classes has one column, for class 1; a task of C > 2 classes has C columns.
//! Classes are sorted everywhere, as in scikit-learn. One exception: a class that is counted alone
//! comes after the remaining rows.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::ops::Range;

/// The number of score and target columns of a task: one for two classes, else one per class.
pub fn n_columns(n_classes: usize) -> usize {
    columns(n_classes).len()
}

/// The inverse: the number of classes for a number of columns.
pub fn n_classes(n_columns: usize) -> usize {
    if n_columns == 1 { 2 } else { n_columns }
}

/// The classes that have a column, in the order of the columns.
pub(crate) fn columns(n_classes: usize) -> Range<usize> {
    if n_classes == 2 { 1..2 } else { 0..n_classes }
}

/// The largest number of classes that is accepted; more is a mistake in the data.
const MOST_CLASSES: usize = 1 << 16;

/// Checks that the number of classes is at least two and not absurdly large.
pub(crate) fn check_classes(n_classes: usize) -> Result<()> {
    match n_classes {
        0 | 1 => Err(Error::TooFewClasses { n_classes }),
        2..=MOST_CLASSES => Ok(()),
        _ => Err(Error::TooManyClasses { n_classes, limit: MOST_CLASSES }),
    }
}

/// Checks that all labels are below the number of classes.
pub(crate) fn check_labels(labels: &[u32], n_classes: usize) -> Result<()> {
    check_classes(n_classes)?;
    match labels.iter().position(|&label| label as usize >= n_classes) {
        Some(row) => Err(Error::LabelOutOfRange { row, label: labels[row], n_classes }),
        None => Ok(()),
    }
}

/// The type of the class values, whose names are their text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClassKind {
    /// Text, sorted by code point.
    Text,
    /// Whole numbers.
    Integer,
    /// Numbers.
    Float,
    /// `False` and `True`.
    Boolean,
    /// Rows that a report counts (1) and the remaining rows (0). If class 1 is called `clicks`,
    /// class 0 is called `not clicks`.
    Counted,
}

impl ClassKind {
    /// The name of this kind in model files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integer => "integer",
            Self::Float => "float",
            Self::Boolean => "boolean",
            Self::Counted => "counted",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Result<Self> {
        let all = [Self::Text, Self::Integer, Self::Float, Self::Boolean, Self::Counted];
        all.into_iter().find(|kind| kind.as_str() == name).ok_or_else(|| Error::UnknownName {
            what: "kind of classes",
            name: name.into(),
            choices: "text, integer, float, boolean, counted",
        })
    }
}

/// The classes of a task by name, in the order of every array with a column per class.
///
/// ```
/// use easyllp::classes::{ClassKind, Classes};
///
/// let (classes, order) = Classes::sorted(&["none", "few", "many"])?;
/// assert_eq!(classes.names(), ["few", "many", "none"]);
/// assert_eq!(order, [1, 2, 0]); // `few` was given second
///
/// let classes = Classes::counted("clicks");
/// assert_eq!(classes.names(), ["not clicks", "clicks"]);
/// assert_eq!(classes.positive(), Some("clicks"));
///
/// assert!(Classes::new(vec!["yes".into(), "no".into()], ClassKind::Text).is_err());
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Given")]
pub struct Classes {
    kind: ClassKind,
    names: Vec<String>,
}

/// Classes as stored in a file.
#[derive(Deserialize)]
struct Given {
    kind: ClassKind,
    names: Vec<String>,
}

impl TryFrom<Given> for Classes {
    type Error = Error;

    fn try_from(Given { kind, names }: Given) -> Result<Self> {
        Self::new(names, kind)
    }
}

impl Classes {
    /// Creates classes from names, which must be in order.
    pub fn new(names: Vec<String>, kind: ClassKind) -> Result<Self> {
        check_classes(names.len())?;
        let classes = Self { kind, names };
        let bad = |reason: String| Err(Error::BadClasses { classes: classes.list(), reason });
        if kind == ClassKind::Counted {
            return match &classes.names[..] {
                [rest, counted] if *rest == not(counted) => Ok(classes),
                _ => bad("one class is counted, and the other is all that is not".into()),
            };
        }
        if let Some(name) = classes.names.iter().find(|name| !kind.has(name)) {
            return bad(format!("`{name}` is not a {}", kind.as_str()));
        }
        for pair in classes.names.windows(2) {
            match kind.compare(&pair[0], &pair[1]) {
                Ordering::Less => {}
                Ordering::Equal => return Err(Error::ClassTwice { class: pair[1].clone() }),
                Ordering::Greater => return bad(format!("`{}` sorts after `{}`", pair[0], pair[1])),
            }
        }
        Ok(classes)
    }

    /// Creates text classes, sorted, with the index at which each was given.
    pub fn sorted<T: AsRef<str>>(names: &[T]) -> Result<(Self, Vec<usize>)> {
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_by_key(|&place| names[place].as_ref());
        let sorted = order.iter().map(|&place| names[place].as_ref().to_owned()).collect();
        Ok((Self::new(sorted, ClassKind::Text)?, order))
    }

    /// Creates classes that are numbers from 0.
    pub fn numbered(n_classes: usize) -> Result<Self> {
        Self::new((0..n_classes).map(|class| class.to_string()).collect(), ClassKind::Integer)
    }

    /// Creates the two classes of rows that are counted under this name and of the remaining rows.
    pub fn counted(name: &str) -> Self {
        Self { kind: ClassKind::Counted, names: vec![not(name), name.into()] }
    }

    /// The name of each class, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The type of the class values.
    pub fn kind(&self) -> ClassKind {
        self.kind
    }

    /// The number of classes; at least 2.
    #[expect(clippy::len_without_is_empty, reason = "there are always classes")]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// The positive class: the one that the single score of two classes belongs to.
    pub fn positive(&self) -> Option<&str> {
        if let [_, positive] = &self.names[..] { Some(positive) } else { None }
    }

    /// The index of the class with this name. Numbers are compared as numbers, truth values in any
    /// spelling.
    pub fn place_of(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|class| class == name || self.kind.is_same(class, name))
    }

    /// Whether models of these classes can be compared: the names are the same, or 0 and 1 for a
    /// counted class.
    pub fn agree(&self, other: &Self) -> bool {
        let is_counted = |classes: &Self| classes.kind == ClassKind::Counted;
        self.names == other.names
            || (is_counted(self) != is_counted(other) && self.is_zero_one() && other.is_zero_one())
    }

    /// Whether the two classes are 0 and 1, or false and true.
    pub(crate) fn is_zero_one(&self) -> bool {
        match self.kind {
            ClassKind::Counted | ClassKind::Boolean => true,
            ClassKind::Integer | ClassKind::Float => {
                self.len() == 2 && self.place_of("0") == Some(0) && self.place_of("1") == Some(1)
            }
            ClassKind::Text => false,
        }
    }

    /// For each of these classes, the index of the report column that counts it, given the class of
    /// each column. With two classes a report may count only one.
    pub fn order_of<T: AsRef<str>>(&self, counted: &[T]) -> Result<CountOrder> {
        let differ = || Error::ClassesDiffer {
            counted: list(counted.iter().map(AsRef::as_ref)),
            classes: self.list(),
        };
        let places: Vec<usize> = counted
            .iter()
            .map(|name| self.place_of(name.as_ref()).ok_or_else(differ))
            .collect::<Result<_>>()?;
        if let ([only], 2) = (&places[..], self.len()) {
            return Ok(if *only == 1 { CountOrder::Positive } else { CountOrder::Negative });
        }
        let columns: Option<Vec<usize>> =
            (0..self.len()).map(|class| places.iter().position(|place| *place == class)).collect();
        match columns {
            Some(columns) if places.len() == self.len() => Ok(CountOrder::Columns(columns)),
            _ => Err(differ()),
        }
    }

    /// The names, for a message.
    pub fn list(&self) -> String {
        list(self.names.iter().map(String::as_str))
    }
}

/// How the count columns of reports map to the classes in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CountOrder {
    /// The only column counts the second of two classes.
    Positive,
    /// The only column counts the first of two classes.
    Negative,
    /// The index of the column of each class.
    Columns(Vec<usize>),
}

impl ClassKind {
    fn has(self, name: &str) -> bool {
        match self {
            Self::Text | Self::Counted => true,
            // Python has larger ones than any type of ours.
            Self::Integer => {
                let digits = name.strip_prefix('-').unwrap_or(name);
                !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
            }
            Self::Float => name.parse::<f64>().is_ok_and(|number| !number.is_nan()),
            Self::Boolean => name == "False" || name == "True",
        }
    }

    pub(crate) fn compare(self, a: &str, b: &str) -> Ordering {
        match self {
            Self::Integer => integer_order(a).cmp(&integer_order(b)),
            Self::Float => match (a.parse::<f64>(), b.parse::<f64>()) {
                (Ok(a), Ok(b)) => a.total_cmp(&b),
                _ => a.cmp(b),
            },
            Self::Text | Self::Boolean | Self::Counted => a.cmp(b),
        }
    }

    fn is_same(self, class: &str, name: &str) -> bool {
        match self {
            Self::Text | Self::Counted => false,
            Self::Integer | Self::Float => match (class.parse::<f64>(), name.parse::<f64>()) {
                (Ok(class), Ok(name)) => class.total_cmp(&name).is_eq(),
                _ => false,
            },
            Self::Boolean => {
                let number = if class == "True" { "1" } else { "0" };
                name == number || name.eq_ignore_ascii_case(class)
            }
        }
    }
}

/// Compares whole numbers of any length: by sign, then by length, then by digits.
fn integer_order(name: &str) -> (bool, i64, Vec<i16>) {
    let (is_negative, digits) = name.strip_prefix('-').map_or((false, name), |digits| (true, digits));
    let digits = digits.trim_start_matches('0');
    let sign: i16 = if is_negative { -1 } else { 1 };
    let length = i64::try_from(digits.len()).unwrap_or(i64::MAX) * i64::from(sign);
    (!is_negative || digits.is_empty(), length, digits.bytes().map(|byte| sign * i16::from(byte)).collect())
}

/// The name of all rows that are not counted.
fn not(name: &str) -> String {
    format!("not {name}")
}

/// Names for a message, shortened to the first few.
pub(crate) fn list<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    const MOST: usize = 12;
    let more = names.len().saturating_sub(MOST);
    let mut shown: Vec<String> = names.take(MOST).map(|name| format!("`{name}`")).collect();
    if more > 0 {
        shown.push(format!("… and {more} more"));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(kind: ClassKind, names: &[&str]) -> Result<Classes> {
        Classes::new(names.iter().map(|&name| name.into()).collect(), kind)
    }

    #[test]
    fn classes_are_in_the_order_of_their_kind() {
        let integers = classes(ClassKind::Integer, &["-10", "-9", "0", "9", "10", "18446744073709551616"]);
        assert_eq!(integers.unwrap().place_of("10.0"), Some(4));
        assert!(classes(ClassKind::Text, &["10", "9"]).is_ok());
        for (kind, names) in [
            (ClassKind::Text, ["9", "10"]),
            (ClassKind::Integer, ["10", "9"]),
            (ClassKind::Integer, ["0", "1.5"]),
            (ClassKind::Float, ["0.5", "nan"]),
            (ClassKind::Boolean, ["True", "False"]),
            (ClassKind::Counted, ["rest", "yes"]),
        ] {
            assert!(matches!(classes(kind, &names).unwrap_err(), Error::BadClasses { .. }), "{kind:?}");
        }
        assert_eq!(
            classes(ClassKind::Float, &["1", "1.0"]).unwrap_err(),
            Error::ClassTwice { class: "1.0".into() }
        );
        assert_eq!(classes(ClassKind::Boolean, &["False", "True"]).unwrap().place_of("true"), Some(1));
    }

    #[test]
    fn columns_of_reports_find_their_classes_by_name() {
        let three = Classes::sorted(&["b", "c", "a"]).unwrap().0;
        assert_eq!(three.order_of(&["c", "a", "b"]).unwrap(), CountOrder::Columns(vec![1, 2, 0]));
        for wrong in [&["a", "b"][..], &["a", "b", "d"], &["a", "b", "b"], &["a"]] {
            assert!(matches!(three.order_of(wrong).unwrap_err(), Error::ClassesDiffer { .. }), "{wrong:?}");
        }
        let two = Classes::sorted(&["yes", "no"]).unwrap().0;
        assert_eq!(two.order_of(&["yes"]).unwrap(), CountOrder::Positive);
        assert_eq!(two.order_of(&["no"]).unwrap(), CountOrder::Negative);
        assert_eq!(two.order_of(&["yes", "no"]).unwrap(), CountOrder::Columns(vec![1, 0]));
        let clicks = Classes::counted("clicks");
        assert_eq!(clicks.order_of(&["clicks"]).unwrap(), CountOrder::Positive);
        assert!(clicks.order_of(&["views"]).is_err());
        assert!(clicks.agree(&classes(ClassKind::Integer, &["0", "1"]).unwrap()));
        assert!(!clicks.agree(&Classes::counted("views")) && !clicks.agree(&two));
    }
}
