from typing import Any, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "soft_targets",
    "deal",
    "method_in_words",
    "methods",
    "needs_dense_rows",
    "evaluate",
    "metric",
    "diagnose",
    "address",
    "dataset",
    "Model",
    "__version__",
    "LEAST_PROBABILITY",
]

__version__: str
LEAST_PROBABILITY: float

def soft_targets(
    of_row: npt.NDArray[np.uint32],
    counts: npt.NDArray[np.float64],
    noise: tuple[str, list[float]] | None,
    prior: list[float] | None,
    bag_weights: str,
) -> npt.NDArray[np.float32]: ...
def deal(n_rows: int, sizes: list[int], seed: int) -> npt.NDArray[np.uint32]: ...
def evaluate(
    scores: npt.NDArray[np.float32],
    link_name: str,
    of_row: npt.NDArray[np.uint32],
    counts: npt.NDArray[np.float64],
    noise: tuple[str, list[float]] | None,
    level: float,
    is_of_population: bool,
    bootstrap: tuple[int, int] | None,
    with_curves: bool,
) -> str: ...
def metric(
    name: str,
    scores: npt.NDArray[np.float32],
    link_name: str,
    of_row: npt.NDArray[np.uint32],
    counts: npt.NDArray[np.float64],
) -> tuple[float, float, float, float]: ...
def diagnose(
    of_row: npt.NDArray[np.uint32],
    counts: npt.NDArray[np.float64],
    noise: tuple[str, list[float]] | None,
    features: Any | None,
) -> str: ...
def method_in_words(words: str) -> tuple[str, str]: ...
def methods() -> str: ...
def needs_dense_rows(settings: str) -> str | None: ...
def address(array: npt.NDArray[np.float32]) -> int: ...
def dataset(name: str) -> tuple[Any, Any, list[str]]: ...
@final
class Model:
    @staticmethod
    def fit(
        features: Any,
        of_row: npt.NDArray[np.uint32],
        counts: npt.NDArray[np.float64],
        noise: tuple[str, list[float]] | None,
        classes: tuple[list[str], str],
        settings: str,
        image: str | None,
        encoding: tuple[int, int],
        n_threads: int | None,
        is_verbose: bool,
    ) -> tuple[Model, str]: ...
    @staticmethod
    def load(path: str) -> Model: ...
    def save(self, path: str) -> None: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> Model: ...
    def to_bytes(self) -> bytes: ...
    def to_onnx(self, path: str | None = None) -> bytes: ...
    def __reduce__(self) -> tuple[Any, tuple[bytes]]: ...
    def scores(self, features: Any) -> tuple[npt.NDArray[np.float32], list[str]]: ...
    def probabilities(self, features: Any) -> tuple[npt.NDArray[np.float64], list[str]]: ...
    def scores_of_bags(
        self,
        features: Any,
        of_row: npt.NDArray[np.uint32],
        counts: npt.NDArray[np.float64],
        noise: tuple[str, list[float]] | None,
    ) -> tuple[tuple[npt.NDArray[np.float32], list[str]], str | None]: ...
    @property
    def classes(self) -> list[str]: ...
    @property
    def class_kind(self) -> str: ...
    @property
    def prior(self) -> list[float]: ...
    @property
    def method(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def loss(self) -> str: ...
    @property
    def config(self) -> tuple[str, str] | None: ...
    @property
    def settings(self) -> dict[str, str]: ...
    @property
    def columns(self) -> list[str]: ...
    @property
    def width(self) -> int | None: ...
    @property
    def dense_columns(self) -> list[str]: ...
    @property
    def link(self) -> str: ...
    @property
    def threshold(self) -> float: ...
    @property
    def weights(self) -> tuple[npt.NDArray[np.float32], list[float]] | None: ...
