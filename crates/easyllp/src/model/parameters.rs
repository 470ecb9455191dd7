//! A model's parameters and their gradient, in blocks: the interface between models and optimizers.

use crate::error::{Error, Result, check_length};
use crate::rows::RowBuffer;
use ndarray::{Array2, ArrayView2};
use std::borrow::Cow;

/// How a block's gradient is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Updates {
    /// Every batch changes every value.
    Dense,
    /// Every batch changes every value, and the block is multiplied by the rows' dense features.
    /// The gradient is the product of these features with the derivative in the result; the
    /// optimizer computes it a few lines at a time.
    OfRows,
    /// A batch changes only the lines of its categories: the cost depends on these and not on the
    /// table.
    Touched,
}

/// One matrix of parameters, contiguous by lines.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    pub(crate) name: Cow<'static, str>,
    pub(crate) values: Array2<f32>,
    pub(crate) updates: Updates,
    pub(crate) decays: bool,
}

impl Block {
    /// Creates a named block of parameters; the name is used in files and messages. `decays` says
    /// whether weight decay and the L2 penalty apply: they do for weights, not for intercepts.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        values: Array2<f32>,
        updates: Updates,
        decays: bool,
    ) -> Self {
        // A table as it should be is kept as it lies, and not copied.
        let values =
            if values.is_standard_layout() { values } else { values.as_standard_layout().into_owned() };
        Self { name: name.into(), values, updates, decays }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How the gradient is stored.
    pub fn updates(&self) -> Updates {
        self.updates
    }

    /// The parameters.
    pub fn values(&self) -> ArrayView2<'_, f32> {
        self.values.view()
    }

    /// Replaces the parameters by others of the same shape, all finite.
    pub fn set(&mut self, values: ArrayView2<f32>) -> Result<()> {
        check_length("lines of a block", self.values.nrows(), values.nrows())?;
        check_length("columns of a block", self.values.ncols(), values.ncols())?;
        if let Some(((line, column), &value)) = values.indexed_iter().find(|(_, value)| !value.is_finite()) {
            let block = self.name.clone().into_owned();
            return Err(Error::ParameterNotFinite { block, line, column, value });
        }
        self.values.assign(&values);
        Ok(())
    }
}

/// All parameters of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters(pub(crate) Vec<Block>);

impl Parameters {
    /// Creates parameters from blocks, in this order.
    pub fn new(blocks: Vec<Block>) -> Self {
        Self(blocks)
    }

    /// The blocks, in order.
    pub fn blocks(&self) -> &[Block] {
        &self.0
    }

    /// The blocks, for writing.
    pub fn blocks_mut(&mut self) -> &mut [Block] {
        &mut self.0
    }

    /// The number of parameters.
    pub fn len(&self) -> usize {
        self.0.iter().map(|block| block.values.len()).sum()
    }

    /// Whether there are no parameters.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A gradient of zeros, of the same form.
    pub fn zero_gradient(&self) -> Gradient {
        let of_block = |block: &Block| match block.updates {
            Updates::Dense => BlockGradient::Dense(Array2::zeros(block.values.dim())),
            Updates::OfRows => BlockGradient::OfRows(Vec::new()),
            Updates::Touched => BlockGradient::Touched(Touched::new(block.values.ncols())),
        };
        Gradient { blocks: self.0.iter().map(of_block).collect(), rows: RowBuffer::default(), n_rows: 0 }
    }
}

/// A gradient, by block.
#[derive(Debug, Clone)]
pub struct Gradient {
    pub(crate) blocks: Vec<BlockGradient>,
    /// The batch, for blocks whose gradient is a product with its features.
    pub(crate) rows: RowBuffer,
    /// The number of rows of the batch.
    pub(crate) n_rows: usize,
}

#[derive(Debug, Clone)]
pub(crate) enum BlockGradient {
    Dense(Array2<f32>),
    /// The derivative in the product of features and block, a line per row.
    OfRows(Vec<f32>),
    Touched(Touched),
}

#[cfg(test)]
impl BlockGradient {
    /// The gradient of a block of this shape; touched lines are added up.
    pub(crate) fn to_matrix(&self, shape: (usize, usize)) -> Array2<f32> {
        match self {
            Self::Dense(values) => values.clone(),
            Self::OfRows(_) => unimplemented!("Adam's tests multiply it out"),
            Self::Touched(lines) => {
                let mut values = Array2::zeros(shape);
                for (line, of_line) in lines.iter() {
                    let mut values = values.row_mut(line as usize);
                    values += &ndarray::aview1(of_line);
                }
                values
            }
        }
    }
}

impl Gradient {
    /// The gradient of a dense block.
    ///
    /// # Panics
    ///
    /// If the block's gradient is not of this kind.
    pub fn dense_mut(&mut self, block: usize) -> &mut Array2<f32> {
        match &mut self.blocks[block] {
            BlockGradient::Dense(values) => values,
            _ => panic!("block {block} has a gradient of another form"),
        }
    }

    /// The derivative in the product of the rows' dense features and a block, a line per row.
    ///
    /// # Panics
    ///
    /// If the block's gradient is not of this kind.
    pub fn of_rows_mut(&mut self, block: usize) -> &mut Vec<f32> {
        match &mut self.blocks[block] {
            BlockGradient::OfRows(derivative) => derivative,
            _ => panic!("block {block} has a gradient of another form"),
        }
    }

    /// The gradient of a block with touched lines.
    ///
    /// # Panics
    ///
    /// If the block's gradient is not of this kind.
    pub fn touched_mut(&mut self, block: usize) -> &mut Touched {
        match &mut self.blocks[block] {
            BlockGradient::Touched(lines) => lines,
            _ => panic!("block {block} has a gradient of another form"),
        }
    }

    /// Clears touched lines; dense blocks are kept, to be overwritten.
    pub(crate) fn clear_touched(&mut self) {
        for block in &mut self.blocks {
            if let BlockGradient::Touched(lines) = block {
                lines.lines.clear();
            }
        }
    }
}

/// Gradients of the lines of a table that a batch touched, in order; a line may occur more than
/// once.
#[derive(Debug, Clone, Default)]
pub struct Touched {
    width: usize,
    lines: Vec<u32>,
    /// As many as lines ask for, and what is left of earlier batches.
    values: Vec<f32>,
}

impl Touched {
    fn new(width: usize) -> Self {
        Self { width, lines: Vec::new(), values: Vec::new() }
    }

    /// Adds to the gradient of a line, one value per column.
    pub fn add(&mut self, line: u32, values: &[f32]) {
        self.extend(std::iter::once(line)).copy_from_slice(values);
    }

    /// Touches some lines and returns the buffer of their gradients: one after the other, one value
    /// per column.
    pub fn extend(&mut self, lines: impl Iterator<Item = u32>) -> &mut [f32] {
        let start = self.lines.len() * self.width;
        self.lines.extend(lines);
        let end = self.lines.len() * self.width;
        if self.values.len() < end {
            self.values.resize(end, 0.0);
        }
        &mut self.values[start..end]
    }

    /// The touched lines with their gradients.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[f32])> {
        self.lines.iter().copied().zip(self.values.chunks_exact(self.width))
    }

    /// The touched lines.
    pub(crate) fn lines(&self) -> &[u32] {
        &self.lines
    }

    /// The gradient of the touch with this index.
    pub(crate) fn gradient(&self, place: usize) -> &[f32] {
        &self.values[place * self.width..][..self.width]
    }
}
