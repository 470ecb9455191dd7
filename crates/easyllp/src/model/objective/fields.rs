//! The categories of the training rows, field by field: only those that occur, stored by column.
//!
//! A category without rows has no gradient, and with a penalty its best weight is 0: it is left out
//! of the optimisation. The others are numbered in the order of their ids. The weights of a field
//! are read together, in a table that fits into the cache. Its gradient belongs to one thread,
//! which adds rows in order: nothing depends on the number of threads.

use ndarray::ArrayView2;
use rayon::prelude::*;

/// Fields that are read together: their ids lie next to each other.
const FIELDS_AT_ONCE: usize = 8;
/// Rows whose ids are read before the next field's are.
const ROWS_AT_ONCE: usize = 4096;

/// The fields of some rows.
pub(crate) struct FieldColumns {
    fields: Vec<Field>,
}

struct Field {
    /// One place a row.
    places: Places,
    /// Of each place the id, ascending.
    ids: Vec<u32>,
    /// How many rows are in each place.
    counts: Vec<u32>,
    /// The gradients of parts of the rows, where there are too few fields to share out.
    parts: Vec<Vec<f64>>,
}

/// A place a row, in as few bytes as will do: what is read twice in every evaluation.
enum Places {
    Narrow(Vec<u16>),
    Wide(Vec<u32>),
}

/// The same call on whichever kind of places it is.
macro_rules! on_places {
    ($places:expr, $range:expr, $inner:ident => $call:expr) => {
        match $places {
            Places::Narrow(all) => {
                let $inner = all[$range].iter().map(|&place| usize::from(place));
                $call
            }
            Places::Wide(all) => {
                let $inner = all[$range].iter().map(|&place| place as usize);
                $call
            }
        }
    };
}

impl FieldColumns {
    /// Those of the named rows, in that order; ids in field `f` are below `cardinalities[f]`.
    pub(crate) fn new(
        categories: ArrayView2<u32>,
        cardinalities: &[u32],
        members: &[u32],
        n_scores: usize,
    ) -> Self {
        let first: Vec<usize> = (0..cardinalities.len()).step_by(FIELDS_AT_ONCE).collect();
        let groups: Vec<Vec<Field>> = first
            .into_par_iter()
            .map(|first| {
                let end = (first + FIELDS_AT_ONCE).min(cardinalities.len());
                Field::group(categories, first, &cardinalities[first..end], members)
            })
            .collect();
        let mut fields: Vec<Field> = groups.into_iter().flatten().collect();
        let n_fields = fields.len();
        for field in &mut fields {
            field.share_out(n_fields, members.len(), n_scores);
        }
        Self { fields }
    }

    /// The lines of the table of all categories, in the order of places, and in how many rows each occurs.
    pub(crate) fn lines<'f>(&'f self, cardinalities: &'f [u32]) -> impl Iterator<Item = (u32, u32)> + 'f {
        let starts = cardinalities.iter().scan(0, |next, cardinality| {
            let start = *next;
            *next += cardinality;
            Some(start)
        });
        self.fields.iter().zip(starts).flat_map(|(field, start)| {
            field.ids.iter().zip(&field.counts).map(move |(id, &count)| (start + id, count))
        })
    }

    /// Adds to the scores of consecutive rows the weights of their categories; both have a line per row or a place.
    pub(crate) fn add_scores(&self, first: usize, table: &[f64], n_scores: usize, scores: &mut [f64]) {
        let range = first..first + scores.len() / n_scores;
        let mut rest = table;
        for field in &self.fields {
            let weights;
            (weights, rest) = rest.split_at(field.ids.len() * n_scores);
            on_places!(&field.places, range.clone(), places => match n_scores {
                1 => scores.iter_mut().zip(places).for_each(|(score, place)| *score += weights[place]),
                _ => for (scores, place) in scores.chunks_exact_mut(n_scores).zip(places) {
                    let of_place = &weights[place * n_scores..][..n_scores];
                    scores.iter_mut().zip(of_place).for_each(|(score, weight)| *score += weight);
                }
            });
        }
    }

