//! Networks written with [Burn](https://burn.dev), as models.
//!
//! `Parameters` hold the trained values; the module computes. After the values change, the next
//! pass copies them into a module without a graph, which all threads share. A training pass makes a
//! training module whose parameters are new leaves. Each chunk of a batch has its own graph, so
//! threads do not wait for each other.

use super::fields::Fields;
use super::{Block, Gradient, Model, Parameters, Pass, Updates};
use crate::classes::{check_classes, n_columns};
use crate::error::{Error, Result, check_length};
use crate::rows::{RowBatch, Rows};
use burn::module::{Flag, Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Device, Gradients, Int, Tensor, TensorData};
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, OnceLock, PoisonError};

/// A new module is checked on two rows, so that scores per row can be told from a single score.
const TRIED: usize = 2;

/// Held from seeding a device until a pass has drawn its random numbers: Burn's CPU backend has one
/// random stream per process.
static DRAWS: Mutex<()> = Mutex::new(());

/// A Burn module that scores rows.
pub trait BurnScores: Module + Sync {
    /// Scores of a batch: rows × (one for two classes, else one per class). The inputs are dense
    /// features, rows × features, and category ids, rows × fields. An input without columns means
    /// that the rows have none.
    fn scores(&self, dense: Tensor<2>, categories: Tensor<2, Int>) -> Tensor<2>;
}

/// Any [Burn](https://burn.dev) module as a model: trained and evaluated like the built-in models.
///
/// ```
/// use burn::module::Module;
/// use burn::nn::{Linear, LinearConfig};
/// use burn::tensor::{Device, Int, Tensor, activation::silu};
/// use easyllp::{Rows, model::{BurnModel, BurnScores, Model, Scorer}};
///
/// #[derive(Module, Debug)]
/// struct Net {
///     hidden: Linear,
///     out: Linear,
/// }
///
/// impl BurnScores for Net {
///     fn scores(&self, dense: Tensor<2>, _categories: Tensor<2, Int>) -> Tensor<2> {
///         self.out.forward(silu(self.hidden.forward(dense)))
///     }
/// }
///
/// let device = Device::flex();
/// device.seed(1); // Burn draws the first weights
/// let net = Net {
///     hidden: LinearConfig::new(2, 8).init(&device),
///     out: LinearConfig::new(8, 1).init(&device), // one score: two classes
/// };
/// let rows = Rows::dense(ndarray::array![[1.0_f32, 2.0], [0.0, 1.0]])?;
/// let model = BurnModel::for_rows(net, &rows, 2)?;
/// assert_eq!(model.parameters().blocks()[0].name(), "hidden.weight");
/// assert_eq!(model.scores(&rows)?.dim(), (2, 1));
/// # Ok::<(), easyllp::Error>(())
/// ```
///
/// Each parameter is a block, named by its path in the module: its first dimension × the rest.
/// One-dimensional parameters (biases, scales of norms) are one line, and have no weight decay.
/// Parameters with the same id are shared; those without a gradient are not trained. Adam and
/// averaged weights work as for other models. [`module`](Self::module) returns the trained module,
/// to be saved by Burn.
///
/// Your crate must depend on Burn: `burn = { version = "0.22", default-features = false, features =
/// ["std", "flex"] }`. Burn's default features would run each operation on several threads, but
/// chunks of a batch are parallel already.
///
/// Without them, bytes do not depend on the number of threads. For this a module with dropout seeds
/// its device before each training pass, and such passes run one at a time. Random numbers that no
/// [`Flag`] declares are not seeded.
///
/// # On a GPU
///
/// A model computes on its module's device. Add a backend to Burn's features in your `Cargo.toml`
/// (`wgpu`, `cuda`, `metal`, `vulkan` or `rocm`), and create the module on its device:
/// `Device::wgpu(Default::default())`, `Device::cuda(0)` and so on. GPUs are untested. Bytes may
/// differ from run to run, and the speed-up may be small: parameters and gradients pass through
/// main memory in each step, and a batch is computed in chunks of 128 rows.
#[derive(Clone)]
pub struct BurnModel<M> {
    /// Without a graph; its parameters may be outdated.
    module: M,
    /// With the current parameters, created on demand.
    loaded: OnceLock<M>,
    device: Device,
    parameters: Parameters,
    /// The block of each parameter.
    places: HashMap<ParamId, usize>,
    /// Whether training passes draw random numbers.
    draws: bool,
    n_dense: usize,
    fields: Fields,
    n_scores: usize,
}

