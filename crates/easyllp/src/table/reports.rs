//! BAG: join reports to rows: one report per bag, found by its key.
//!
//! Nothing is guessed. Rows without a report, reports without rows, duplicate keys, differing sizes
//! and invalid counts are errors with the first few keys and the totals, unless the caller chooses
//! to drop them.

use super::keys::{Keys, first_few};
use super::{Column, Table};
use crate::bags::{Bags, Noise, Partition};
use crate::error::{Error, Result};
use ndarray::Array2;
use std::collections::{BTreeSet, HashMap};

pub use super::keys::KeyColumn;

/// The columns of the reports and their meaning.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportColumns {
    /// The key columns; rows must have the same column names.
    pub keys: Vec<KeyColumn>,
    /// The count columns: one for the positive class, or one per class.
    pub counts: Vec<String>,
    /// The column with the reported bag size, to be compared with the number of rows.
    pub size: Option<String>,
    /// The declared noise of each count.
    pub noise: ReportNoise,
    /// The provider suppresses counts below this.
    pub suppressed_below: Option<f64>,
    /// How rows and reports that do not match are handled.
    pub on_mismatch: OnMismatch,
}

/// Declared noise: one scale for all bags, or a column with a scale per bag.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum ReportNoise {
    /// Counts are exact.
    #[default]
    None,
    /// Laplace noise.
    Laplace(NoiseScale),
    /// Normal noise.
    Gaussian(NoiseScale),
}

/// The scale of the noise.
#[derive(Debug, Clone, PartialEq)]
pub enum NoiseScale {
    /// The same for all bags.
    All(f64),
    /// In this column of the reports.
    Column(String),
}

/// How rows and reports that do not match are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnMismatch {
    /// As an error.
    #[default]
    Refuse,
    /// They are dropped and counted.
    Drop,
}

/// Bags made from rows and reports, and what was dropped.
#[derive(Debug, Clone, PartialEq)]
pub struct Joined {
    /// The bags, in the order of their reports.
    pub bags: Bags,
    /// Each bag's key as text; parts are joined by ` / `.
    pub keys: Vec<String>,
    /// The number of rows without a report.
    pub rows_without_report: usize,
    /// The number of reports without rows.
    pub reports_without_rows: usize,
    /// The number of reports with a suppressed count.
    pub suppressed: usize,
}