    /// Writes the gradient of all weights, from the slopes of the loss in the scores of all rows.
    pub(crate) fn gradient(&mut self, slopes: &[f64], n_scores: usize, gradient: &mut [f64]) {
        let mut rest = gradient;
        let mut of_fields = Vec::with_capacity(self.fields.len());
        for field in &mut self.fields {
            let of_field;
            (of_field, rest) = rest.split_at_mut(field.ids.len() * n_scores);
            of_fields.push((field, of_field));
        }
        of_fields.into_par_iter().for_each(|(field, of_field)| {
            let Field { places, parts, .. } = field;
            if parts.is_empty() {
                return sum_slopes(places, 0, slopes, n_scores, of_field);
            }
            let length = (slopes.len() / n_scores).div_ceil(parts.len());
            parts
                .par_iter_mut()
                .zip(slopes.par_chunks(length * n_scores))
                .enumerate()
                .for_each(|(part, (sums, slopes))| sum_slopes(places, part * length, slopes, n_scores, sums));
            of_field.copy_from_slice(&parts[0]);
            for part in &parts[1..] {
                of_field.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
            }
        });
    }

    /// Calls `each` with the numbers of a row's categories, given that of each place; those that have none are passed over.
    pub(crate) fn numbered(&self, number_of: &[u32], row: usize, mut each: impl FnMut(usize)) {
        let mut start = 0;
        for field in &self.fields {
            let place = on_places!(&field.places, row..=row, places => places.sum::<usize>());
            let number = number_of[start + place];
            if number != super::NOT_NUMBERED {
                each(number as usize);
            }
            start += field.ids.len();
        }
    }
}

impl Field {
    /// Neighbouring fields of the named rows.
    fn group(categories: ArrayView2<u32>, first: usize, cardinalities: &[u32], members: &[u32]) -> Vec<Self> {
        let fields = || cardinalities.iter().enumerate().map(|(place, _)| place);
        let mut counts: Vec<Vec<u32>> =
            cardinalities.iter().map(|&cardinality| vec![0; cardinality as usize]).collect();
        for members in members.chunks(ROWS_AT_ONCE) {
            for field in fields() {
                for &row in members {
                    counts[field][categories[[row as usize, first + field]] as usize] += 1;
                }
            }
        }
        // Of each id its place, where its count was; ids that do not occur have none, and are not asked for.
        let mut of_fields: Vec<Self> = counts
            .iter_mut()
            .map(|place_of| {
                let (mut ids, mut counts) = (Vec::new(), Vec::new());
                for (id, count) in (0..).zip(place_of).filter(|(_, count)| **count > 0) {
                    counts.push(std::mem::replace(count, u32::try_from(ids.len()).expect("ids are u32")));
                    ids.push(id);
                }
                let places = match u16::try_from(ids.len().saturating_sub(1)) {
                    Ok(_) => Places::Narrow(Vec::with_capacity(members.len())),
                    Err(_) => Places::Wide(Vec::with_capacity(members.len())),
                };
                Self { places, ids, counts, parts: Vec::new() }
            })
            .collect();
        for members in members.chunks(ROWS_AT_ONCE) {
            for field in fields() {
                let places = members
                    .iter()
                    .map(|&row| counts[field][categories[[row as usize, first + field]] as usize]);
                match &mut of_fields[field].places {
                    #[expect(
                        clippy::cast_possible_truncation,
                        reason = "no more places than u16 has numbers"
                    )]
                    Places::Narrow(narrow) => narrow.extend(places.map(|place| place as u16)),
                    Places::Wide(wide) => wide.extend(places),
                }
            }
        }
        of_fields
    }

    /// Has the rows of one field worked on in parts, if there are few fields and many rows for each category. How many depends on
    /// the data alone.
    fn share_out(&mut self, n_fields: usize, n_rows: usize, n_scores: usize) {
        /// Tasks that are enough for the threads of a machine.
        const TASKS: usize = 16;
        /// Rows of a part for each category, at least: what a part costs besides is to be little.
        const ROWS_A_PLACE: usize = 8;
        let by_rows = n_rows / (ROWS_A_PLACE * self.ids.len().max(512));
        let n_parts = TASKS.div_ceil(n_fields).min(by_rows);
        if n_parts > 1 {
            self.parts = vec![vec![0.0; self.ids.len() * n_scores]; n_parts];
        }
    }
}

/// Adds the slopes of consecutive rows, those of each place.
fn sum_slopes(places: &Places, first: usize, slopes: &[f64], n_scores: usize, sums: &mut [f64]) {
    let range = first..first + slopes.len() / n_scores;
    sums.fill(0.0);
    on_places!(places, range, places => match n_scores {
        1 => places.zip(slopes).for_each(|(place, slope)| sums[place] += slope),
        _ => for (place, slopes) in places.zip(slopes.chunks_exact(n_scores)) {
            let of_place = &mut sums[place * n_scores..][..n_scores];
            of_place.iter_mut().zip(slopes).for_each(|(sum, slope)| *sum += slope);
        }
    });
}
