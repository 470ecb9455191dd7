//! Write CSV files.

use crate::table::cells::{NoSuchForm, each_text};
use arrow_array::{Array, RecordBatch};
use arrow_schema::Schema;

/// The names of the columns.
pub(in crate::table) fn header(schema: &Schema) -> String {
    let mut line = String::new();
    for (place, field) in schema.fields().iter().enumerate() {
        if place > 0 {
            line.push(',');
        }
        add_field(&mut line, field.name());
    }
    line.push('\n');
    line
}

/// A line per row; missing values are empty.
pub(in crate::table) fn lines(batch: &RecordBatch) -> Result<String, NoSuchForm> {
    let columns = batch.columns().iter().map(|column| Fields::of(column)).collect::<Result<Vec<_>, _>>()?;
    let mut lines =
        String::with_capacity(columns.iter().map(|column| column.text.len() + batch.num_rows()).sum());
    for row in 0..batch.num_rows() {
        for (place, column) in columns.iter().enumerate() {
            if place > 0 {
                lines.push(',');
            }
            lines.push_str(column.field(row));
        }
        if columns.len() == 1 && columns[0].field(row).is_empty() {
            // An empty line would be no row.
            lines.push_str("\"\"");
        }
        lines.push('\n');
    }
    Ok(lines)
}

/// The fields of a column, one after the other.
struct Fields {
    text: String,
    ends: Vec<usize>,
}

impl Fields {
    fn of(column: &dyn Array) -> Result<Self, NoSuchForm> {
        let (mut text, mut ends) = (String::new(), Vec::with_capacity(column.len()));
        each_text(column, &mut |cell| {
            add_field(&mut text, cell.unwrap_or_default());
            ends.push(text.len());
        })?;
        Ok(Self { text, ends })
    }

    fn field(&self, row: usize) -> &str {
        &self.text[row.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[row]]
    }
}

/// Appends a field, quoted if needed.
fn add_field(text: &mut String, field: &str) {
    if !field.contains([',', '"', '\n', '\r']) {
        return text.push_str(field);
    }
    text.push('"');
    for (place, part) in field.split('"').enumerate() {
        if place > 0 {
            text.push_str("\"\"");
        }
        text.push_str(part);
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{ArrayRef, Float64Array, StringArray};
    use std::sync::Arc;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let text: ArrayRef = Arc::new(StringArray::from(vec![
            Some("plain"),
            Some("a, b"),
            Some("say \"so\""),
            None,
            Some("x\ny"),
        ]));
        let numbers: ArrayRef =
            Arc::new(Float64Array::from(vec![Some(1.0), Some(0.25), None, Some(1e300), Some(-0.0)]));
        let both = RecordBatch::try_from_iter([("te,xt", Arc::clone(&text)), ("number", numbers)]).unwrap();
        assert_eq!(header(&both.schema()), "\"te,xt\",number\n");
        assert_eq!(
            lines(&both).unwrap(),
            "plain,1.0\n\"a, b\",0.25\n\"say \"\"so\"\"\",\n,1e300\n\"x\ny\",-0.0\n"
        );
        let one = RecordBatch::try_from_iter([("text", text.slice(2, 2))]).unwrap();
        assert_eq!(lines(&one).unwrap(), "\"say \"\"so\"\"\"\n\"\"\n");
    }
}