/// Joins reports to rows on the key columns, which both tables hold as text; [`KeyColumn`] says how
/// it is compared.
pub fn join(rows: &Table, reports: &Table, columns: &ReportColumns) -> Result<Joined> {
    let [row_keys, report_keys] = Keys::of(rows, reports, &columns.keys)?;
    let mut place_of_key: HashMap<Vec<u32>, usize> = HashMap::new();
    let mut key = Vec::new();
    for line in 0..report_keys.len() {
        report_keys.key(line, &mut key);
        if let Some(first) = place_of_key.insert(key.clone(), line) {
            return Err(Error::ReportTwice { key: report_keys.shown(line), first, second: line });
        }
    }
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); report_keys.len()];
    let mut unmatched = Vec::new();
    // Neighbouring rows often share a key: what was found last is tried first.
    let (mut last_key, mut last_place) = (Vec::new(), None);
    for (row, line) in (0..row_keys.len()).zip(0_u32..) {
        row_keys.key(row, &mut key);
        if key != last_key {
            last_place = place_of_key.get(&key).copied();
            std::mem::swap(&mut key, &mut last_key);
        }
        match last_place {
            Some(place) => members[place].push(line),
            None => unmatched.push(row),
        }
    }
    let without_rows: Vec<usize> = (0..report_keys.len()).filter(|&line| members[line].is_empty()).collect();
    // Where nothing is left, it is not what was to be dropped.
    if columns.on_mismatch == OnMismatch::Refuse || unmatched.len() == row_keys.len() {
        let mismatch = Mismatch { row_keys: &row_keys, report_keys: &report_keys, columns: &columns.keys };
        mismatch.refuse(&unmatched, &without_rows)?;
    }
    let reports_without_rows = without_rows.len();

    let counts: Vec<&[f64]> =
        columns.counts.iter().map(|name| numbers(reports, name)).collect::<Result<_>>()?;
    let is_suppressed = |line: usize| match columns.suppressed_below {
        None => false,
        Some(limit) => counts.iter().any(|counts| counts[line].is_nan() || counts[line] < limit),
    };
    let with_rows = || (0..report_keys.len()).filter(|&line| !members[line].is_empty());
    let kept: Vec<usize> = with_rows().filter(|&line| !is_suppressed(line)).collect();
    let suppressed = with_rows().count() - kept.len();
    let key_of = |line: usize| report_keys.shown(line);
    if let Some(sizes) = columns.size.as_ref().map(|name| numbers(reports, name)).transpose()? {
        for &line in &kept {
            let (reported, found) = (sizes[line], members[line].len());
            if (reported - found as f64).abs() > 0.0 || reported.is_nan() {
                return Err(Error::SizeDiffers { key: key_of(line), reported, found });
            }
        }
    }
    for &line in &kept {
        for (counts, name) in counts.iter().zip(&columns.counts) {
            let is_exact = columns.noise == ReportNoise::None;
            check_count(counts[line], members[line].len(), is_exact, || key_of(line), name)?;
        }
    }
    let partition = Partition::new(rows.n_rows(), kept.iter().map(|&line| &members[line]))?;
    let noise = noise(reports, &columns.noise, &kept)?;
    let bags = if let [positives] = counts[..] {
        let positives: Vec<f64> = kept.iter().map(|&line| positives[line]).collect();
        Bags::binary(partition, &positives, noise)?
    } else {
        let matrix =
            Array2::from_shape_fn((kept.len(), counts.len()), |(bag, class)| counts[class][kept[bag]]);
        if columns.noise == ReportNoise::None {
            for (&line, counts) in kept.iter().zip(matrix.rows()) {
                let size = members[line].len();
                if (counts.sum() - size as f64).abs() > 0.0 {
                    return Err(Error::ReportDoesNotSum { key: key_of(line), size, counted: counts.sum() });
                }
            }
        }
        Bags::multiclass(partition, matrix, noise)?
    };
    let keys = kept.iter().map(|&line| key_of(line)).collect();
    Ok(Joined { bags, keys, rows_without_report: unmatched.len(), reports_without_rows, suppressed })
}

/// Rejects invalid counts; the error names the bag's key.
fn check_count(
    count: f64,
    size: usize,
    is_exact: bool,
    key: impl Fn() -> String,
    column: &str,
) -> Result<()> {
    if count.is_nan() {
        Err(Error::CountMissing { key: key(), column: column.into() })
    } else if is_exact && count < 0.0 {
        Err(Error::CountNegative { key: key(), count })
    } else if is_exact && count > size as f64 {
        Err(Error::CountOverSize { key: key(), count, size })
    } else if is_exact && count.fract().abs() > 0.0 {
        Err(Error::CountFraction { key: key(), count })
    } else {
        Ok(())
    }
}

fn numbers<'t>(table: &'t Table, name: &str) -> Result<&'t [f64]> {
    match table.column(name)? {
        Column::Numeric(values) => Ok(values),
        other => Err(Error::ColumnKind { column: name.into(), expected: "numeric", got: other.kind() }),
    }
}

fn noise(reports: &Table, declared: &ReportNoise, kept: &[usize]) -> Result<Noise> {
    let scales = |scale: &NoiseScale| match scale {
        NoiseScale::All(scale) => Ok(vec![*scale; kept.len()]),
        NoiseScale::Column(name) => {
            let scales = numbers(reports, name)?;
            Ok(kept.iter().map(|&line| scales[line]).collect())
        }
    };
    Ok(match declared {
        ReportNoise::None => Noise::None,
        ReportNoise::Laplace(scale) => Noise::Laplace(scales(scale)?),
        ReportNoise::Gaussian(scale) => Noise::Gaussian(scales(scale)?),
    })
}

/// Keys of rows and reports, for the error message when they do not match.
struct Mismatch<'m, 't> {
    row_keys: &'m Keys<'t>,
    report_keys: &'m Keys<'t>,
    columns: &'m [KeyColumn],
}

