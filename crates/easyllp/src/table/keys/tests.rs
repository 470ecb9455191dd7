use super::*;

fn numbered(kinds: [Kind; 2], rows: &[&str], reports: &[&str]) -> Result<[Vec<u32>; 2]> {
    let owned = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect::<Vec<_>>();
    let column = KeyColumn { name: "key".into(), in_rows: kinds[0], in_reports: kinds[1] };
    column.numbered(&owned(rows), &owned(reports))
}

/// Which of the reports' values each of the rows' is.
fn matches(kinds: [Kind; 2], rows: &[&str], reports: &[&str]) -> Vec<Option<usize>> {
    let [rows, reports] = numbered(kinds, rows, reports).unwrap();
    rows.iter().map(|row| reports.iter().position(|report| report == row)).collect()
}

const WHOLE: Kind = Kind::Integer;
const NUMBER: Kind = Kind::Number;
const TEXT: Kind = Kind::Text;

#[test]
fn numbers_are_compared_as_numbers_whatever_their_column_is() {
    let all = vec![Some(0), Some(1), Some(2)];
    for kinds in [[WHOLE, NUMBER], [NUMBER, WHOLE], [NUMBER, NUMBER], [WHOLE, TEXT], [TEXT, WHOLE]] {
        assert_eq!(matches(kinds, &["0", "1", "-20"], &["0.0", "00001", "-20.00"]), all, "{kinds:?}");
    }
    assert_eq!(matches([NUMBER, WHOLE], &["1e3", "-0.0", " 7"], &["1000", "0", "7"]), all);
    assert_eq!(matches([NUMBER, NUMBER], &["0.1", "2.50", "1e-7"], &["1e-1", "2.5", "0.0000001"]), all);
    // To the last digit: f64 could not tell these apart.
    let large = ["9007199254740993", "9007199254740992", "18446744073709551615"];
    assert_eq!(
        matches([WHOLE, WHOLE], &large, &[large[1], large[2], "18446744073709551614"]),
        [None, Some(0), Some(1)]
    );
}

#[test]
fn text_is_compared_letter_by_letter() {
    assert_eq!(matches([TEXT, TEXT], &["007", "a ", "B"], &["7", "a", "b"]), [None; 3]);
    assert_eq!(matches([TEXT, TEXT], &["NA", "", "None"], &["None", "", "null"]), [None, Some(1), Some(0)]);
}

#[test]
fn two_values_of_a_table_never_become_one_key() {
    // As numbers 7 and 007 would be one: all is text.
    for kinds in [[WHOLE, WHOLE], [TEXT, WHOLE]] {
        assert_eq!(matches(kinds, &["7", "007", "8"], &["7", "8"]), [Some(0), None, Some(1)], "{kinds:?}");
    }
    // But zero is zero, and what is missing is missing.
    assert_eq!(
        matches([NUMBER, NUMBER], &["0.0", "-0.0", "NaN", ""], &["", "0.0"]),
        [Some(1), Some(1), Some(0), Some(0)]
    );
}

#[test]
fn what_cannot_be_compared_is_refused_with_examples() {
    let refused = |kinds, rows: &[&str], reports: &[&str]| numbered(kinds, rows, reports).unwrap_err();
    let error = refused([WHOLE, TEXT], &["1", "2", "3", "4"], &["a, b", "", "1"]);
    assert_eq!(
        error.to_string(),
        "key `key` holds whole numbers in the rows, such as 1, 2, 3, …, but text in the reports, such as \"a, b\", \
         (missing), 1: these cannot be compared; write the keys of both files alike"
    );
    // Names that look like numbers to some.
    for name in ["1e5", "+1", " 1", "0x1", "1_000", "inf", "."] {
        assert!(matches!(refused([TEXT, WHOLE], &[name], &["1"]), Error::KeyKind { .. }), "{name}");
    }
    assert!(matches!(refused([Kind::Boolean, WHOLE], &["true"], &["1"]), Error::KeyKind { .. }));
    assert!(matches!(refused([Kind::Time, WHOLE], &["2026-05-31"], &["20260531"]), Error::KeyKind { .. }));
    // 2^53 + 1 became 2^53 when it was converted to f64.
    let rounded = refused([NUMBER, WHOLE], &["9007199254740992.0"], &["9007199254740993"]);
    assert!(matches!(rounded, Error::KeyRounded { table: "rows", .. }), "{rounded}");
    let rounded = refused([WHOLE, NUMBER], &["1234567890123456789"], &["1.2345678901234568e+18"]);
    assert!(matches!(rounded, Error::KeyRounded { table: "reports", .. }), "{rounded}");
}

#[test]
fn truth_is_compared_in_any_case() {
    let truth = [Kind::Boolean, Kind::Boolean];
    assert_eq!(matches(truth, &["True", "FALSE"], &["false", "true"]), [Some(1), Some(0)]);
    assert_eq!(matches([TEXT, Kind::Boolean], &["True"], &["true"]), [Some(0)]);
}

#[cfg(feature = "tables")]
#[test]
fn times_are_compared_as_instants() {
    let time = [Kind::Time, Kind::Time];
    let rows = ["2026-05-31", "2026-05-31 10:20:30", "2026-05-31T10:20:30.5Z"];
    let reports = ["2026-05-31T12:20:30.500+02:00", "2026-05-31T10:20:30.000", "2026-05-31T00:00:00"];
    assert_eq!(matches(time, &rows, &reports), [Some(2), Some(1), Some(0)]);
    // Without a zone it is not known which instant it is.
    assert_eq!(matches(time, &["2026-05-31T10:20:30"], &["2026-05-31T10:20:30Z"]), [None]);
    // Times of day are no instants, and compared as text.
    assert_eq!(matches(time, &["10:20:30", "10:20:31"], &["10:20:31"]), [None, Some(0)]);
    assert_eq!(matches([TEXT, Kind::Time], &["2026-05-31"], &["2026-05-31T00:00:00"]), [Some(0)]);
    assert!(numbered([TEXT, Kind::Time], &["May"], &["2026-05-31"]).is_err());
}
