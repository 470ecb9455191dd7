//! Arrow record batches in memory, as a table.

use super::convert::ColumnBuilder;
use super::source::ReadAs;
use super::{ColumnEncoding, Encoder, Kind, Table};
use crate::error::{Error, Result};
use arrow_array::RecordBatch;
use arrow_schema::DataType;
use rayon::prelude::*;
use std::collections::BTreeMap;

impl Table {
    /// The columns of batches that share a schema. Text and dictionary-encoded columns are read as
    /// categories; the columns of `read_as` are read as the given type.
    pub fn from_batches(batches: &[RecordBatch], read_as: &BTreeMap<String, ReadAs>) -> Result<Self> {
        let Some(first) = batches.first() else { return Err(Error::NoRows) };
        let n_rows = batches.iter().map(RecordBatch::num_rows).sum();
        let schema = first.schema();
        let fields: Vec<_> = schema.fields().iter().enumerate().collect();
        let column = |&(place, field): &(usize, &arrow_schema::FieldRef)| {
            let name = field.name();
            let kind = Kind::of(field.data_type()).ok_or_else(|| Error::UnreadableColumn {
                column: name.clone(),
                found: field.data_type().to_string(),
            })?;
            let is_coded = matches!(field.data_type(), DataType::Dictionary(..));
            let usual = (is_coded || kind == Kind::Text).then_some(ReadAs::Category);
            let mut builder = ColumnBuilder::new(name, kind, read_as.get(name).copied().or(usual));
            builder.reserve(n_rows);
            batches.iter().try_for_each(|batch| builder.extend(batch.column(place)))?;
            Ok((name.clone(), builder.finish()))
        };
        Self::new(fields.par_iter().map(column).collect::<Result<_>>()?)
    }
}

impl Encoder {
    /// Rejects numeric columns where the encoder was fitted on text: every number would be an
    /// unknown category.
    ///
    /// Columns that the encoder does not know, and missing columns, are ignored.
    pub fn check_kinds<'c>(&self, columns: impl IntoIterator<Item = (&'c str, Kind)>) -> Result<()> {
        for (name, kind) in columns {
            let encoder = self.columns().iter().find(|column| column.name == name);
            let Some(ColumnEncoding::Vocabulary(values)) = encoder.map(|column| &column.encoding) else {
                continue;
            };
            let is_number = |value: &&String| value.parse::<f64>().is_ok();
            let text = values.iter().find(|value| !value.is_empty());
            if let (Kind::Integer | Kind::Number, Some(text), None) =
                (kind, text, values.iter().find(is_number))
            {
                let (column, found) = (name.to_owned(), kind.name());
                return Err(Error::NumbersForText { column, found, example: text.clone() });
            }
        }
        Ok(())
    }

    /// The types that an encoder's columns are read as.
    pub fn read_as(&self) -> BTreeMap<String, ReadAs> {
        let columns = self.columns().iter().filter_map(|column| {
            let read_as = match column.encoding {
                ColumnEncoding::Standardise { .. } => ReadAs::Number,
                ColumnEncoding::StandardiseVector { .. } | ColumnEncoding::AsIs { .. } => return None,
                ColumnEncoding::Vocabulary(_) | ColumnEncoding::Hash(_) => ReadAs::Category,
            };
            Some((column.name.clone(), read_as))
        });
        columns.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Column, EncoderOptions};
    use arrow_array::types::Int32Type;
    use arrow_array::{ArrayRef, DictionaryArray, Float32Array, Int64Array, StringArray};
    use std::sync::Arc;

    fn batch(ages: &[i64]) -> RecordBatch {
        let words: Vec<String> = ages.iter().map(|age| format!("w{}", age % 2)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let coded: DictionaryArray<Int32Type> = words.iter().copied().collect();
        let columns: [(&str, ArrayRef); 4] = [
            ("age", Arc::new(Int64Array::from(ages.to_vec()))),
            ("weight", Arc::new(Float32Array::from(vec![1.5; ages.len()]))),
            ("word", Arc::new(StringArray::from(words))),
            ("coded", Arc::new(coded)),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    #[test]
    fn numbers_are_no_text() {
        let table = |values: &[&str]| {
            let text = Column::categorical(values.iter().copied());
            Table::new(vec![("word".into(), text)]).unwrap()
        };
        let fit = |values: &[&str]| Encoder::fit(&table(values), EncoderOptions::default()).unwrap();
        let check = |encoder: &Encoder, kind| encoder.check_kinds([("word", kind), ("other", Kind::Number)]);
        assert_eq!(
            check(&fit(&["", "Bern"]), Kind::Integer).unwrap_err().to_string(),
            "column `word` holds whole numbers, but the model was trained on text such as `Bern`: give the text"
        );
        assert_eq!(check(&fit(&["Bern"]), Kind::Text), Ok(()));
        // Codes that were read as categories, and some that happen to be whole.
        assert_eq!(check(&fit(&["12", "13"]), Kind::Integer), Ok(()));
        assert_eq!(check(&fit(&["12", "13A"]), Kind::Number), Ok(()));
        assert_eq!(check(&fit(&[""]), Kind::Number), Ok(()));
    }

    #[test]
    fn batches_become_numbers_and_categories() {
        let batches = [batch(&[20, 31]), batch(&[40])];
        let table = Table::from_batches(&batches, &BTreeMap::new()).unwrap();
        assert_eq!(table.n_rows(), 3);
        let encoder = Encoder::fit(&table, EncoderOptions::default()).unwrap();
        let rows = encoder.encode(&table).unwrap();
        // In the order of names: age and weight are dense, coded and word have two values each and the unknown one.
        assert_eq!((rows.n_dense(), rows.cardinalities()), (2, &[3, 3][..]));
        assert_eq!(rows.as_dense().unwrap().batch(0..3).categories.column(1).to_vec(), [1, 2, 1]);
        assert_eq!(encoder.read_as()["word"], ReadAs::Category);
        assert_eq!(encoder.read_as()["age"], ReadAs::Number);
        assert_eq!(Table::from_batches(&[], &BTreeMap::new()).unwrap_err(), Error::NoRows);
    }

    #[test]
    fn numbers_are_categories_where_that_is_said() {
        let read_as = [("age".to_owned(), ReadAs::Category)].into();
        let table = Table::from_batches(&[batch(&[7, 7, 9])], &read_as).unwrap();
        let encoder = Encoder::fit(&table, EncoderOptions::default()).unwrap();
        let age = encoder.columns().iter().find(|column| column.name == "age").unwrap();
        assert_eq!(age.encoding, ColumnEncoding::Vocabulary(vec!["7".into(), "9".into()]));
    }
}
