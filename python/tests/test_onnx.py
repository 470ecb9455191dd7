"""Exported models, run by onnxruntime: what they say of rows is what `easyllp predict` says.

The program is found by the variable EASYLLP, or in target/.
"""

import csv
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

ROOT = Path(__file__).resolve().parents[2]
NUMBER, TEXT, IMAGE = "tensor(double)", "tensor(string)", "tensor(float)"


def find_program():
    named = os.environ.get("EASYLLP")
    places = [Path(named)] if named else [ROOT / "target" / kind / "easyllp" for kind in ("debug", "release")]
    return next((str(place) for place in places if place.is_file()), None)


PROGRAM = find_program()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="the program easyllp is not built")


def easyllp(folder, *arguments):
    """Runs the program, which must succeed; returns what it says on stderr."""
    done = subprocess.run([PROGRAM, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


def write_csv(path, columns):
    """NaN and None become empty cells."""

    def cell(value):
        return "" if value is None or value != value else value

    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows([cell(value) for value in row] for row in zip(*columns.values()))


def predicted(folder, rows):
    """Probabilities (rows × classes) and classes, as the program writes them."""
    easyllp(folder, "predict", "--model", "model", "--rows", rows, "--out", "scores.csv")
    with open(folder / "scores.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    classes = [line["predicted_class"] for line in lines]
    if "probability" in lines[0]:
        positive = np.array([float(line["probability"]) for line in lines])
        return np.stack([1 - positive, positive], 1), classes
    names = [name for name in lines[0] if name.startswith("probability_")]
    probabilities = np.array([[float(line[name]) for name in names] for line in lines])
    return probabilities, classes


class Exported:
    """model.onnx of a folder, checked and loaded."""

    def __init__(self, folder):
        self.said = easyllp(folder, "export", "model", "--onnx", "model.onnx")
        onnx.checker.check_model(onnx.load(folder / "model.onnx"), full_check=True)
        self.session = onnxruntime.InferenceSession(
            folder / "model.onnx", providers=["CPUExecutionProvider"]
        )
        self.classes = json.loads(self.session.get_modelmeta().custom_metadata_map["classes"])
        self.kinds = {value.name: value.type for value in self.session.get_inputs()}

    def __call__(self, columns):
        def tensor(name, values):
            if self.kinds[name] == IMAGE:
                return np.asarray(values, np.float32)
            if self.kinds[name] == TEXT:
                values = ["" if value is None else value for value in values]
            values = np.array(values, object if self.kinds[name] == TEXT else np.float64)
            return values.reshape(-1, 1)

        inputs = {name: tensor(name, columns[name]) for name in self.kinds}
        label, probabilities, scores = self.session.run(None, inputs)
        n_rows, n_classes = len(label), len(self.classes)
        assert label.shape == (n_rows,) and probabilities.shape == (n_rows, n_classes)
        assert scores.shape == (n_rows, 1 if n_classes == 2 else n_classes)
        assert probabilities.dtype == scores.dtype == np.float32
        return label, probabilities, scores


def assert_same(exported, folder, rows, columns):
    expected, classes = predicted(folder, rows)
    label, probabilities, scores = exported(columns)
    np.testing.assert_allclose(probabilities, expected, rtol=1e-5, atol=1e-6)
    # Where two classes are as likely as each other, rounding decides.
    ordered = np.sort(expected, 1)
    clear = ordered[:, -1] - ordered[:, -2] > 1e-5
    assert clear.any()
    likeliest = np.array(exported.classes)[expected.argmax(1)]
    assert (label[clear] == likeliest[clear]).all()
    assert (label[clear] == np.array(classes)[clear]).all()


def table(n_rows, seed, cities):
    """Numbers that are large, small, missing and constant, and categories; labels of three classes follow from them."""
    rng = np.random.default_rng(seed)
    age = rng.normal(40, 12, n_rows)
    when = 1.7e18 + 1e9 * rng.integers(0, 10**6, n_rows)  # nanoseconds: more digits than a float has
    income = rng.lognormal(10, 1, n_rows)
    city = rng.choice(cities, n_rows)
    colour = rng.choice(["red", "grün", "", "blue, dark"], n_rows)
    strength = (age - 40) / 12 + (city == cities[0]) + (colour == "red") + rng.normal(0, 0.5, n_rows)
    columns = {
        "age in years": np.where(rng.random(n_rows) < 0.1, np.nan, age),
        "when": when,
        "income": income,
        "same": np.full(n_rows, 7.25),
        "city": city,
        "colour": [value or None for value in colour],
    }
    return columns, np.digitize(strength, [0.0, 1.0])


NUMBERS = ["age in years", "when", "income", "same"]
CATEGORIES = ["city", "colour"]


def train(folder, columns, labels, n_classes, *options):
    """Trains on labels of rows, which are bags of one."""
    names = ["no", "yes"] if n_classes == 2 else ["low", "mid", "high"]
    labels = [names[min(label, n_classes - 1)] for label in labels]
    write_csv(folder / "train.csv", {**columns, "y": labels})
    positive = ["--positive", "yes"] if n_classes == 2 else []
    easyllp(
        folder, "train", "--rows", "train.csv", "--label", "y", *positive, "--method", "supervised",
        "--out", "model", *options,
    )  # fmt: skip


BY_MINIBATCHES = ["--epochs", "6", "--lr", "0.01", "--holdout", "0"]
BY_OPTIMUM = ["--l2", "0.01", "--holdout", "0"]


@pytest.mark.parametrize("loss", ["cross-entropy", "squared"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("model", "features"),
    [
        ("linear", NUMBERS + CATEGORIES),
        ("linear", NUMBERS),
        ("linear", CATEGORIES),
        ("mlp:16", NUMBERS),
        ("mlp:16,8", ["income"]),
        ("embedding:4,mlp:8", NUMBERS + CATEGORIES),
        ("embedding:4,mlp:8", ["city"]),
    ],
)
def test_tables(tmp_path, model, features, n_classes, loss):
    columns, labels = table(400, 1, ["Bern", "Oslo", "Wien"])
    columns = {name: columns[name] for name in features}
    how = BY_OPTIMUM if model == "linear" else BY_MINIBATCHES
    loss = {"cross-entropy": {2: "logistic", 3: "softmax"}[n_classes]}.get(loss, loss)
    train(tmp_path, columns, labels, n_classes, "--model", model, "--loss", loss, *how)
    exported = Exported(tmp_path)
    assert exported.kinds == {name: TEXT if name in CATEGORIES else NUMBER for name in features}
    assert all(name in exported.said for name in features)

    # Other rows, in a city that was not seen, and numbers missing that were not.
    rows, _ = table(300, 2, ["Bern", "Oslo", "Lima"])
    rows["income"] = np.where(np.arange(300) % 7 == 0, np.nan, rows["income"])
    rows = {name: rows[name] for name in features}
    write_csv(tmp_path / "rows.csv", rows)
    assert_same(exported, tmp_path, "rows.csv", rows)

    one = {name: values[:1] for name, values in rows.items()}
    assert exported(one)[1].shape == (1, n_classes)
    none = {name: values[:0] for name, values in rows.items()}
    assert exported(none)[1].shape == (0, n_classes)


def test_scores_that_are_far_out(tmp_path):
    """Probabilities keep their digits where they are small, and are clipped where they are beyond 0 and 1."""
    x = np.linspace(-1, 1, 200)
    train(tmp_path, {"x": x}, (x > 0.05 * np.sin(40 * x)).astype(int), 2, "--l2", "0.0001", "--holdout", "0")
    rows = {"x": np.linspace(-3, 3, 61)}
    write_csv(tmp_path / "rows.csv", rows)
    exported = Exported(tmp_path)
    expected = predicted(tmp_path, "rows.csv")[0]
    assert expected.min() < 1e-6
    np.testing.assert_allclose(exported(rows)[1][:, 1], expected[:, 1], rtol=1e-4)

    for labels, n_classes in [((x > 0).astype(int), 2), (np.digitize(x, [-0.3, 0.3]), 3)]:
        train(tmp_path, {"x": x}, labels, n_classes, "--loss", "squared", *BY_OPTIMUM)
        expected, _ = predicted(tmp_path, "rows.csv")
        _, probabilities, scores = Exported(tmp_path)(rows)
        assert scores.min() < 0 and scores.max() > 1 and (expected == 0).any()
        np.testing.assert_allclose(probabilities, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-6)


def test_scores_that_say_nothing(tmp_path):
    """Where all squared scores are below 0, classes are as likely as each other; of equal scores the first one counts."""
    train(tmp_path, {"x": np.arange(60)}, np.arange(60) // 20, 3, "--loss", "squared", *BY_OPTIMUM)
    Exported(tmp_path)
    model = onnx.load(tmp_path / "model.onnx")
    [intercept] = [tensor for tensor in model.graph.initializer if tensor.name == "intercept"]
    [weights] = [tensor for tensor in model.graph.initializer if tensor.name == "weights"]
    intercept.raw_data = np.array([[-2, -1, -1]], np.float32).tobytes()
    weights.raw_data = np.zeros((1, 3), np.float32).tobytes()
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    label, probabilities, _ = session.run(None, {"x": np.array([[3.0]])})
    classes = json.loads(session.get_modelmeta().custom_metadata_map["classes"])
    assert label.tolist() == [classes[1]]
    np.testing.assert_allclose(probabilities, np.full((1, 3), 1 / 3), rtol=1e-6)


def test_columns_named_as_outputs(tmp_path):
    columns, labels = table(100, 3, ["Bern", "Oslo"])
    columns = {"label": columns["age in years"], "scores": columns["income"], "Gemm": columns["city"]}
    train(tmp_path, columns, labels, 2, *BY_OPTIMUM)
    write_csv(tmp_path / "rows.csv", columns)
    exported = Exported(tmp_path)
    assert set(exported.kinds) == set(columns)
    assert [value.name for value in exported.session.get_outputs()] == ["label_2", "probabilities", "scores_2"]
    assert_same(exported, tmp_path, "rows.csv", columns)


def write_images(folder, images, labels):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    numbers = pyarrow.array(images.ravel(), pyarrow.float32())
    lists = pyarrow.FixedSizeListArray.from_arrays(numbers, images.shape[1])
    parquet.write_table(pyarrow.table({"image": lists, "y": labels}), folder / "images.parquet")


@pytest.mark.parametrize(
    ("layers", "shape", "n_classes", "loss"),
    [
        ("conv3x4 relu pool2 fc8 relu", (1, 8, 8), 2, "logistic"),
        ("conv3x4:same relu pool2 conv2x5:same tanh avgpool2 dropout0.2 fc6 gelu dropout0.1 fc5 tanh", (3, 8, 9), 3, "softmax"),
        ("conv4x6:same:stride2 gelu pool3:stride1", (2, 9, 8), 3, "squared"),
        ("avgpool2 conv3x3:stride2 fc7 tanh dropout0.1", (3, 11, 10), 2, "squared"),
        ("fc4 relu", (2, 3, 4), 2, "logistic"),
    ],
)
def test_images(tmp_path, layers, shape, n_classes, loss):
    rng = np.random.default_rng(4)
    labels = rng.integers(0, n_classes, 240)
    images = rng.integers(0, 128, (240, *shape)).astype(np.float32)
    for image, label in zip(images, labels):
        image[label % shape[0], :, label :: n_classes] += 100
    images = images.reshape(240, -1)
    write_images(tmp_path, images, [f"kind {label}" for label in labels])
    easyllp(
        tmp_path, "train", "--rows", "images.parquet", "--label", "y", "--method", "supervised", "--out", "model",
        "--model", f"cnn:{layers}", "--image", "x".join(map(str, shape)), "--loss", loss, *BY_MINIBATCHES,
    )  # fmt: skip
    exported = Exported(tmp_path)
    [image] = exported.session.get_inputs()
    assert (image.name, image.type, image.shape) == ("image", IMAGE, ["rows", images.shape[1]])
    assert_same(exported, tmp_path, "images.parquet", {"image": images})


def test_lists_among_other_columns(tmp_path):
    """A table of lists, numbers and text, whose features are not in the order in which they are made."""
    polars = pytest.importorskip("polars")
    columns, labels = table(200, 5, ["Bern", "Oslo"])
    lists = np.random.default_rng(6).normal(1000, 1, (200, 3)).astype(np.float32)
    as_column = polars.Series("b list", lists.tolist(), dtype=polars.Array(polars.Float32, 3))
    rows = polars.DataFrame({**columns, "y": labels}).with_columns(polars.col("age in years").fill_nan(None), as_column)
    rows.write_parquet(tmp_path / "rows.parquet")
    columns["b list"] = lists
    easyllp(
        tmp_path, "train", "--rows", "rows.parquet", "--label", "y", "--method", "supervised", "--out", "model", *BY_OPTIMUM
    )
    assert_same(Exported(tmp_path), tmp_path, "rows.parquet", columns)


def test_hashed_columns_are_refused(tmp_path):
    columns, labels = table(100, 7, [f"city {number}" for number in range(30)])
    train(tmp_path, columns, labels, 2, "--max-vocabulary", "10", *BY_OPTIMUM)
    done = subprocess.run(
        [PROGRAM, "export", "model", "--onnx", "model.onnx"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "`city` is hashed" in done.stderr and "--max-vocabulary" in done.stderr
    assert not (tmp_path / "model.onnx").exists()


def test_models_of_the_package(task):
    easyllp = pytest.importorskip("easyllp")
    X, y = task
    model = easyllp.LLPClassifier(l2=0.1).fit(X, y)
    label, probabilities, scores = onnxruntime.InferenceSession(model.to_onnx()).run(None, {"x": X})
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(scores[:, 0], model.decision_function(X), atol=1e-5)
    assert [int(name) for name in label] == model.predict(X).tolist()


def test_tables_of_the_package(task, tmp_path):
    easyllp = pytest.importorskip("easyllp")
    pd = pytest.importorskip("pandas")
    X, y = task
    rows = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "up", "down")})
    rows.loc[3, "a"] = np.nan
    model = easyllp.LLPClassifier(model="embedding:2,mlp:4", epochs=3, loss="squared").fit(rows, y)
    model.to_onnx(tmp_path / "model.onnx")
    with pytest.raises(OSError, match="cannot write"):
        model.to_onnx(tmp_path / "no-such-folder" / "model.onnx")
    inputs = {"a": rows[["a"]].to_numpy(dtype=np.float64), "b": rows[["b"]].to_numpy(dtype=object)}
    _, probabilities, _ = onnxruntime.InferenceSession(tmp_path / "model.onnx").run(None, inputs)
    np.testing.assert_allclose(probabilities, model.predict_proba(rows), atol=1e-6)
    hashed = easyllp.LLPClassifier(l2=0.1, max_vocabulary=1).fit(rows, y)
    with pytest.raises(ValueError, match="`b`"):
        hashed.to_onnx()