impl Mismatch<'_, '_> {
    /// Rejects rows without a report, and reports without rows.
    fn refuse(&self, rows: &[usize], reports: &[usize]) -> Result<()> {
        let types = || self.columns.iter().map(KeyColumn::types).collect::<Vec<_>>().join(", ");
        let distinct = |keys: &Keys, lines: &[usize]| -> BTreeSet<String> {
            lines.iter().map(|&line| keys.shown(line)).collect()
        };
        // Of the other table the keys that match nothing tell most, if there are some.
        if !rows.is_empty() {
            let keys = distinct(self.row_keys, rows);
            let all: Vec<usize> = (0..self.report_keys.len()).collect();
            let others = distinct(self.report_keys, if reports.is_empty() { &all } else { reports });
            return Err(Error::RowsWithoutReport {
                n_rows: rows.len(),
                n_keys: keys.len(),
                hint: hint(&keys, &others),
                keys: first_few(keys.into_iter()),
                report_keys: first_few(others.into_iter()),
                types: types(),
            });
        }
        if !reports.is_empty() {
            let keys = distinct(self.report_keys, reports);
            let few: Vec<usize> = (0..self.row_keys.len()).collect();
            return Err(Error::ReportsWithoutRows {
                n_reports: reports.len(),
                keys: first_few(keys.into_iter()),
                row_keys: first_few(distinct(self.row_keys, &few).into_iter()),
                types: types(),
            });
        }
        Ok(())
    }
}

