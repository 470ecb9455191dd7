//! Read row labels from a column, for experiments and for true metrics.

use super::Column;
use crate::classes::{ClassKind, Classes, list};
use crate::error::{Error, Result};
use std::collections::HashMap;

/// Labels and the names of their classes.
#[derive(Debug, Clone, PartialEq)]
pub struct Labels {
    /// One class a row, counted from 0.
    pub labels: Vec<u32>,
    /// The classes, in order.
    pub classes: Classes,
}

/// Columns with more distinct values are identifiers or measurements, not labels.
const MOST_CLASSES: usize = 4096;

/// Reads labels. If `positive` values are given, they are class 1 and all others class 0; a column
/// of 0 and 1 needs none. Any other column has a class per distinct value, sorted.
pub fn labels(name: &str, column: &Column, positive: &[String]) -> Result<Labels> {
    let values = Values::read(name, column)?;
    if !positive.is_empty() {
        values.check_positive(name, positive)?;
        let labels = values.labels(|value| u32::from(positive.contains(value)));
        return Ok(Labels { labels, classes: Classes::counted(&positive.join("|")) });
    }
    let n_values = values.distinct.len();
    if n_values > MOST_CLASSES {
        return Err(Error::TooManyLabels { column: name.into(), n_values, limit: MOST_CLASSES });
    }
    let is_zero_one = values.distinct.iter().all(|value| value == "0" || value == "1");
    let names = if is_zero_one { vec!["0".into(), "1".into()] } else { values.sorted() };
    let classes = Classes::new(names, values.kind)?;
    let place_of: HashMap<&str, u32> =
        (0..).zip(classes.names()).map(|(place, name)| (name.as_str(), place)).collect();
    let labels = values.labels(|value| place_of[value.as_str()]);
    Ok(Labels { labels, classes })
}

/// Reads labels of known classes, such as a model's: each value is the name of a class.
///
/// If one class is counted, a column of 0 and 1 is accepted, too, and so are two values of which
/// one is that class. If `positive` values are given, they are that class (or class 1 of 0 and 1),
/// and all others are the other class.
pub fn labels_of(name: &str, column: &Column, positive: &[String], classes: &Classes) -> Result<Vec<u32>> {
    let values = Values::read(name, column)?;
    let unknown = |values: Vec<&String>| Error::UnknownLabels {
        column: name.into(),
        values: list(values.into_iter().map(String::as_str)),
        classes: classes.list(),
        hint: if classes.len() == 2 { ", or name the positive values" } else { "" },
    };
    let named = |value: &String| classes.place_of(value);
    let mut places: Vec<Option<usize>> = values.distinct.iter().map(named).collect();
    if !positive.is_empty() {
        if classes.len() != 2 {
            return Err(Error::TwoClassesOnly { n_classes: classes.len() });
        }
        values.check_positive(name, positive)?;
        let class = classes.place_of(&positive.join("|")).or(classes.is_zero_one().then_some(1));
        let class = class.ok_or_else(|| unknown(positive.iter().collect()))?;
        let given = |value: &String| if positive.contains(value) { class } else { 1 - class };
        // A value that is the name of a class is not taken for the other one.
        let is_reversed =
            |(value, place): &(&String, &Option<usize>)| place.is_some_and(|place| place != given(value));
        let reversed: Vec<&String> =
            values.distinct.iter().zip(&places).filter(is_reversed).map(|(value, _)| value).collect();
        if !reversed.is_empty() {
            return Err(unknown(reversed));
        }
        places = values.distinct.iter().map(|value| Some(given(value))).collect();
    } else if classes.kind() == ClassKind::Counted && places.contains(&None) {
        let zero_one = |value: &String| match value.as_str() {
            "0" => Some(0),
            "1" => Some(1),
            _ => None,
        };
        let zero_ones: Vec<Option<usize>> = values.distinct.iter().map(zero_one).collect();
        if !zero_ones.contains(&None) {
            places = zero_ones;
        } else if values.distinct.len() == 2 && places.contains(&Some(1)) {
            places = places.into_iter().map(|place| place.or(Some(0))).collect();
        }
    }
    let strange =
        || values.distinct.iter().zip(&places).filter(|(_, place)| place.is_none()).map(|(value, _)| value);
    let places: Option<Vec<usize>> = places.iter().copied().collect();
    let places = places.ok_or_else(|| unknown(strange().collect()))?;
    Ok(values
        .of_row
        .iter()
        .map(|&value| u32::try_from(places[value as usize]).expect("few classes"))
        .collect())
}

/// The distinct values of a column as text, and the index of each row's value.
struct Values {
    distinct: Vec<String>,
    of_row: Vec<u32>,
    kind: ClassKind,
}