impl<M: fmt::Debug> fmt::Debug for BurnModel<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.parameters.blocks().iter().map(Block::name).collect();
        f.debug_struct("BurnModel")
            .field("module", &self.module)
            .field("parameters", &names)
            .finish_non_exhaustive()
    }
}

impl<M: BurnScores> BurnModel<M> {
    /// Creates a model for rows of this shape.
    pub fn for_rows(module: M, rows: &Rows, n_classes: usize) -> Result<Self> {
        Self::new(module, rows.n_dense(), rows.cardinalities(), n_classes)
    }

    /// Creates a model for rows with `n_dense` features and fields with these numbers of
    /// categories. The module is checked on two rows of zeros.
    pub fn new(module: M, n_dense: usize, cardinalities: &[u32], n_classes: usize) -> Result<Self> {
        check_classes(n_classes)?;
        let fields = Fields::new(cardinalities)?;
        // Asked for one, every parameter takes a gradient; what then takes none is no parameter.
        let mut buffers = Buffers::default();
        module.clone().train().set_require_grad(true).visit(&mut buffers);
        if let Some(name) = buffers.first {
            return Err(Error::ModuleBuffer { name });
        }
        let mut found = Found::default();
        module.clone().train().visit(&mut found);
        if let Some(error) = found.error {
            return Err(error);
        }
        let Some(device) = module.devices().first().filter(|_| !found.blocks.is_empty()).cloned() else {
            return Err(Error::NothingToLearn);
        };
        let model = Self {
            module: module.valid(),
            loaded: OnceLock::new(),
            device: device.without_autodiff(),
            parameters: Parameters::new(found.blocks),
            places: found.places,
            draws: found.draws,
            n_dense,
            fields,
            n_scores: n_columns(n_classes),
        };
        model.try_out()?;
        Ok(model)
    }

    /// Runs a training pass on two rows of zeros and checks the shape of the scores.
    fn try_out(&self) -> Result<()> {
        let dense = Array2::zeros((TRIED, self.n_dense));
        let categories = Array2::zeros((TRIED, self.fields.len()));
        let rows = RowBatch { dense: dense.view(), categories: categories.view() };
        // Burn says by panics what does not fit together.
        let attempt = AssertUnwindSafe(|| {
            let scores = self.run_to_learn(&self.module.clone().train(), &rows, None);
            (scores.dims(), scores.is_tracked())
        });
        let (dims, learns) =
            catch_unwind(attempt).map_err(|panic| Error::ModuleFailed { reason: message(&*panic) })?;
        check_length("rows of the module's scores for two rows", TRIED, dims[0])?;
        check_length("scores that the module gives a row", self.n_scores, dims[1])?;
        if learns { Ok(()) } else { Err(Error::NothingToLearn) }
    }

    /// The module with the current parameters, without a graph.
    pub fn module(&self) -> &M {
        self.loaded.get_or_init(|| {
            self.module.clone().map(&mut Loader { blocks: self.parameters.blocks(), places: &self.places })
        })
    }

    fn run(&self, module: &M, rows: &RowBatch, device: &Device) -> Tensor<2> {
        let dense = rows.dense.iter().copied().collect();
        let ids = rows.categories.iter().map(|&id| i64::from(id)).collect();
        let dense = TensorData::new::<f32, _>(dense, [rows.n_rows(), self.n_dense]);
        let categories = TensorData::new::<i64, _>(ids, [rows.n_rows(), self.fields.len()]);
        module.scores(Tensor::from_data(dense, device), Tensor::from_data(categories, device))
    }

    /// Scores with their graph. Without a `draw` the device keeps the caller's seed.
    fn run_to_learn(&self, module: &M, rows: &RowBatch, draw: Option<u64>) -> Tensor<2> {
        let device = self.device.clone().autodiff();
        // A pass that panicked has left nothing behind that the next seeding does not mend.
        let _drawing = self.draws.then(|| DRAWS.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(draw) = draw.filter(|_| self.draws) {
            device.seed(draw);
        }
        self.run(module, rows, &device)
    }
}

/// What [`BurnModel`] keeps from `forward` to `backward`: the training module and its scores.
#[derive(Debug)]
pub struct BurnTape<M>(Option<(M, Tensor<2>)>);

impl<M> Default for BurnTape<M> {
    fn default() -> Self {
        Self(None)
    }
}

impl<M: BurnScores> Model for BurnModel<M> {
    type Tape = BurnTape<M>;

    fn n_scores(&self) -> usize {
        self.n_scores
    }

    fn check(&self, rows: &Rows) -> Result<()> {
        rows.dense_only("a module of Burn")?;
        check_length("dense features", self.n_dense, rows.n_dense())?;
        self.fields.check(rows)
    }

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut Parameters {
        self.loaded.take();
        &mut self.parameters
    }

