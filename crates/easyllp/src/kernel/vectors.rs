//! Which vector instructions the loops and matrix products use: the widest of the machine, or those that
//! `EASYLLP_VECTORS` names. The only place that decides it.

use crate::error::{Error, Result};
use pulp::Arch;
use std::fmt;
use std::mem::discriminant;
use std::sync::OnceLock;

const VARIABLE: &str = "EASYLLP_VECTORS";

/// A kind of vector instructions that loops and matrix products are compiled for.
///
/// By default the widest kind that the machine supports. The environment variable `EASYLLP_VECTORS`
/// (`scalar`, `avx2`, `avx512`; `neon` on ARM) selects another one: to test each kind on one
/// machine, or to reproduce the last digits of another machine. It is read once per process.
///
/// If the variable names a kind that the machine does not support, [`Vectors::chosen`] is an error,
/// which training and scoring return. The program and the Python package report it when they start.
/// (Loops cannot fail; they use the widest kind then.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vectors {
    /// No vector instructions beyond the target's baseline.
    Scalar,
    /// 128 bits, on ARM.
    Neon,
    /// 256 bits and fused multiply-add, on x86-64.
    Avx2,
    /// 512 bits, on x86-64: the subsets F, BW, CD, DQ and VL.
    Avx512,
}

impl Vectors {
    /// All kinds, the narrowest first.
    pub const ALL: [Self; 4] = [Self::Scalar, Self::Neon, Self::Avx2, Self::Avx512];

    /// The name in `EASYLLP_VECTORS`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Neon => "neon",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// The kinds that this machine supports, the narrowest first.
    pub fn available() -> Vec<Self> {
        Self::ALL.into_iter().filter(|vectors| vectors.arch().is_some()).collect()
    }

    /// The kind in use: the one that `EASYLLP_VECTORS` names, or the widest. An error if this
    /// machine does not support the named one.
    pub fn chosen() -> Result<Self> {
        choice().vectors.clone()
    }

    fn widest() -> Self {
        *Self::available().last().expect("every machine has scalars")
    }

    /// The kind with this name; without a name, the widest.
    fn named(name: Option<&str>) -> Result<Self> {
        let Some(name) = name else { return Ok(Self::widest()) };
        let available = Self::available();
        available.iter().copied().find(|vectors| vectors.as_str() == name).ok_or_else(|| {
            let available: Vec<_> = available.into_iter().map(Self::as_str).collect();
            Error::UnknownVectors { name: name.into(), available: available.join(", ") }
        })
    }

    /// What loops are dispatched by; none if this machine lacks it.
    pub(super) fn arch(self) -> Option<Arch> {
        match self {
            Self::Scalar => Some(Arch::Scalar),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => Some(Arch::new()),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => pulp::x86::V3::try_new().map(Arch::V3),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => pulp::x86::V4::try_new().map(Arch::V4),
            _ => None,
        }
    }
}

impl fmt::Display for Vectors {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

struct Choice {
    arch: Arch,
    vectors: Result<Vectors>,
}

#[inline]
fn choice() -> &'static Choice {
    static CHOICE: OnceLock<Choice> = OnceLock::new();
    CHOICE.get_or_init(|| {
        let name = std::env::var_os(VARIABLE).filter(|name| !name.is_empty());
        let vectors = Vectors::named(name.as_ref().map(|name| name.to_string_lossy()).as_deref());
        let usable = vectors.clone().unwrap_or_else(|_| Vectors::widest());
        Choice { arch: usable.arch().expect("the machine has it"), vectors }
    })
}

/// What loops are dispatched by in this process.
#[inline]
pub(crate) fn arch() -> Arch {
    choice().arch
}

/// Whether this machine supports no wider vectors.
pub(super) fn is_widest(arch: Arch) -> bool {
    discriminant(&arch) == discriminant(&Arch::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_chooses_and_an_unknown_one_is_refused_with_what_there_is() {
        assert_eq!(Vectors::named(None), Ok(Vectors::widest()));
        assert_eq!(Vectors::named(Some("scalar")), Ok(Vectors::Scalar));
        for vectors in Vectors::available() {
            assert_eq!(Vectors::named(Some(vectors.as_str())), Ok(vectors));
        }
        for lacking in Vectors::ALL.into_iter().filter(|vectors| vectors.arch().is_none()) {
            assert!(Vectors::named(Some(lacking.as_str())).is_err(), "{lacking}");
        }
        let message = Vectors::named(Some("AVX2")).unwrap_err().to_string();
        let start = "EASYLLP_VECTORS is `AVX2`, which this machine does not have: choose one of scalar";
        assert!(message.starts_with(start), "{message}");
    }

    /// What `make test-vectors` relies on.
    #[test]
    fn loops_use_what_the_variable_names() {
        let name = std::env::var(VARIABLE).ok().filter(|name| !name.is_empty());
        let expected = name.unwrap_or_else(|| Vectors::widest().to_string());
        assert_eq!(Vectors::chosen().unwrap().as_str(), expected);
    }
}
