//! Projected stochastic gradient descent, the paper's Algorithm *pickone*: settings and iterates.
//!
//! With η_t the size of step t and Π the projection onto the domain, a step is
//!
//! ```text
//! w ← Π(w − η_t g)
//! ```
//!
//! The squared gradient is of order k² for surrogate labels and of order k for soft ones, so the
//! paper divides the step size by its root: η_t = 1/(k√t) or 1/√(kt) (Theorem *convex_pickone*),
//! multiplied by a user's factor.

use super::check_setting;
use crate::error::{Error, Result};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Settings of one pass of stochastic gradient descent: the paper's Algorithm *pickone*.
///
/// The default is the paper's form with soft labels and an unbounded domain. The theorem requires a
/// bounded [domain](Domain), which depends on the task.
#[derive(Debug, Clone, PartialEq)]
pub struct Sgd {
    /// What replaces the label of the picked row.
    pub labels: Labels,
    /// How the step size depends on the step and on the bag size.
    pub steps: Steps,
    /// A factor of all step sizes; 1 is the paper's.
    pub scale: f64,
    /// The domain of the parameters.
    pub domain: Domain,
    /// Which iterate is returned.
    pub iterate: Iterate,
}

/// What replaces the label of the picked row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Labels {
    /// The bag's proportions: A = p + k(α − p) (eq. *simple_tlalpha*).
    #[default]
    Soft,
    /// A label drawn from the bag's proportions: A = p + k(ỹ − p) (eq. *tlsimple*).
    Surrogate,
}

/// The size of step t, divided by [`Sgd::scale`]. If bag sizes differ, k is their mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Steps {
    /// 1/√(kt), the paper's for soft labels.
    #[default]
    #[serde(rename = "soft")]
    OverSoft,
    /// 1/(k√t), the paper's for surrogate labels.
    #[serde(rename = "surrogate")]
    OverSurrogate,
    /// 1/√t: the bag size only enters through the scale.
    Given,
}

/// The convex set that all parameters, intercepts included, are projected onto after each step.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Domain {
    /// Unbounded.
    #[default]
    Whole,
    /// The ball of this radius around the origin. A step that leaves it costs as much as the model
    /// has parameters.
    Ball(f64),
    /// A box: the absolute value of each parameter is at most this.
    Box(f64),
}

/// Which iterate is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Iterate {
    /// The last one, as in Algorithm *pickone*.
    #[default]
    Last,
    /// The mean of all iterates.
    Average,
}

/// The text of a [`Domain`].
const DOMAINS: &str = "whole, ball:RADIUS or box:BOUND, with a number above 0";

impl fmt::Display for Domain {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Whole => to.write_str("whole"),
            Self::Ball(radius) => write!(to, "ball:{radius}"),
            Self::Box(bound) => write!(to, "box:{bound}"),
        }
    }
}

impl FromStr for Domain {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let positive = |text: &str| text.parse().ok().filter(|bound| *bound > 0.0 && f64::is_finite(*bound));
        let domain = match text.split_once(':') {
            None if text == "whole" => Some(Self::Whole),
            Some(("ball", radius)) => positive(radius).map(Self::Ball),
            Some(("box", bound)) => positive(bound).map(Self::Box),
            _ => None,
        };
        let unknown = || Error::UnknownName { what: "domain", name: text.to_owned(), choices: DOMAINS };
        domain.ok_or_else(unknown)
    }
}

impl TryFrom<String> for Domain {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Domain> for String {
    fn from(domain: Domain) -> Self {
        domain.to_string()
    }
}

impl JsonSchema for Domain {
    fn schema_name() -> Cow<'static, str> {
        "Domain".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "x-expected": DOMAINS })
    }
}

impl Default for Sgd {
    fn default() -> Self {
        Self {
            labels: Labels::default(),
            steps: Steps::default(),
            scale: 1.0,
            domain: Domain::default(),
            iterate: Iterate::default(),
        }
    }
}

impl Sgd {
    pub(crate) fn check(&self) -> Result<()> {
        check_setting("scale of steps", self.scale, self.scale > 0.0, "positive")?;
        match self.domain {
            Domain::Whole => Ok(()),
            Domain::Ball(radius) => check_setting("radius of the domain", radius, radius > 0.0, "positive"),
            Domain::Box(bound) => check_setting("bound of the domain", bound, bound > 0.0, "positive"),
        }
    }
}

