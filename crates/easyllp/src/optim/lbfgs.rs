//! L-BFGS (Nocedal & Wright 2006, algorithms 7.4, 3.5 and 3.6), in `f64`.
//!
//! This is our own implementation: it is short, and its callback borrows the point. Optimisation
//! crates require observers that own it.

use super::check_setting;
use super::vector::{Spare, add_scaled, dot, largest, scale, scaled, step, subtract};
use crate::error::{Error, Result};
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// Settings of full-batch training with L-BFGS.
#[derive(Debug, Clone, PartialEq)]
pub struct Lbfgs {
    /// The L2 penalty l2/2·‖w‖², added to the mean loss; intercepts have none. Corrected targets
    /// can make the loss unbounded below; only a positive penalty rules that out.
    pub l2: f64,
    /// Maximum number of iterations.
    pub max_iterations: usize,
    /// The number of past steps that approximate the Hessian.
    pub memory: usize,
    /// Converged if no entry of the gradient is larger, and no parameter is further from the
    /// optimum than ten times this, as far as known.
    pub tolerance: f64,
}

impl Default for Lbfgs {
    fn default() -> Self {
        Self { l2: 1e-3, max_iterations: 500, memory: 10, tolerance: 1e-7 }
    }
}

impl Lbfgs {
    pub(crate) fn check(&self) -> Result<()> {
        check_setting("l2", self.l2, self.l2 >= 0.0, "at least 0")?;
        check_setting("tolerance", self.tolerance, self.tolerance > 0.0, "positive")?;
        for (name, value) in [("number of iterations", self.max_iterations), ("memory", self.memory)] {
            if value == 0 {
                return Err(Error::Setting { name, value: "0".into(), expected: "at least 1" });
            }
        }
        Ok(())
    }
}

/// How a minimisation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The gradient is below the tolerance.
    Converged,
    /// No step along the search direction improves the value: the limit of rounding.
    Flat,
    /// The maximum number of iterations is reached.
    Iterations,
    /// The callback stopped it.
    Caller,
    /// The value is unbounded below or not finite; the point is the last finite one.
    Unbounded,
}

/// A point with its value and gradient.
struct Place {
    point: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

/// A finished iteration, for the callback.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Taken {
    /// The iteration, from 1.
    pub(crate) iteration: usize,
    /// The value of the function.
    pub(crate) value: f64,
    /// The estimated number of remaining iterations, if the gradient keeps falling at its rate.
    pub(crate) left: Option<usize>,
}

/// Multiplies a vector by an inverse Hessian.
pub(crate) type Divide<'d> = &'d dyn Fn(&mut [f64]);