    fn forward(&self, rows: &RowBatch, pass: Pass, tape: &mut BurnTape<M>, mut scores: ArrayViewMut2<f32>) {
        let module = self.module();
        let got = match pass {
            Pass::Score => self.run(module, rows, &self.device),
            Pass::Learn { draw } => {
                let module = module.clone().train();
                let scores = self.run_to_learn(&module, rows, Some(draw));
                tape.0.insert((module, scores)).1.clone()
            }
        };
        let dims = [rows.n_rows(), self.n_scores];
        assert_eq!(got.dims(), dims, "a module gives each row as many scores as on two rows of zeros");
        scores.assign(&ArrayView2::from_shape(dims, &numbers(got)).expect("as many as the dimensions say"));
    }

    fn backward(
        &self,
        rows: &RowBatch,
        tape: &mut BurnTape<M>,
        dscores: ArrayView2<f32>,
        gradient: &mut Gradient,
    ) {
        let (module, scores) = tape.0.take().expect("a pass to learn comes before");
        let dscores =
            TensorData::new::<f32, _>(dscores.iter().copied().collect(), [rows.n_rows(), self.n_scores]);
        let dscores = Tensor::from_data(dscores, &self.device.clone().autodiff());
        let gradients = (scores * dscores).sum().backward();
        for block in self.places.values() {
            gradient.dense_mut(*block).fill(0.0);
        }
        module.visit(&mut Writer { gradients, places: &self.places, gradient });
    }
}

/// A tensor's numbers, in order.
fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.try_into_vec_as().expect("a device hands out what it computed")
}

/// The message of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Finds values of a module that take no gradient.
#[derive(Default)]
struct Buffers {
    path: Vec<String>,
    first: Option<String>,
}

impl ModuleVisitor for Buffers {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if !param.base().is_require_grad() {
            self.first.get_or_insert_with(|| self.path.join("."));
        }
    }
}

/// Creates a block for each trainable parameter.
#[derive(Default)]
struct Found {
    path: Vec<String>,
    blocks: Vec<Block>,
    places: HashMap<ParamId, usize>,
    draws: bool,
    error: Option<Error>,
}

impl Found {
    fn add<const D: usize>(&mut self, id: ParamId, tensor: Tensor<D>) -> Result<()> {
        let dims = tensor.dims();
        let n_numbers = dims.iter().product();
        if let Some(&block) = self.places.get(&id) {
            return check_length("numbers of a shared parameter", self.blocks[block].values.len(), n_numbers);
        }
        let n_lines = if D == 1 { 1 } else { dims[0] };
        let n_columns = dims[usize::from(D > 1)..].iter().product();
        let values = Array2::from_shape_vec((n_lines, n_columns), numbers(tensor));
        let mut block =
            Block::new(self.path.join("."), Array2::zeros((n_lines, n_columns)), Updates::Dense, D > 1);
        block.set(values.expect("as many as the dimensions say").view())?;
        self.places.insert(id, self.blocks.len());
        self.blocks.push(block);
        Ok(())
    }
}

impl ModuleVisitor for Found {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tensor = param.base();
        if self.error.is_none() && tensor.is_require_grad() {
            self.error = self.add(param.id, tensor).err();
        }
    }

    fn visit_flag(&mut self, flag: &Param<Flag>) {
        self.draws |= flag.is_enabled();
    }
}

/// Copies blocks into a module.
struct Loader<'l> {
    blocks: &'l [Block],
    places: &'l HashMap<ParamId, usize>,
}

impl ModuleMapper for Loader<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(&place) = self.places.get(&param.id) else {
            return param;
        };
        let values = self.blocks[place].values.as_slice().expect("parameters are contiguous").to_vec();
        param.map(|tensor| {
            let values = TensorData::new(values, tensor.dims());
            Tensor::from_data(values, (&tensor.device(), tensor.dtype()))
        })
    }
}

/// Adds the gradients of a module's parameters to blocks. A parameter may be shared, or have no
/// gradient.
struct Writer<'w> {
    gradients: Gradients,
    places: &'w HashMap<ParamId, usize>,
    gradient: &'w mut Gradient,
}

impl ModuleVisitor for Writer<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(&place) = self.places.get(&param.id) else {
            return;
        };
        let Some(got) = param.base().grad_remove(&mut self.gradients) else {
            return;
        };
        for (sum, value) in self.gradient.dense_mut(place).iter_mut().zip(numbers(got)) {
            *sum += value;
        }
    }
}