/// A hint on how to make keys match.
fn hint(keys: &BTreeSet<String>, others: &BTreeSet<String>) -> &'static str {
    let loosely = |key: &String| key.trim_matches('"').trim().to_lowercase();
    let others: BTreeSet<String> = others.iter().map(loosely).collect();
    if keys.iter().any(|key| others.contains(&loosely(key))) {
        "; some differ only in case or in spaces around them, which count"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(keys: &[&str]) -> Table {
        Table::new(vec![("bag".into(), Column::categorical(keys.iter().copied()))]).unwrap()
    }

    fn reports(keys: &[&str], counts: &[f64], sizes: &[f64]) -> Table {
        Table::new(vec![
            ("bag".into(), Column::categorical(keys.iter().copied())),
            ("count".into(), Column::Numeric(counts.to_vec())),
            ("size".into(), Column::Numeric(sizes.to_vec())),
        ])
        .unwrap()
    }

    fn columns() -> ReportColumns {
        ReportColumns {
            keys: vec![KeyColumn::text("bag")],
            counts: vec!["count".into()],
            size: None,
            noise: ReportNoise::None,
            suppressed_below: None,
            on_mismatch: OnMismatch::Refuse,
        }
    }

    #[test]
    fn reports_find_their_rows() {
        let joined =
            join(&rows(&["b", "a", "b", "b"]), &reports(&["a", "b"], &[1.0, 2.0], &[1.0, 3.0]), &columns());
        let joined = joined.unwrap();
        assert_eq!(joined.keys, ["a", "b"]);
        assert_eq!(joined.bags.members(1), [0, 2, 3]);
        assert_eq!(joined.bags.counts_of(1).to_vec(), [1.0, 2.0]);
    }

    #[test]
    fn each_mismatch_has_its_own_refusal() {
        let refused = |rows: &Table, reports: &Table, columns: &ReportColumns| {
            join(rows, reports, columns).unwrap_err()
        };
        let two = rows(&["a", "b", "b"]);
        assert!(matches!(
            refused(&two, &reports(&["a"], &[1.0], &[1.0]), &columns()),
            Error::RowsWithoutReport { n_rows: 2, n_keys: 1, .. }
        ));
        assert!(matches!(
            refused(&two, &reports(&["a", "b", "c"], &[0.0; 3], &[1.0; 3]), &columns()),
            Error::ReportsWithoutRows { n_reports: 1, .. }
        ));
        assert!(matches!(
            refused(&two, &reports(&["a", "b", "a"], &[0.0; 3], &[1.0; 3]), &columns()),
            Error::ReportTwice { first: 0, second: 2, .. }
        ));
        let sized = ReportColumns { size: Some("size".into()), ..columns() };
        assert!(matches!(
            refused(&two, &reports(&["a", "b"], &[0.0; 2], &[1.0, 3.0]), &sized),
            Error::SizeDiffers { found: 2, .. }
        ));
        let counted = |count| refused(&two, &reports(&["a", "b"], &[0.0, count], &[1.0; 2]), &columns());
        assert!(matches!(counted(3.0), Error::CountOverSize { size: 2, .. }));
        assert!(matches!(counted(-1.0), Error::CountNegative { .. }));
        assert!(matches!(counted(0.5), Error::CountFraction { .. }));
        assert!(matches!(counted(f64::NAN), Error::CountMissing { .. }));
    }

    #[test]
    fn what_does_not_match_can_be_dropped_and_is_counted() {
        let dropping = ReportColumns { on_mismatch: OnMismatch::Drop, ..columns() };
        let joined = join(
            &rows(&["a", "b", "b", "x"]),
            &reports(&["a", "b", "c"], &[1.0, 0.0, 0.0], &[1.0; 3]),
            &dropping,
        );
        let joined = joined.unwrap();
        assert_eq!(
            (joined.rows_without_report, joined.reports_without_rows, joined.bags.n_bags()),
            (1, 1, 2)
        );
    }

    #[test]
    fn suppressed_counts_are_left_out_and_never_zero() {
        let suppressing = ReportColumns { suppressed_below: Some(2.0), ..columns() };
        let rows = rows(&["a", "a", "b", "b", "c", "c"]);
        let joined =
            join(&rows, &reports(&["a", "b", "c"], &[2.0, f64::NAN, 0.0], &[2.0; 3]), &suppressing).unwrap();
        assert_eq!((joined.suppressed, joined.keys), (2, vec!["a".to_owned()]));
    }

    #[test]
    fn several_keys_and_several_classes() {
        let rows = Table::new(vec![
            ("day".into(), Column::categorical(["1", "1", "2"])),
            ("campaign".into(), Column::categorical(["x", "x", "x"])),
        ])
        .unwrap();
        let reports = Table::new(vec![
            ("campaign".into(), Column::categorical(["x", "x"])),
            ("day".into(), Column::categorical(["2", "1"])),
            ("low".into(), Column::Numeric(vec![1.0, 0.0])),
            ("high".into(), Column::Numeric(vec![0.0, 2.0])),
        ])
        .unwrap();
        let columns = ReportColumns {
            keys: vec![KeyColumn::text("day"), KeyColumn::text("campaign")],
            counts: vec!["low".into(), "high".into()],
            ..columns()
        };
        let joined = join(&rows, &reports, &columns).unwrap();
        assert_eq!(joined.keys, ["2 / x", "1 / x"]);
        assert_eq!(joined.bags.counts_of(1).to_vec(), [0.0, 2.0]);
    }
    /// Joined by ` / ` the two rows would have one key.
    #[test]
    fn keys_of_several_columns_are_tuples() {
        let table = |first: [&str; 2], second: [&str; 2]| {
            Table::new(vec![
                ("a".into(), Column::categorical(first)),
                ("b".into(), Column::categorical(second)),
                ("count".into(), Column::Numeric(vec![1.0, 0.0])),
            ])
            .unwrap()
        };
        let rows = table(["a / b", "a"], ["c", "b / c"]);
        let columns = ReportColumns { keys: vec![KeyColumn::text("a"), KeyColumn::text("b")], ..columns() };
        let joined = join(&rows, &table(["a", "a / b"], ["b / c", "c"]), &columns).unwrap();
        assert_eq!((joined.bags.members(0), joined.bags.members(1)), (&[1][..], &[0][..]));
        assert_eq!(joined.keys, ["a / \"b / c\"", "\"a / b\" / c"]);
        let refused = join(&rows, &table(["a / b", "x"], ["c", "y"]), &columns).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "1 rows have no report, with keys such as a / \"b / c\" (1 in all); reports have keys such as x / y \
             (`a` holds text, `b` holds text): complete the reports, or drop what does not match"
        );
    }

    #[test]
    fn keys_that_match_nothing_are_not_dropped_to_the_last() {
        let dropping = ReportColumns { on_mismatch: OnMismatch::Drop, ..columns() };
        let refused = join(&rows(&["A", "B"]), &reports(&["a", "c"], &[0.0; 2], &[1.0; 2]), &dropping);
        let refused = refused.unwrap_err();
        assert!(matches!(refused, Error::RowsWithoutReport { n_rows: 2, .. }), "{refused}");
        assert!(refused.to_string().contains("differ only in case or in spaces"), "{refused}");
    }
}
