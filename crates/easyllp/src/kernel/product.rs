//! Matrix products through the `gemm` crate, on one thread: parallelism is the caller's, over fixed chunks of rows, so
//! that results do not depend on the number of threads.

use super::arch;
use super::vectors::is_widest;
use gemm_common::Parallelism;
use gemm_common::gemm::gemm_basic_generic;
use gemm_common::simd::MixedSimd;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, LinalgScalar};
use pulp::Arch;

/// What a product does with what is in its output already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Onto {
    Overwrite,
    Add,
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

/// The product for narrower vectors of this many numbers. `gemm` only exports the product for the
/// widest vectors, so this assembles it as its `gemm_def!` does. It is up to twice as slow, which
/// is acceptable for explicitly chosen vectors.
macro_rules! routine {
    ($element:ident, $kernels:path, $vectors:ident, $lanes:literal) => {{
        use $kernels as kernels;
        #[expect(
            unsafe_code,
            clippy::too_many_arguments,
            reason = "gemm takes raw pointers, and all at once"
        )]
        // SAFETY: the caller keeps to what `Routine` asks for, which is passed on as it is.
        unsafe fn routine(
            m: usize,
            n: usize,
            k: usize,
            out: *mut $element,
            out_column: isize,
            out_row: isize,
            adds: bool,
            lhs: *const $element,
            lhs_column: isize,
            lhs_row: isize,
            rhs: *const $element,
            rhs_column: isize,
            rhs_row: isize,
            of_out: $element,
            of_product: $element,
            conjugates_out: bool,
            conjugates_lhs: bool,
            conjugates_rhs: bool,
            parallelism: Parallelism,
        ) {
            use gemm_common::simd::$vectors as Vectors;
            use kernels::{H_M, H_N, H_UKR, MR_DIV_N, NR, UKR};
            let vectors = <Vectors as MixedSimd<$element, $element, $element, $element>>::try_new();
            let vectors = vectors.expect("it is chosen where the machine has it");
            // SAFETY: as above.
            unsafe {
                gemm_basic_generic::<_, $element, $lanes, { MR_DIV_N * $lanes }, NR, MR_DIV_N, H_M, H_N>(
                    vectors,
                    m,
                    n,
                    k,
                    out,
                    out_column,
                    out_row,
                    adds,
                    lhs,
                    lhs_column,
                    lhs_row,
                    rhs,
                    rhs_column,
                    rhs_row,
                    of_out,
                    of_product,
                    conjugates_out,
                    conjugates_lhs,
                    conjugates_rhs,
                    |a, b, c| a * b + c,
                    &UKR,
                    &H_UKR,
                    false,
                    parallelism,
                );
            }
        }
        routine
    }};
}

/// The element types that products are compiled for.
pub(crate) trait Element: LinalgScalar + Send + Sync {
    /// The product for these vectors.
    fn routine(arch: Arch) -> Routine<Self>;
}

impl Element for f32 {
    fn routine(arch: Arch) -> Routine<Self> {
        match arch {
            _ if is_widest(arch) => gemm_f32::gemm::f32::get_gemm_fn(),
            #[cfg(target_arch = "x86_64")]
            Arch::V3(_) => routine!(f32, gemm_f32::microkernel::fma::f32, V3, 8),
            _ => routine!(f32, gemm_f32::microkernel::scalar::f32, Scalar, 1),
        }
    }
}

impl Element for f64 {
    fn routine(arch: Arch) -> Routine<Self> {
        match arch {
            _ if is_widest(arch) => gemm_f64::gemm::f64::get_gemm_fn(),
            #[cfg(target_arch = "x86_64")]
            Arch::V3(_) => routine!(f64, gemm_f64::microkernel::fma::f64, V3, 4),
            _ => routine!(f64, gemm_f64::microkernel::scalar::f64, Scalar, 1),
        }
    }
}

/// `out = lhs · rhs`, or `out += lhs · rhs`; m × k times k × n, any strides.
pub(crate) fn product<T: Element>(lhs: ArrayView2<T>, rhs: ArrayView2<T>, onto: Onto, out: ArrayViewMut2<T>) {
    product_with(arch(), lhs, rhs, onto, out);
}