/// Minimises a smooth function from `point`, which becomes the best point found.
///
/// `function` writes the gradient and returns the value; `watch` is called after each iteration.
/// `divide` multiplies a vector by the approximate inverse Hessian, if one is known.
pub(crate) fn minimise(
    settings: &Lbfgs,
    point: &mut Vec<f64>,
    mut function: impl FnMut(&[f64], &mut [f64]) -> f64,
    divide: Option<Divide>,
    mut watch: impl FnMut(Taken) -> ControlFlow<()>,
) -> End {
    let mut spare = Spare::new(point.len());
    let mut here = Place { point: std::mem::take(point), value: 0.0, gradient: spare.take() };
    here.value = function(&here.point, &mut here.gradient);
    let first_slope = largest(&here.gradient);
    let mut past: VecDeque<Pair> = VecDeque::new();
    let mut direction = spare.take();
    let mut end = if here.value.is_finite() { End::Iterations } else { End::Unbounded };
    for iteration in 1..=settings.max_iterations {
        if end != End::Iterations {
            break;
        }
        if largest(&here.gradient) <= settings.tolerance
            && is_near(&here.gradient, settings.tolerance, divide, &mut direction)
        {
            end = End::Converged;
            break;
        }
        descent(&here.gradient, &past, divide, &mut direction);
        if dot(&direction, &here.gradient) >= 0.0 {
            forget(&mut past, &mut spare);
            descent(&here.gradient, &past, divide, &mut direction);
        }
        // Without a past and without a Hessian the direction has no length of its own: begin with a step of one.
        let has_length = !past.is_empty() || divide.is_some();
        let first = if has_length { 1.0 } else { 1.0 / dot(&direction, &direction).sqrt().max(1e-300) };
        match line_search(&here, &direction, first, &mut function, &mut spare) {
            Ok(next) => {
                if let Some(pair) = Pair::between(&here, &next, divide, &mut spare) {
                    past.push_back(pair);
                }
                if past.len() > settings.memory
                    && let Some(oldest) = past.pop_front()
                {
                    spare.give([oldest.step, oldest.change]);
                }
                let before = std::mem::replace(&mut here, next);
                spare.give([before.point, before.gradient]);
                let left = left(settings, iteration, first_slope, largest(&here.gradient));
                if watch(Taken { iteration, value: here.value, left }).is_break() {
                    end = End::Caller;
                }
            }
            // A stale past may point nowhere; only when the plain gradient fails too is the end reached.
            Err(End::Flat) if !past.is_empty() => forget(&mut past, &mut spare),
            Err(other) => end = other,
        }
    }
    *point = here.point;
    end
}

/// The estimated number of remaining iterations, given that the largest entry of the gradient fell
/// from `first` to `now`: it falls by about the same factor in each.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rough number, at least 0")]
fn left(settings: &Lbfgs, iteration: usize, first: f64, now: f64) -> Option<usize> {
    let (done, to_do) = ((first / now).ln(), (now / settings.tolerance).ln().max(0.0));
    let left = iteration as f64 * to_do / done;
    (done > 0.0 && left.is_finite()).then(|| (left.ceil() as usize).min(settings.max_iterations - iteration))
}

/// Whether no parameter is further from the optimum than ten times the tolerance, by the
/// approximate Hessian: where the curvature is small, a small gradient is not enough.
fn is_near(gradient: &[f64], tolerance: f64, divide: Option<Divide>, scratch: &mut [f64]) -> bool {
    divide.is_none_or(|divide| {
        scratch.copy_from_slice(gradient);
        divide(scratch);
        largest(scratch) <= 10.0 * tolerance
    })
}

/// A step taken, and how the gradient changed along it.
struct Pair {
    step: Vec<f64>,
    change: Vec<f64>,
    curvature: f64,
    /// What the change, divided by the Hessian that is known, falls short of the step by.
    scale: f64,
}

impl Pair {
    fn between(from: &Place, to: &Place, divide: Option<Divide>, spare: &mut Spare) -> Option<Self> {
        let (mut step, mut change) = (spare.take(), spare.take());
        subtract(&mut step, &to.point, &from.point);
        subtract(&mut change, &to.gradient, &from.gradient);
        let (curvature, squared) = (dot(&step, &change), dot(&change, &change));
        // The comparison is false for NaN, too.
        if curvature > 1e-14 * squared {
            let divided = divide.map_or(squared, |divide| {
                let mut divided = spare.take();
                divided.copy_from_slice(&change);
                divide(&mut divided);
                let product = dot(&change, &divided);
                spare.give([divided]);
                product
            });
            return Some(Self { step, change, curvature, scale: curvature / divided });
        }
        spare.give([step, change]);
        None
    }
}

/// Clears the past steps.
fn forget(past: &mut VecDeque<Pair>, spare: &mut Spare) {
    past.drain(..).for_each(|pair| spare.give([pair.step, pair.change]));
}