/// The iterate: all parameters as one vector.
pub(crate) struct Descent {
    point: Vec<f64>,
    /// ‖point‖², kept up to date by what changes; no finite number any more once a parameter is none.
    squared_norm: f64,
    /// For the mean of iterates: each parameter's changes in sum, each times the steps that came before it and so missed
    /// it. Empty if no mean is asked for.
    missed: Vec<f64>,
    domain: Domain,
    /// The size of step t, times √t.
    rate: f64,
    /// The size of the current step.
    size: f64,
    n_done: usize,
}

impl Descent {
    /// Starts from `start`, projected onto the domain, with this mean bag size.
    pub(crate) fn new(settings: &Sgd, start: Vec<f64>, mean_size: f64) -> Self {
        let over = match settings.steps {
            Steps::OverSoft => mean_size.sqrt(),
            Steps::OverSurrogate => mean_size,
            Steps::Given => 1.0,
        };
        let n_missed = if settings.iterate == Iterate::Average { start.len() } else { 0 };
        let mut descent = Self {
            squared_norm: squared_norm(&start),
            missed: vec![0.0; n_missed],
            domain: settings.domain,
            rate: settings.scale / over,
            size: 0.0,
            n_done: 0,
            point: start,
        };
        for place in 0..descent.point.len() {
            descent.set(place, descent.point[place]);
        }
        descent.project();
        descent
    }

    /// The current point.
    pub(crate) fn point(&self) -> &[f64] {
        &self.point
    }

    pub(crate) fn begin_step(&mut self) {
        self.size = self.rate / ((self.n_done + 1) as f64).sqrt();
    }

    /// Adds a part of the gradient step, `factor` times `slopes`, whose first entry belongs to
    /// `place`; no place occurs twice in a step.
    pub(crate) fn descend(&mut self, place: usize, factor: f64, slopes: &[f64]) {
        let length = self.size * factor;
        for (place, slope) in (place..).zip(slopes) {
            self.set(place, self.point[place] - length * slope);
        }
    }

    /// Projects onto the domain at the end of a step.
    pub(crate) fn end_step(&mut self) {
        self.project();
        self.n_done += 1;
    }

    /// Whether all parameters are finite.
    pub(crate) fn is_finite(&self) -> bool {
        self.squared_norm.is_finite()
    }

    /// The iterate to return.
    pub(crate) fn finish(mut self) -> Vec<f64> {
        let n_done = self.n_done.max(1) as f64;
        for (value, missed) in self.point.iter_mut().zip(&self.missed) {
            *value -= missed / n_done;
        }
        self.point
    }

    /// Sets a parameter, clipped to the box.
    fn set(&mut self, place: usize, value: f64) {
        let value = match self.domain {
            Domain::Box(bound) => value.clamp(-bound, bound),
            Domain::Whole | Domain::Ball(_) => value,
        };
        let before = std::mem::replace(&mut self.point[place], value);
        self.squared_norm += value * value - before * before;
        if let Some(missed) = self.missed.get_mut(place) {
            *missed += (value - before) * self.n_done as f64;
        }
    }

    /// Goes to the nearest point of a ball; a box is kept to parameter by parameter, as they are set.
    fn project(&mut self) {
        let Domain::Ball(radius) = self.domain else { return };
        // What is no finite number has no nearest point, and is left for the caller to see.
        if self.squared_norm > radius * radius && self.squared_norm.is_finite() {
            let factor = radius / self.squared_norm.sqrt();
            for place in 0..self.point.len() {
                self.set(place, factor * self.point[place]);
            }
            // Afresh, so that rounding does not add up.
            self.squared_norm = squared_norm(&self.point);
        }
    }
}