/// `lhs · rhs`, as a matrix of its own.
pub(crate) fn matrix_product(lhs: ArrayView2<f64>, rhs: ArrayView2<f64>) -> Array2<f64> {
    let mut out = Array2::zeros((lhs.nrows(), rhs.ncols()));
    product(lhs, rhs, Onto::Overwrite, out.view_mut());
    out
}

fn product_with<T: Element>(
    arch: Arch,
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
        by_columns(arch, rhs.reversed_axes(), lhs.reversed_axes(), onto, out.reversed_axes());
    } else {
        by_columns(arch, lhs, rhs, onto, out);
    }
}

fn by_columns<T: Element>(
    arch: Arch,
    lhs: ArrayView2<T>,
    rhs: ArrayView2<T>,
    onto: Onto,
    mut out: ArrayViewMut2<T>,
) {
    let ((m, k), n) = (lhs.dim(), rhs.ncols());
    let (of_lhs, of_rhs) = (strides(lhs.strides()), strides(rhs.strides()));
    let of_out = strides(out.strides());
    let sequential = Parallelism::None;
    #[expect(unsafe_code, reason = "gemm takes raw pointers")]
    // SAFETY: the three views are of the shapes that `product` asserts, each pointer comes with its own view's strides,
    // none of which is negative, and `out` is borrowed mutably, so it overlaps neither input.
    unsafe {
        T::routine(arch)(
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
    use crate::kernel::every_arch;
    use crate::rounding::Sum;
    use ndarray::s;
    use proptest::prelude::*;

    #[expect(clippy::cast_possible_truncation, reason = "what f32 holds exactly")]
    fn single(matrix: &Array2<f64>) -> Array2<f32> {
        matrix.mapv(|value| value as f32)
    }

    fn numbers(m: usize, n: usize, seed: usize) -> Array2<f64> {
        Array2::from_shape_fn((m, n), |(i, j)| (((i * 31 + j * 17 + seed * 7) % 23) as f64 - 11.0) / 8.0)
    }

    proptest! {
        /// The plain triple loop is the oracle, on every kind of vectors; sizes include 0, 1 and non-multiples of any vector width.
        #[test]
        fn equals_the_triple_loop(m in 0_usize..20, k in 0_usize..40, n in 0_usize..10, layout in 0..4, add in any::<bool>()) {
            let lhs = if layout & 1 == 0 { numbers(m, k, 1) } else { numbers(k, m, 1).reversed_axes() };
            let rhs = if layout & 2 == 0 { numbers(k, n, 2) } else { numbers(2 * k, n, 2).slice_move(s![..;2, ..]) };
            // Thirds are rounded.
            let [lhs_thirds, rhs_thirds] = [&lhs, &rhs].map(|matrix| matrix / 3.0);
            let before = numbers(m, n, 3);
            let onto = if add { Onto::Add } else { Onto::Overwrite };
            let expected = |lhs: &Array2<f64>, rhs: &Array2<f64>| Array2::from_shape_fn((m, n), |(i, j)| {
                let product = (0..k).map(|l| lhs[[i, l]] * rhs[[l, j]]);
                add.then_some(before[[i, j]]).into_iter().chain(product).collect::<Sum>()
            });
            let (exact, rounded) = (expected(&lhs, &rhs), expected(&lhs_thirds, &rhs_thirds));
            for arch in every_arch() {
                let mut out = before.clone();
                product_with(arch, lhs_thirds.view(), rhs_thirds.view(), onto, out.view_mut());
                prop_assert!(out.iter().zip(&rounded).all(|(&got, expected)| expected.equals(got)));
                // Numbers are multiples of 1/8, and so few of them have exact sums.
                let mut out = single(&before);
                product_with(arch, single(&lhs).view(), single(&rhs).view(), onto, out.view_mut());
                prop_assert_eq!(out.mapv(f64::from), exact.mapv(|sum| sum.value));
            }
        }
    }
}