/// The two-loop recursion: minus the approximate inverse Hessian times the gradient.
fn descent(gradient: &[f64], past: &VecDeque<Pair>, divide: Option<Divide>, direction: &mut [f64]) {
    scaled(direction, -1.0, gradient);
    let mut shares = Vec::with_capacity(past.len());
    for pair in past.iter().rev() {
        let share = dot(&pair.step, direction) / pair.curvature;
        add_scaled(direction, -share, &pair.change);
        shares.push(share);
    }
    if let Some(divide) = divide {
        divide(direction);
    }
    if let Some(last) = past.back() {
        scale(direction, last.scale);
    }
    for (pair, share) in past.iter().zip(shares.into_iter().rev()) {
        let back = dot(&pair.change, direction) / pair.curvature;
        add_scaled(direction, share - back, &pair.step);
    }
}

/// A step that satisfies the strong Wolfe conditions.
fn line_search(
    start: &Place,
    direction: &[f64],
    first: f64,
    function: &mut impl FnMut(&[f64], &mut [f64]) -> f64,
    spare: &mut Spare,
) -> std::result::Result<Place, End> {
    const DECREASE: f64 = 1e-4;
    const CURVATURE: f64 = 0.9;
    const EVALUATIONS: usize = 40;
    let slope_at_start = dot(&start.gradient, direction);
    // Low: the best step so far; high: the other end of the bracket, once there is one.
    let mut low = (0.0, start.value, slope_at_start);
    let mut best: Option<Place> = None;
    let mut high: Option<(f64, f64, f64)> = None;
    let mut length = first;
    let mut place = Place { point: spare.take(), value: 0.0, gradient: spare.take() };
    for _ in 0..EVALUATIONS {
        step(&mut place.point, &start.point, length, direction);
        place.value = function(&place.point, &mut place.gradient);
        let slope = dot(&place.gradient, direction);
        let tried = (length, place.value, slope);
        // Near the optimum values differ by rounding only; slopes still tell (Hager & Zhang 2005).
        let rounding = 1e-15 * start.value.abs();
        let decreased = place.value <= start.value + DECREASE * length * slope_at_start
            || (place.value <= start.value + rounding && slope <= (2.0 * DECREASE - 1.0) * slope_at_start);
        if !place.value.is_finite()
            || !slope.is_finite()
            || !decreased
            || (place.value > low.1 + rounding && low.0 > 0.0)
        {
            high = Some(tried);
        } else if slope.abs() <= -CURVATURE * slope_at_start {
            if let Some(best) = best {
                spare.give([best.point, best.gradient]);
            }
            return Ok(place);
        } else {
            let up_to_high = high.map_or(1.0, |high| high.0 - low.0);
            if slope * up_to_high >= 0.0 {
                high = Some(low);
            }
            low = tried;
            let mut better = best.take().unwrap_or_else(|| Place {
                point: spare.take(),
                value: 0.0,
                gradient: spare.take(),
            });
            std::mem::swap(&mut better, &mut place);
            best = Some(better);
        }
        length = match high {
            None => 4.0 * length,
            Some(high) => between(low, high),
        };
        if high.is_some_and(|high| (high.0 - low.0).abs() <= 1e-16 * low.0.max(high.0)) {
            break;
        }
    }
    spare.give([place.point, place.gradient]);
    match (best, high) {
        // 4⁴⁰ times as far the function still falls as steeply as here.
        (_, None) => Err(End::Unbounded),
        (Some(best), _) => Ok(best),
        (None, Some(_)) => Err(End::Flat),
    }
}