fn squared_norm(point: &[f64]) -> f64 {
    point.iter().map(|value| value * value).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    /// The iterates of steps along these gradients, and what the descent ends with.
    fn descend(settings: &Sgd, start: &[f64], gradients: &[[f64; 2]]) -> (Vec<Vec<f64>>, Vec<f64>) {
        let mut descent = Descent::new(settings, start.to_vec(), 4.0);
        let mut iterates = Vec::new();
        for gradient in gradients {
            descent.begin_step();
            descent.descend(0, 2.0, gradient);
            descent.end_step();
            assert!(descent.is_finite());
            iterates.push(descent.point().to_vec());
        }
        (iterates, descent.finish())
    }

    fn assert_close(got: &[f64], expected: &[f64]) {
        assert_eq!(got.len(), expected.len());
        for (got, expected) in got.iter().zip(expected) {
            assert!((got - expected).abs() < 1e-12, "{got} instead of {expected}");
        }
    }

    #[test]
    fn steps_are_as_long_as_the_theorem_has_them() {
        // k = 4, t = 1 and 4, and a gradient of 2.
        for (steps, scale, first, fourth) in [
            (Steps::OverSoft, 1.0, 1.0, 0.5),
            (Steps::OverSurrogate, 1.0, 0.5, 0.25),
            (Steps::OverSurrogate, 3.0, 1.5, 0.75),
            (Steps::Given, 0.1, 0.2, 0.1),
        ] {
            let settings = Sgd { steps, scale, ..Sgd::default() };
            let (iterates, _) = descend(&settings, &[0.0; 2], &[[1.0, 0.0]; 4]);
            assert_close(&iterates[0], &[-first, 0.0]);
            assert_close(&[iterates[2][0] - iterates[3][0]], &[fourth]);
        }
    }

    #[test]
    fn a_step_ends_at_the_nearest_point_of_the_domain() {
        let steps = Steps::Given;
        let ball = Sgd { domain: Domain::Ball(5.0), steps, ..Sgd::default() };
        let (iterates, _) = descend(&ball, &[0.0; 2], &[[-3.0, -4.0], [1.0, 0.0]]);
        assert_close(&iterates[0], &[3.0, 4.0]); // from (6, 8)
        assert_close(&iterates[1], &[3.0 - 2.0_f64.sqrt(), 4.0]); // and no further: that is inside
        let in_box = Sgd { domain: Domain::Box(5.0), steps, ..Sgd::default() };
        let (iterates, _) = descend(&in_box, &[0.0; 2], &[[-3.0, -2.0], [9.0, 0.0]]);
        assert_close(&iterates[0], &[5.0, 4.0]); // from (6, 4)
        assert_close(&iterates[1], &[-5.0, 4.0]);
    }

    #[test]
    fn a_start_outside_the_domain_is_brought_into_it() {
        let start = vec![6.0, -8.0];
        for (domain, expected) in
            [(Domain::Whole, [6.0, -8.0]), (Domain::Ball(5.0), [3.0, -4.0]), (Domain::Box(7.0), [6.0, -7.0])]
        {
            let descent = Descent::new(&Sgd { domain, ..Sgd::default() }, start.clone(), 1.0);
            assert_close(descent.point(), &expected);
        }
    }

    #[test]
    fn the_mean_is_that_of_all_iterates() {
        let gradients: Vec<[f64; 2]> =
            (0..50).map(|t| [(0.7 * f64::from(t)).sin(), if t % 3 == 0 { 1.5 } else { 0.0 }]).collect();
        for domain in [Domain::Whole, Domain::Ball(1.1), Domain::Box(0.8)] {
            let settings = Sgd { domain, iterate: Iterate::Average, ..Sgd::default() };
            let (iterates, mean) = descend(&settings, &[0.3, 2.0], &gradients);
            let sums = [0, 1].map(|place| iterates.iter().map(|iterate| iterate[place]).sum::<f64>());
            assert_close(&mean, &sums.map(|sum| sum / 50.0));
        }
    }

    #[test]
    fn reports_divergence() {
        for domain in [Domain::Whole, Domain::Ball(1.0)] {
            let mut descent = Descent::new(&Sgd { domain, ..Sgd::default() }, vec![0.0; 2], 1.0);
            descent.begin_step();
            descent.descend(0, 1e200, &[1.0, 0.0]);
            descent.end_step();
            assert!(!descent.is_finite());
        }
    }

    #[test]
    fn refuses_what_is_no_size() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let scale = Sgd { scale: bad, ..Sgd::default() };
            let ball = Sgd { domain: Domain::Ball(bad), ..Sgd::default() };
            let in_box = Sgd { domain: Domain::Box(bad), ..Sgd::default() };
            for (settings, expected) in
                [(scale, "scale of steps"), (ball, "radius of the domain"), (in_box, "bound of the domain")]
            {
                let refused = settings.check().unwrap_err();
                assert!(matches!(refused, Error::Setting { name, .. } if name == expected), "{refused}");
            }
        }
        assert_eq!(Sgd::default().check(), Ok(()));
    }
}
