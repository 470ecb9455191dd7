"""The program and the package: one seed, one model, one file."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

import easyllp
from easyllp import LLPClassifier, make_bags

pd = pytest.importorskip("pandas")


def run(program: str, *words: object) -> str:
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Rows and reports as files, and as pandas has them."""
    folder = tmp_path_factory.mktemp("reports")
    rng = np.random.default_rng(13)
    rows = pd.DataFrame(
        {
            "years": rng.integers(18, 80, size=1200).astype(float),
            "city": rng.choice(["Bern", "Oslo", "Wien"], size=1200),
            "hours": rng.normal(40, 8, size=1200).round(2),
        }
    )
    rows.loc[::40, "hours"] = np.nan
    y = (rows["years"] / 10 + 2 * (rows["city"] == "Oslo") + rng.normal(size=1200) > 5).astype(int).to_numpy()
    bags, _ = make_bags(y, size=6)
    rows["day"] = [f"d{bag:03}" for bag in bags]
    counts = pd.Series(y, name="clicks").groupby(rows["day"]).sum()
    rows.to_csv(folder / "rows.csv", index=False)
    counts.to_csv(folder / "reports.csv")
    return folder, rows, counts, y


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"l2": 0.05, "holdout": 0.0},
        {"method": "count-likelihood", "epochs": 4, "lr": 0.01},
        {"model": "embedding:4,mlp:8", "epochs": 3, "loss": "squared", "seed": 7},
        {"method": "easyllp-sgd:domain=ball:5,prior=0.5"},
        {"method": "mean-map", "method_params": {"ridge": 0.01}},
    ],
    ids=lambda settings: " ".join(f"{name} {value}" for name, value in settings.items()) or "usual",
)
def test_the_same_settings_give_the_same_bytes(program, reports, tmp_path, settings):
    folder, rows, counts, _ = reports
    theirs = dict(settings)
    if "method_params" in theirs:
        parameters = ",".join(f"{name}={value}" for name, value in theirs.pop("method_params").items())
        theirs["method"] = f"{theirs['method']}:{parameters}"
    words = [word for name, value in theirs.items() for word in (f"--{name.replace('_', '-')}", value)]
    data = ("--rows", folder / "rows.csv", "--reports", folder / "reports.csv", "--key", "day", "--count", "clicks")
    run(program, "train", *data, *words, "--out", tmp_path / "theirs")
    here = dict(settings)
    here["random_state"] = here.pop("seed", 1)
    model = LLPClassifier(**here).fit_bags(rows.drop(columns="day"), counts, rows["day"])
    model.save(tmp_path / "ours")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


def test_several_classes_give_the_same_bytes(program, reports, tmp_path):
    folder, rows, counts, _ = reports
    some = pd.DataFrame({"none": 6 - counts, "few": counts.clip(upper=2), "many": counts - counts.clip(upper=2)})
    some.to_csv(tmp_path / "reports.csv")
    data = ("--rows", folder / "rows.csv", "--reports", tmp_path / "reports.csv", "--key", "day", "--count", "none,few,many")
    run(program, "train", *data, "--out", tmp_path / "theirs")
    LLPClassifier().fit_bags(rows.drop(columns="day"), some, rows["day"]).save(tmp_path / "ours")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


def test_images_give_the_same_bytes(program, reports, tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    folder, rows, counts, _ = reports
    pixels = np.random.default_rng(5).normal(size=len(rows) * 16).astype(np.float32)
    images = pa.table({"pixels": pa.FixedSizeListArray.from_arrays(pa.array(pixels), 16), "day": rows["day"].to_numpy()})
    pa.parquet.write_table(images, tmp_path / "rows.parquet")
    settings = {"model": "cnn:conv3x2 relu pool2 fc4 relu", "image": "1x4x4", "epochs": 2}
    words = [word for name, value in settings.items() for word in (f"--{name}", value)]
    data = ("--rows", tmp_path / "rows.parquet", "--reports", folder / "reports.csv", "--key", "day", "--count", "clicks")
    run(program, "train", *data, *words, "--out", tmp_path / "theirs")
    LLPClassifier(**settings).fit_bags(images.select(["pixels"]), counts, rows["day"]).save(tmp_path / "ours")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


def test_a_model_of_one_predicts_in_the_other(program, reports, tmp_path):
    folder, rows, counts, y = reports
    features = rows.drop(columns="day")
    model = LLPClassifier(model="embedding:4,mlp:8", epochs=5).fit_bags(features, counts, rows["day"])
    model.save(tmp_path / "ours")
    run(program, "predict", "--model", tmp_path / "ours", "--rows", folder / "rows.csv", "--out", tmp_path / "scores.csv")
    scores = pd.read_csv(tmp_path / "scores.csv")["probability"]
    np.testing.assert_allclose(scores, model.predict_proba(features)[:, 1], rtol=1e-12)

    data = ("--rows", folder / "rows.csv", "--reports", folder / "reports.csv", "--key", "day", "--count", "clicks")
    run(program, "train", *data, "--out", tmp_path / "theirs")
    loaded = easyllp.load(tmp_path / "theirs")
    assert loaded.classes_.tolist() == [0, 1] and loaded.method == "easyllp"
    assert loaded.score(features, y) > 0.85
    run(program, "predict", "--model", tmp_path / "theirs", "--rows", folder / "rows.csv", "--out", tmp_path / "scores.csv")
    np.testing.assert_allclose(pd.read_csv(tmp_path / "scores.csv")["probability"], loaded.predict_proba(features)[:, 1], rtol=1e-12)


def test_a_model_of_arrays_is_shown_and_predicts_lists(program, task, tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    X, y = task
    model = LLPClassifier(l2=0.1).fit(X, y)
    model.save(tmp_path / "model")
    assert "list of 3 numbers, as they are" in run(program, "show", tmp_path / "model")
    lists = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 3)
    pa.parquet.write_table(pa.table({"x": lists}), tmp_path / "rows.parquet")
    run(program, "predict", "--model", tmp_path / "model", "--rows", tmp_path / "rows.parquet", "--out", tmp_path / "scores.csv")
    np.testing.assert_allclose(pd.read_csv(tmp_path / "scores.csv")["probability"], model.predict_proba(X)[:, 1], rtol=1e-12)


def test_rows_are_dealt_as_the_program_deals_them(program, task, tmp_path):
    X, y = task
    pd.DataFrame({"a": X[:, 0], "y": y}).to_csv(tmp_path / "rows.csv", index=False)
    run(program, "bag", "--rows", tmp_path / "rows.csv", "--label", "y", "--size", 8, "--seed", 5, "--out", tmp_path / "bags")
    dealt = pd.read_parquet(next((tmp_path / "bags").glob("rows*")))
    bags, _ = make_bags(y, size=8, seed=5)
    key = next(name for name in dealt.columns if name not in ("a", "y"))
    same = dealt.groupby(key).indices.values()
    assert {frozenset(rows.tolist()) for rows in same} == {frozenset(np.flatnonzero(bags == bag)) for bag in range(50)}