/// The minimum of the cubic through both ends of a bracket, kept away from the ends; the middle if
/// there is none.
fn between(low: (f64, f64, f64), high: (f64, f64, f64)) -> f64 {
    let width = high.0 - low.0;
    let middle = low.0 + 0.5 * width;
    let bend = low.2 + high.2 - 3.0 * (high.1 - low.1) / width;
    let root = (bend * bend - low.2 * high.2).sqrt() * width.signum();
    let cubic = high.0 - width * (high.2 + root - bend) / (high.2 - low.2 + 2.0 * root);
    let share = (cubic - low.0) / width;
    if share.is_finite() { low.0 + share.clamp(0.1, 0.9) * width } else { middle }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(
        settings: &Lbfgs,
        start: &[f64],
        function: impl FnMut(&[f64], &mut [f64]) -> f64,
    ) -> (Vec<f64>, End) {
        let mut point = start.to_vec();
        let end = minimise(settings, &mut point, function, None, |_| ControlFlow::Continue(()));
        (point, end)
    }

    #[test]
    fn finds_the_bottom_of_rosenbrocks_valley() {
        let (point, end) = run(&Lbfgs::default(), &[-1.2, 1.0], |x, gradient| {
            let bend = x[1] - x[0] * x[0];
            gradient[0] = -400.0 * x[0] * bend - 2.0 * (1.0 - x[0]);
            gradient[1] = 200.0 * bend;
            100.0 * bend * bend + (1.0 - x[0]).powi(2)
        });
        assert_eq!(end, End::Converged);
        assert!(point.iter().all(|x| (x - 1.0).abs() < 1e-6), "{point:?}");
    }

    #[test]
    fn solves_a_badly_scaled_quadratic() {
        // Condition number 80,000; SciPy's L-BFGS-B takes 2,646 evaluations to the same tolerance, this takes 2,682.
        let scales: Vec<f64> = (0..50).map(|i| 10f64.powf(f64::from(i) / 10.0 - 2.0)).collect();
        let (point, end) = run(
            &Lbfgs { tolerance: 1e-9, max_iterations: 5000, ..Lbfgs::default() },
            &[0.0; 50],
            |x, gradient| {
                let mut value = 0.0;
                for i in 0..50 {
                    gradient[i] = scales[i] * (x[i] - 1.0);
                    value += 0.5 * scales[i] * (x[i] - 1.0).powi(2);
                }
                value
            },
        );
        assert!(matches!(end, End::Converged | End::Flat), "{end:?}");
        assert!(point.iter().all(|x| (x - 1.0).abs() < 1e-5), "{point:?}");
    }

    #[test]
    fn says_about_how_many_iterations_are_left() {
        let settings = Lbfgs { tolerance: 1e-6, max_iterations: 50, ..Lbfgs::default() };
        assert_eq!(left(&settings, 10, 1.0, 1e-3), Some(10));
        assert_eq!(left(&settings, 10, 1.0, 1e-7), Some(0));
        assert_eq!(left(&settings, 10, 1.0, 0.9), Some(40));
        assert_eq!(left(&settings, 10, 1.0, 1.0), None);
        assert_eq!(left(&settings, 10, 1.0, f64::NAN), None);
        assert_eq!(left(&settings, 10, 0.0, 0.0), None);
    }

    #[test]
    fn says_why_it_ends() {
        let line = |x: &[f64], gradient: &mut [f64]| {
            gradient[0] = -1.0;
            -x[0]
        };
        let few = Lbfgs { max_iterations: 3, ..Lbfgs::default() };
        assert_eq!(run(&few, &[0.0], line), (vec![0.0], End::Unbounded));
        assert_eq!(run(&few, &[2.0], |_, _| f64::NAN), (vec![2.0], End::Unbounded));
        let valley = |x: &[f64], gradient: &mut [f64]| {
            gradient[0] = 2.0 * x[0];
            x[0] * x[0]
        };
        assert_eq!(run(&Lbfgs { max_iterations: 1, ..Lbfgs::default() }, &[9.0], valley).1, End::Iterations);
        let mut point = vec![3.0];
        let bowl = |x: &[f64], gradient: &mut [f64]| {
            gradient[0] = 4.0 * x[0].powi(3);
            x[0].powi(4)
        };
        let mut seen = 0;
        let end = minimise(&Lbfgs::default(), &mut point, bowl, None, |taken| {
            seen = taken.iteration;
            if seen == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!((end, seen), (End::Caller, 2));
        assert!(point[0].abs() < 3.0);
    }
}
