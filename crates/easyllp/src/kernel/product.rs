//! Matrix products through the `gemm` crate, on one thread: parallelism is the caller's, over fixed chunks of rows, so
//! that results do not depend on the number of threads.

use gemm_common::Parallelism;
use ndarray::{ArrayView2, ArrayViewMut2, LinalgScalar};

/// What a product does with what is in its output already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Onto {
    Overwrite,
    Add,
}

/// The element types that products are compiled for.
pub(crate) trait Element: LinalgScalar + Send + Sync {
    /// The product for the widest vectors of this machine.
    fn routine() -> Routine<Self>;
}

impl Element for f32 {
    fn routine() -> Routine<Self> {
        gemm_f32::gemm::f32::get_gemm_fn()
    }
}

impl Element for f64 {
    fn routine() -> Routine<Self> {
        gemm_f64::gemm::f64::get_gemm_fn()
    }
}

/// m, n, k; the output by column and row strides, and whether it is added to; both factors, likewise; the factors of the
/// output and of the product; which of the three are conjugated, if they are complex; threads.
type Routine<T> = unsafe fn(
    usize,
    usize,
    usize,
    *mut T,
    isize,
    isize,
    bool,
    *const T,
    isize,
    isize,
    *const T,
    isize,
    isize,
    T,
    T,
    bool,
    bool,
    bool,
    Parallelism,
);

/// `out = lhs · rhs`, or `out += lhs · rhs`; m × k times k × n, any strides.
pub(crate) fn product<T: Element>(
    lhs: ArrayView2<T>,
    rhs: ArrayView2<T>,
    onto: Onto,
    mut out: ArrayViewMut2<T>,
) {
    let (m, k) = lhs.dim();
    let n = rhs.ncols();
    assert_eq!(rhs.nrows(), k, "inner dimensions of a product");
    assert_eq!(out.dim(), (m, n), "outer dimensions of a product");
    if k == 0 {
        if onto == Onto::Overwrite {
            out.fill(T::zero());
        }
        return;
    }
    // The routine wants lines of the output to be columns: of the transposed product, if they are rows.
    let [down, across] = strides(out.strides());
    if across < down {
        by_columns(rhs.reversed_axes(), lhs.reversed_axes(), onto, out.reversed_axes());
    } else {
        by_columns(lhs, rhs, onto, out);
    }
}

fn by_columns<T: Element>(lhs: ArrayView2<T>, rhs: ArrayView2<T>, onto: Onto, mut out: ArrayViewMut2<T>) {
    let ((m, k), n) = (lhs.dim(), rhs.ncols());
    let (of_lhs, of_rhs) = (strides(lhs.strides()), strides(rhs.strides()));
    let of_out = strides(out.strides());
    let sequential = Parallelism::None;
    #[expect(unsafe_code, reason = "gemm takes raw pointers")]
    // SAFETY: the three views are of the shapes that `product` asserts, each pointer comes with its own view's strides,
    // none of which is negative, and `out` is borrowed mutably, so it overlaps neither input.
    unsafe {
        T::routine()(
            m,
            n,
            k,
            out.as_mut_ptr(),
            of_out[1],
            of_out[0],
            onto == Onto::Add,
            lhs.as_ptr(),
            of_lhs[1],
            of_lhs[0],
            rhs.as_ptr(),
            of_rhs[1],
            of_rhs[0],
            T::one(),
            T::one(),
            false,
            false,
            false,
            sequential,
        );
    }
}

fn strides(of: &[isize]) -> [isize; 2] {
    assert!(of[0] >= 0 && of[1] >= 0, "a factor of a product runs backward");
    [of[0], of[1]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, s};
    use proptest::prelude::*;

    #[expect(clippy::cast_possible_truncation, reason = "what f32 holds exactly")]
    fn single(matrix: &Array2<f64>) -> Array2<f32> {
        matrix.mapv(|value| value as f32)
    }

    fn numbers(m: usize, n: usize, seed: usize) -> Array2<f64> {
        Array2::from_shape_fn((m, n), |(i, j)| (((i * 31 + j * 17 + seed * 7) % 23) as f64 - 11.0) / 8.0)
    }

    proptest! {
        /// The plain triple loop is the oracle; sizes include 0, 1 and non-multiples of any vector width.
        #[test]
        fn equals_the_triple_loop(m in 0_usize..20, k in 0_usize..40, n in 0_usize..10, layout in 0..4, add in any::<bool>()) {
            let lhs = if layout & 1 == 0 { numbers(m, k, 1) } else { numbers(k, m, 1).reversed_axes() };
            let rhs = if layout & 2 == 0 { numbers(k, n, 2) } else { numbers(2 * k, n, 2).slice_move(s![..;2, ..]) };
            let before = numbers(m, n, 3);
            let mut expected = if add { before.clone() } else { Array2::zeros((m, n)) };
            for ((i, j), value) in expected.indexed_iter_mut() {
                *value += (0..k).map(|l| lhs[[i, l]] * rhs[[l, j]]).sum::<f64>();
            }
            let mut out = before;
            let onto = if add { Onto::Add } else { Onto::Overwrite };
            product(lhs.view(), rhs.view(), onto, out.view_mut());
            for (got, expected) in out.iter().zip(&expected) {
                prop_assert!((got - expected).abs() < 1e-9);
            }
            // Numbers are multiples of 1/8, and so few of them have exact sums.
            let mut out = single(&numbers(m, n, 3));
            product(single(&lhs).view(), single(&rhs).view(), onto, out.view_mut());
            prop_assert_eq!(out.mapv(f64::from), expected);
        }
    }
}
