//! Solve systems of equations with a symmetric positive definite matrix.

use super::dot;
use ndarray::Array2;

/// The Cholesky factor of a positive definite matrix, in its lower half; squares on the diagonal
/// are at least `least`.
pub(crate) fn factorise(matrix: &mut Array2<f64>, least: f64) {
    let n = matrix.nrows();
    let values = matrix.as_slice_mut().expect("made by rows");
    for row in 0..n {
        let (above, line) = values.split_at_mut(row * n);
        let line = &mut line[..n];
        for column in 0..row {
            let other = &above[column * n..][..=column];
            line[column] = (line[column] - dot(&line[..column], &other[..column])) / other[column];
        }
        let rest = line[row] - dot(&line[..row], &line[..row]);
        line[row] = rest.max(least).sqrt();
    }
}

/// Solves L L' x = b in place of b.
pub(crate) fn solve(factor: &Array2<f64>, b: &mut [f64]) {
    let lines = || factor.rows().into_iter().map(|line| line.to_slice().expect("made by rows"));
    for (row, line) in lines().enumerate() {
        b[row] = (b[row] - dot(&line[..row], &b[..row])) / line[row];
    }
    for (row, line) in lines().enumerate().rev() {
        b[row] /= line[row];
        let x = b[row];
        b[..row].iter_mut().zip(line).for_each(|(b, l)| *b -= x * l);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solves_what_it_should() {
        let a = ndarray::array![[4.0, 2.0, 0.5], [2.0, 3.0, -1.0], [0.5, -1.0, 2.0]];
        let x = [1.0, -2.0, 0.5];
        let mut b: Vec<f64> =
            a.rows().into_iter().map(|line| line.iter().zip(&x).map(|(a, x)| a * x).sum()).collect();
        let mut factor = a.clone();
        factorise(&mut factor, 1e-9);
        solve(&factor, &mut b);
        assert!(b.iter().zip(&x).all(|(got, expected)| (got - expected).abs() < 1e-12), "{b:?}");
    }
}
