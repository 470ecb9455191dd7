"""Targets, bags, estimates and diagnoses."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, brier_score_loss, f1_score, log_loss, roc_auc_score

from easyllp import bag_metric, diagnose, evaluate, make_bags, soft_targets
from easyllp._bags import places
from easyllp._reports import from_report


def test_the_paper_s_targets():
    # A = p + k(α − p), by hand: a flipped sign, or a k for a k − 1, shows.
    targets = soft_targets([0.5, 0.5, 1, 1, 1], ["a", "a", "b", "b", "b"], prior=0.2)
    np.testing.assert_allclose(targets, [0.8, 0.8, 2.6, 2.6, 2.6], rtol=1e-6)
    several = soft_targets(np.array([[0.5, 0.5, 0.0]] * 2 + [[0.0, 0.0, 1.0]]), [0, 0, 1], prior=[0.5, 0.3, 0.2])
    np.testing.assert_allclose(several, [[0.5, 0.7, -0.2]] * 2 + [[0.0, 0.0, 1.0]], atol=1e-6)


def test_centred_targets_are_unbiased_over_all_dealings():
    labels = np.array([1, 0, 0, 1, 0, 0])
    weight = np.array([0.3, -1.0, 2.0, 0.7, 0.1, -0.4])
    sums = []
    for first in itertools.combinations(range(6), 2):
        bags = np.isin(np.arange(6), first)
        proportions = np.array([labels[bags == bag].mean() for bag in bags])
        sums.append((soft_targets(proportions, bags) * weight).mean())
    assert np.mean(sums) == pytest.approx((labels * weight).mean(), abs=1e-6)


def test_bags_of_one_have_labels_for_targets():
    labels = np.array([0, 1, 1, 0])
    np.testing.assert_allclose(soft_targets(labels, np.arange(4)), labels, atol=1e-6)


def test_bags_are_dealt_at_random_and_say_what_they_hold():
    labels = np.arange(1000) % 4 == 0
    bags, proportions = make_bags(labels, size=16)
    sizes = np.bincount(bags)
    assert (sizes[:-1] == 16).all() and sizes[-1] == 1000 % 16
    for bag in (0, 17, len(sizes) - 1):
        assert np.unique(proportions[bags == bag]).tolist() == [labels[bags == bag].mean()]
    sizes = np.bincount(make_bags(labels, size=(5, 20), seed=3)[0])
    assert sizes[:-1].min() >= 5 and sizes.max() <= 20 and len(np.unique(sizes)) > 5
    assert (make_bags(labels, size=16, seed=2)[0] != bags).any()


def scored(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = (rng.random(4000) < 0.3).astype(int)
    logits = rng.normal(size=4000) + 2.0 * labels - 1.5
    return labels, 1 / (1 + np.exp(-logits))


def test_estimates_from_bags_of_one_are_the_truth():
    labels, p = scored(1)
    found = evaluate(p, labels)
    decided = p > 0.5
    truths = {
        "log_loss": log_loss(labels, p),
        "brier": brier_score_loss(labels, p),
        "accuracy": accuracy_score(labels, decided),
        "auc": roc_auc_score(labels, p),
        "f1": f1_score(labels, decided),
        "balanced_accuracy": balanced_accuracy_score(labels, decided),
    }
    for name, truth in truths.items():
        assert found[name].value == pytest.approx(truth, abs=1e-5), name
    assert bag_metric("error", p, labels) == pytest.approx(1 - truths["accuracy"], abs=1e-6)


def test_intervals_from_bags_cover_the_truth():
    # Of seeds 1 to 20, dealt by the same seed, accuracy was covered by all intervals and AUC by 19.
    labels, p = scored(2)
    bags, proportions = make_bags(labels, size=10)
    found = evaluate(p, proportions, bags, curves=True)
    assert found["accuracy"].low <= accuracy_score(labels, p > 0.5) <= found["accuracy"].high
    assert found["auc"].low <= roc_auc_score(labels, p) <= found["auc"].high
    assert found["accuracy"].high - found["accuracy"].low < 0.1
    assert found.n_bags == 400 and set(found.curves) == {"confusion", "thresholds", "calibration", "lift"}
    assert found.curves["lift"][0]["lift"].value > 1
    width = lambda found: found["accuracy"].high - found["accuracy"].low
    assert width(evaluate(p, proportions, bags, level=0.99)) > 1.2 * width(found)
    drawn = evaluate(p, proportions, bags, bootstrap=200)
    assert drawn["accuracy"].value == found["accuracy"].value
    counts = {int(bag): int(labels[bags == bag].sum()) for bag in range(400)}
    assert evaluate(p, bags=bags, counts=counts)["auc"] == pytest.approx(found["auc"])


def test_intervals_of_rows_have_no_width_where_labels_are_known():
    # The rows are all there is, and each is known: no metric is a matter of chance.
    labels, p = scored(2)
    for classes in (2, 3):
        y = labels if classes == 2 else np.eye(3)[labels + (p < 0.2) * (1 - labels) * 2]
        q = p if classes == 2 else np.stack([1 - p, 0.7 * p, 0.3 * p], axis=1)
        of_rows, of_population = (evaluate(q, y, of=of) for of in ("rows", "population"))
        assert len(of_rows) >= 4
        for name in of_rows:
            value, low, high, error, _ = of_rows[name]
            assert value == of_population[name].value
            assert low == pytest.approx(value, abs=1e-9) and high == pytest.approx(value, abs=1e-9), (name, of_rows[name])
            assert error == pytest.approx(0, abs=1e-9)
            assert of_population[name].high - of_population[name].low > 0.005, name


def test_intervals_of_rows_are_narrower_than_those_of_the_population():
    labels, p = scored(2)
    bags, proportions = make_bags(labels, size=3)
    of_rows, of_population = (evaluate(p, proportions, bags, of=of) for of in ("rows", "population"))
    assert evaluate(p, proportions, bags) == of_population
    for name in ("log_loss", "accuracy"):
        assert of_rows[name].value == of_population[name].value
        assert of_rows[name].high - of_rows[name].low < of_population[name].high - of_population[name].low, name


def test_an_evaluation_can_be_read():
    labels, p = scored(3)
    text = str(evaluate(np.stack([1 - p, p], axis=1), labels))
    assert "log loss" in text and "95 % interval" in text and text.endswith("From 4000 bags.")
    assert str(evaluate(p, labels)["auc"]).count("to") == 1


def test_an_evaluation_is_a_table():
    pytest.importorskip("pandas")
    labels, p = scored(3)
    found = evaluate(p, labels)
    assert repr(found) == str(found)
    frame = found.to_frame()
    assert frame.index.tolist() == list(found) and frame.index.name == "metric"
    assert frame.columns.tolist() == ["value", "low", "high", "standard_error", "outside_range"]
    assert frame.loc["auc"].tolist() == list(found["auc"])


def test_a_frame_needs_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_frame needs pandas"):
        evaluate([0.9, 0.2], [1, 0]).to_frame()


def test_certain_predictions_do_not_make_a_metric_infinite():
    assert np.isfinite(bag_metric("log_loss", [0.0, 1.0, 1.0], [0, 1, 0]))


def test_bags_that_go_with_the_label_are_told():
    rng = np.random.default_rng(4)
    region = rng.integers(60, size=3000)
    labels = (rng.random(3000) < 0.2 + 0.4 * (region % 2)).astype(int)
    proportions = np.array([labels[region == r].mean() for r in range(60)])[region]
    X = np.stack([rng.normal(size=3000), region + rng.normal(size=3000)], axis=1)
    found = diagnose(proportions, region, X=X)
    assert found.verdict == "not_random" and found.ratio > 2 and found.p_value < 0.01
    assert [uneven["column"] for uneven in found.uneven] == [1]
    assert "do not look random" in str(found) and found.prior[1].low < labels.mean() < found.prior[1].high
    bags, proportions = make_bags(labels, size=50)
    found = diagnose(proportions, bags, X=X)
    assert found.verdict == "plausible" and found.uneven == []
    assert found.equivalent_rows < 3000


@pytest.mark.parametrize(
    ("ids", "n_bags"),
    [
        ([1, "1", 2], 3),
        ([2**63 + 1, 2**63 + 2, -1], 3),
        ([2**53, 2**53 + 1, 0.5], 3),
        (["a\x00", "a", "b"], 3),
        ([("a", 1), ("a", 1), ("b", 1)], 2),
        (np.array([[1, 2], [1, 2], [2, 1]]), 2),
        (np.array(["2026-01-01", "2026-01-01", "2026-01-02"], dtype="datetime64[D]"), 2),
    ],
)
def test_ids_are_told_apart(ids, n_bags):
    of_row, names = places(ids)
    assert len(names) == len(set(names)) == n_bags and of_row.max() == n_bags - 1


def test_ids_of_tables_and_reports_meet():
    pd = pytest.importorskip("pandas")
    days = pd.Series(pd.date_range("2026-01-01", periods=4)).repeat(5).reset_index(drop=True)
    for unit in ("s", "us", "ns"):
        for index in (days.unique(), pd.Index(days.unique()).astype(f"datetime64[{unit}]")):
            given = from_report(days.astype(f"datetime64[{unit}]"), pd.Series([1, 2, 3, 4], index=index))
            assert given.sizes.tolist() == [5] * 4
    by_day = from_report(days.to_numpy().astype("datetime64[D]"), pd.Series([1, 2, 3, 4], index=days.unique()))
    assert by_day.counts.tolist() == [1, 2, 3, 4]
    keys = pd.DataFrame({"a": [2**53, 2**53 + 1], "b": [0.5, 0.5]})
    assert len(places(keys)[1]) == 2
    pl = pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    for ids in (pl.Series(["x", "y", "x"]), pa.array(["x", "y", "x"]), pd.Series(["x", "y", "x"], dtype="string"), pd.Categorical(["x", "y", "x"])):
        assert places(ids)[1] == ["x", "y"]
    assert len(places(pa.table({"a": [1, 1, 2], "b": ["x", "x", "x"]}))[1]) == 2
    for missing in (["a", float("nan")], [1, pd.NA], pd.Series(["a", None], dtype="string"), pa.array(["a", None]), pd.DataFrame({"a": [1, 1], "b": [0.5, np.nan]}), [("a", None), ("a", 1)]):
        with pytest.raises(ValueError, match="has no bag id"):
            places(missing)