impl Values {
    fn read(name: &str, column: &Column) -> Result<Self> {
        const FEW: &str = "row indices count in 32 bits";
        /// Up to here every whole number is exact as a float.
        const WHOLE: f64 = 9_007_199_254_740_992.0;
        match column {
            Column::Categorical { dictionary, codes } => {
                // A dictionary may have values that no row has.
                let mut place_of_code = vec![None; dictionary.len()];
                let mut distinct = Vec::new();
                let mut place = |code: u32| {
                    *place_of_code[code as usize].get_or_insert_with(|| {
                        distinct.push(dictionary[code as usize].clone());
                        u32::try_from(distinct.len() - 1).expect(FEW)
                    })
                };
                let of_row = codes.iter().map(|&code| place(code)).collect();
                Ok(Self { distinct, of_row, kind: ClassKind::Text })
            }
            Column::Numeric(values) => {
                if let Some(row) = values.iter().position(|value| value.is_nan()) {
                    return Err(Error::NoLabel { column: name.into(), row });
                }
                let is_whole = |value: &f64| value.fract().abs() <= 0.0 && value.abs() <= WHOLE;
                let kind = if values.iter().all(is_whole) { ClassKind::Integer } else { ClassKind::Float };
                let mut place_of: HashMap<u64, u32> = HashMap::new();
                let mut distinct = Vec::new();
                let mut place = |value: f64| {
                    // Adding 0 makes 0 of −0.
                    let value = value + 0.0;
                    *place_of.entry(value.to_bits()).or_insert_with(|| {
                        distinct.push(value.to_string());
                        u32::try_from(distinct.len() - 1).expect(FEW)
                    })
                };
                let of_row = values.iter().map(|&value| place(value)).collect();
                Ok(Self { distinct, of_row, kind })
            }
            Column::Vector(_) | Column::Hashed(_) => {
                Err(Error::UnreadableColumn { column: name.into(), found: column.kind().into() })
            }
        }
    }

    fn check_positive(&self, name: &str, positive: &[String]) -> Result<()> {
        match positive.iter().find(|value| !self.distinct.contains(value)) {
            Some(missing) => Err(Error::LabelMissing { column: name.into(), value: missing.clone() }),
            None => Ok(()),
        }
    }

    fn sorted(&self) -> Vec<String> {
        let mut names = self.distinct.clone();
        names.sort_unstable_by(|a, b| self.kind.compare(a, b));
        names
    }

    fn labels(&self, class: impl Fn(&String) -> u32) -> Vec<u32> {
        let classes: Vec<u32> = self.distinct.iter().map(class).collect();
        self.of_row.iter().map(|&value| classes[value as usize]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_and_ones_are_two_classes_and_words_need_a_positive() {
        let numbers = labels("y", &Column::Numeric(vec![0.0, 1.0, 1.0]), &[]).unwrap();
        assert_eq!((numbers.labels, numbers.classes.kind()), (vec![0, 1, 1], ClassKind::Integer));
        assert_eq!(numbers.classes.names(), ["0", "1"]);
        let words = Column::categorical(["b", "a", "c"]);
        assert_eq!(labels("y", &words, &[]).unwrap().labels, [1, 0, 2]);
        let positive = labels("y", &words, &["a".into(), "c".into()]).unwrap();
        assert_eq!((positive.labels, positive.classes), (vec![0, 1, 1], Classes::counted("a|c")));
        assert!(labels("y", &words, &["d".into()]).is_err());
        assert!(labels("y", &Column::Numeric(vec![2.0, 2.0]), &[]).is_err());
        assert!(labels("y", &Column::Numeric(vec![1.0, f64::NAN]), &[]).is_err());
        let numbers = labels("y", &Column::Numeric(vec![10.0, 9.0, -0.0]), &[]).unwrap();
        assert_eq!(numbers.classes.names(), ["0", "9", "10"]);
    }

    /// A column of 200,000 identifiers is refused as classes, and read where one of them is positive. To compare each row with each class
    /// would take minutes, and counts of all classes in all bags more memory than there is.
    #[test]
    fn identifiers_are_refused_in_time() {
        let ids: Vec<String> = (0..200_000).map(|id| format!("id{id}")).collect();
        let text = Column::categorical(ids.iter().map(String::as_str));
        let numbers = Column::Numeric((0..200_000).map(f64::from).collect());
        for column in [&text, &numbers] {
            let refused = labels("id", column, &[]).unwrap_err();
            assert_eq!(
                refused,
                Error::TooManyLabels { column: "id".into(), n_values: 200_000, limit: MOST_CLASSES }
            );
        }
        let found = labels("id", &text, &["id7".into()]).unwrap().labels;
        assert_eq!((found.iter().sum::<u32>(), found[7]), (1, 1));
    }

    #[test]
    fn labels_of_a_model_are_its_classes_by_name() {
        let three = Classes::sorted(&["none", "few", "many"]).unwrap().0;
        let of = |values: &[&str], positive: &[&str], classes: &Classes| {
            let positive: Vec<String> = positive.iter().map(|&value| value.into()).collect();
            labels_of("y", &Column::categorical(values.iter().copied()), &positive, classes)
        };
        assert_eq!(of(&["many", "none", "few"], &[], &three).unwrap(), [1, 2, 0]);
        let refused = of(&["many", "lots", "some"], &[], &three).unwrap_err();
        assert!(
            matches!(&refused, Error::UnknownLabels { values, .. } if values == "`lots`, `some`"),
            "{refused}"
        );
        assert!(of(&["many", "none"], &["many"], &three).is_err());

        let clicks = Classes::counted("yes");
        for (values, positive) in
            [(["yes", "no"], &[][..]), (["yes", "not yes"], &[]), (["1", "0"], &[]), (["Y", "N"], &["Y"])]
        {
            assert_eq!(of(&values, positive, &clicks).unwrap(), [1, 0], "{values:?}");
        }
        for (values, positive) in
            [(&["Y", "N"][..], &[][..]), (&["yes", "no", "yes."], &[]), (&["yes", "no"], &["no"])]
        {
            assert!(matches!(of(values, positive, &clicks), Err(Error::UnknownLabels { .. })), "{values:?}");
        }
        let two = Classes::sorted(&["yes", "no"]).unwrap().0;
        assert_eq!(of(&["yes", "maybe"], &["yes"], &two).unwrap(), [1, 0]);
        assert_eq!(of(&["no", "maybe"], &["no"], &two).unwrap(), [0, 1]);
        assert!(of(&["Y", "N"], &["Y"], &two).is_err());
    }
}
