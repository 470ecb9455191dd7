//! The numbers of a model and their gradient, in blocks: what a model shares with an optimiser.

use ndarray::Array2;

/// How a block's gradient comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Updates {
    /// Every batch touches every number.
    Dense,
    /// A batch touches a few lines, those of the categories in it: the cost follows them and not the table.
    Touched,
}

/// One matrix of parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// What the block is, as stored and shown.
    pub name: &'static str,
    /// The parameters.
    pub values: Array2<f32>,
    /// How its gradient comes.
    pub updates: Updates,
    /// Whether weight decay and l2 apply: to weights, not to intercepts.
    pub decays: bool,
}

/// All parameters of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters(pub Vec<Block>);

impl Parameters {
    /// How many numbers there are.
    pub fn len(&self) -> usize {
        self.0.iter().map(|block| block.values.len()).sum()
    }

    /// Whether there is nothing to learn.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A gradient of zeros, of the same form.
    pub fn zero_gradient(&self) -> Gradient {
        Gradient(
            self.0
                .iter()
                .map(|block| match block.updates {
                    Updates::Dense => BlockGradient::Dense(Array2::zeros(block.values.dim())),
                    Updates::Touched => {
                        BlockGradient::Touched(Touched::new(block.values.nrows(), block.values.ncols()))
                    }
                })
                .collect(),
        )
    }
}

/// A gradient, block by block.
#[derive(Debug, Clone)]
pub struct Gradient(pub(crate) Vec<BlockGradient>);

#[derive(Debug, Clone)]
pub(crate) enum BlockGradient {
    Dense(Array2<f32>),
    Touched(Touched),
}

impl Gradient {
    /// The gradient of a dense block.
    ///
    /// # Panics
    ///
    /// If the block's lines are touched one by one.
    pub fn dense_mut(&mut self, block: usize) -> &mut Array2<f32> {
        match &mut self.0[block] {
            BlockGradient::Dense(values) => values,
            BlockGradient::Touched(_) => panic!("block {block} has a gradient of touched lines"),
        }
    }

    /// The gradient of a block whose lines are touched one by one.
    ///
    /// # Panics
    ///
    /// If the block is dense.
    pub fn touched_mut(&mut self, block: usize) -> &mut Touched {
        match &mut self.0[block] {
            BlockGradient::Touched(lines) => lines,
            BlockGradient::Dense(_) => panic!("block {block} has a dense gradient"),
        }
    }

    /// Back to zero, at the cost of what was touched.
    pub(crate) fn clear(&mut self) {
        for block in &mut self.0 {
            match block {
                BlockGradient::Dense(values) => values.fill(0.0),
                BlockGradient::Touched(lines) => lines.clear(),
            }
        }
    }

    /// Adds another gradient of the same form.
    pub(crate) fn add(&mut self, other: &Self) {
        for (block, other) in self.0.iter_mut().zip(&other.0) {
            match (block, other) {
                (BlockGradient::Dense(values), BlockGradient::Dense(other)) => *values += other,
                (BlockGradient::Touched(lines), BlockGradient::Touched(other)) => {
                    other.iter().for_each(|(line, values)| lines.add(line, values));
                }
                _ => unreachable!("gradients of one model have one form"),
            }
        }
    }

    /// The sum of all squares.
    pub(crate) fn squared_norm(&self) -> f64 {
        let square = |values: &[f32]| values.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>();
        self.0
            .iter()
            .map(|block| match block {
                BlockGradient::Dense(values) => values.as_slice().map_or(0.0, square),
                BlockGradient::Touched(lines) => square(&lines.values),
            })
            .sum()
    }
}

/// Gradients of the lines of a table that a batch touched, in the order of their first touch.
#[derive(Debug, Clone)]
pub struct Touched {
    width: usize,
    lines: Vec<u32>,
    values: Vec<f32>,
    /// For each line of the table its place in `lines`, or [`Self::UNTOUCHED`].
    places: Vec<u32>,
}

impl Touched {
    const UNTOUCHED: u32 = u32::MAX;

    fn new(n_lines: usize, width: usize) -> Self {
        Self { width, lines: Vec::new(), values: Vec::new(), places: vec![Self::UNTOUCHED; n_lines] }
    }

    /// Adds to the gradient of a line, one value a column.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "there are no more touched lines than u32 line numbers"
    )]
    pub fn add(&mut self, line: u32, values: &[f32]) {
        debug_assert_eq!(values.len(), self.width);
        let place = &mut self.places[line as usize];
        if *place == Self::UNTOUCHED {
            *place = self.lines.len() as u32;
            self.lines.push(line);
            self.values.extend_from_slice(values);
        } else {
            let start = *place as usize * self.width;
            self.values[start..start + self.width]
                .iter_mut()
                .zip(values)
                .for_each(|(sum, value)| *sum += value);
        }
    }

    /// The touched lines and their gradients.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[f32])> {
        self.lines.iter().copied().zip(self.values.chunks_exact(self.width))
    }

    fn clear(&mut self) {
        for &line in &self.lines {
            self.places[line as usize] = Self::UNTOUCHED;
        }
        self.lines.clear();
        self.values.clear();
    }
}
