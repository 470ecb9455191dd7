//! Times L-BFGS on the files that `sparse_linear.py` writes: `sparse-linear FOLDER L2 ITERATIONS…` prints, as JSON, for each number of iterations the
//! seconds that a fit took and their number, and the peak memory of the process in kB.

use easyllp::method::Supervised;
use easyllp::train::Aim;
use easyllp::{
    Rows,
    loss::LossName,
    model::LinearModel,
    optim::Lbfgs,
    rows::Csr,
    train::{Optimizer, Trainer},
};
use ndarray::Array2;
use std::error::Error;
use std::path::Path;
use std::time::Instant;

#[expect(clippy::print_stdout, reason = "the result")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, l2, iterations @ ..] = &arguments[..] else {
        return Err("usage: sparse-linear FOLDER L2 ITERATIONS…".into());
    };
    let (folder, l2) = (Path::new(folder), l2.parse()?);
    let labels = numbers(&folder.join("labels"), u32::from_le_bytes)?;
    let rows = rows(folder, labels.len())?;
    let loss = LossName::Logistic.training()?;
    let mut found = Vec::new();
    for max_iterations in iterations {
        let lbfgs =
            Lbfgs { l2, max_iterations: max_iterations.parse()?, tolerance: 1e-15, ..Lbfgs::default() };
        let trainer = Trainer { optimizer: Optimizer::Lbfgs(lbfgs), seed: 1 };
        let started = Instant::now();
        let mut model = LinearModel::for_rows(&rows, 2)?;
        let log = trainer.fit(&mut model, &rows, Aim::Targets(&mut Supervised::new(&labels, 2)?, loss))?;
        found.push(format!("[{}, {}]", started.elapsed().as_secs_f64(), log.epochs.len()));
    }
    println!("{{\"found\": [{}], \"peak\": {}}}", found.join(", "), peak_memory()?);
    Ok(())
}

/// A sparse matrix, or numbers and codes, by which files there are.
fn rows(folder: &Path, n_rows: usize) -> Result<Rows<'static>, Box<dyn Error>> {
    let shape = numbers(&folder.join("shape"), u32::from_le_bytes)?;
    if let [n_columns] = shape[..] {
        let starts = numbers(&folder.join("starts"), u64::from_le_bytes)?;
        let starts = starts.into_iter().map(usize::try_from).collect::<Result<Vec<_>, _>>()?;
        let columns = numbers(&folder.join("columns"), u32::from_le_bytes)?;
        let values = numbers(&folder.join("values"), f32::from_le_bytes)?;
        return Ok(Rows::sparse(Csr::new(n_columns as usize, starts, columns, values)?));
    }
    let [n_dense, n_fields, n_buckets] = shape[..] else {
        return Err("a shape of one or three numbers".into());
    };
    let dense = numbers(&folder.join("values"), f32::from_le_bytes)?;
    let codes = numbers(&folder.join("columns"), u32::from_le_bytes)?;
    Ok(Rows::new(
        Array2::from_shape_vec((n_rows, n_dense as usize), dense)?,
        Array2::from_shape_vec((n_rows, n_fields as usize), codes)?,
        vec![n_buckets; n_fields as usize],
    )?)
}

fn numbers<T, const N: usize>(file: &Path, from: fn([u8; N]) -> T) -> Result<Vec<T>, Box<dyn Error>> {
    let bytes = std::fs::read(file)?;
    Ok(bytes.as_chunks::<N>().0.iter().map(|bytes| from(*bytes)).collect())
}

/// In kB, where the system tells it.
fn peak_memory() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.map(str::parse).transpose()?.unwrap_or(0))
}
