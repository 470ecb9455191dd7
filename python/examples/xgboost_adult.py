"""XGBoost and LightGBM on census data (Adult) in bags: who earns over 50K, learnt from a count a bag.

    python xgboost_adult.py [--out figure.svg] [--sizes 8 32] [--seed 1]

Needs XGBoost and LightGBM, or one of them, and pandas. Settings and the number of rounds are chosen by the Brier score
of held-out bags, without a label. Test labels are looked at in the end, to see how well that went: the test AUC is
about 0.91 in bags of 8 and 0.90 in bags of 32, where row labels give 0.93.
"""

import argparse
import itertools

import numpy as np
from _figure import draw
from sklearn.metrics import roc_auc_score

import easyllp
import easyllp.lightgbm
import easyllp.xgboost

DEPTHS = [2, 3]
LEAST_HESSIANS = [20, 60]  # of a leaf: targets are noisy, and leaves have to be large
MOST_ROUNDS, PATIENCE = 400, 50


def with_xgboost(rows, targets, depth, hessian, rounds=MOST_ROUNDS, held_out=None):
    """A function that predicts, how many rounds it has, and its Brier score on held-out (rows, shares, bags)."""
    import xgboost

    def matrix(rows):
        return xgboost.DMatrix(rows, enable_categorical=True)

    stopping = {}
    if held_out:
        stopping = {
            "evals": [(matrix(held_out[0]), "held_out")],
            "custom_metric": easyllp.xgboost.metric("brier", *held_out[1:]),
            "early_stopping_rounds": PATIENCE,
            "verbose_eval": False,
        }
    parameters = {
        **easyllp.xgboost.parameters(targets),
        **{"max_depth": depth, "min_child_weight": hessian, "eta": 0.05, "subsample": 0.5, "colsample_bytree": 0.6},
        **{"nthread": 1, "seed": 1},
    }
    model = xgboost.train(parameters, matrix(rows), rounds, obj=easyllp.xgboost.objective(targets), **stopping)
    if held_out:
        rounds = model.best_iteration + 1
    score = model.best_score if held_out else None
    return lambda rows: model.predict(matrix(rows), iteration_range=(0, rounds)), rounds, score


def with_lightgbm(rows, targets, depth, hessian, rounds=MOST_ROUNDS, held_out=None):
    """The same with LightGBM."""
    import lightgbm

    data = lightgbm.Dataset(rows, label=targets)
    stopping = {}
    if held_out:
        stopping = {
            "valid_sets": [lightgbm.Dataset(held_out[0], reference=data)],
            "feval": easyllp.lightgbm.metric("brier", *held_out[1:]),
            "callbacks": [lightgbm.early_stopping(PATIENCE, verbose=False)],
        }
    parameters = {
        "objective": easyllp.lightgbm.objective(),
        **{"max_depth": depth, "num_leaves": 2**depth, "min_sum_hessian_in_leaf": hessian, "learning_rate": 0.05},
        **{"bagging_fraction": 0.5, "bagging_freq": 1, "feature_fraction": 0.6},
        **{"num_threads": 1, "seed": 1, "deterministic": True, "verbose": -1},
    }
    model = lightgbm.train(parameters, data, rounds, **stopping)
    if held_out:
        rounds = model.best_iteration
    score = model.best_score["valid_0"]["brier"] if held_out else None
    return lambda rows: easyllp.lightgbm.probabilities(model.predict(rows, num_iteration=rounds)), rounds, score


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--out", help="draw the figure into this file, .svg or .png")
    options.add_argument("--sizes", type=int, nargs="+", default=[8, 32], help="how many rows bags have")
    options.add_argument("--seed", type=int, default=1)
    options = options.parse_args()
    train_part, test_part = easyllp.datasets.adult()
    rows = train_part.X

    points = {}
    libraries = {"XGBoost": with_xgboost, "LightGBM": with_lightgbm}
    for size, (library, train) in itertools.product(options.sizes, libraries.items()):
        # Rows are dealt into bags, and from here on only the share of positive rows in each bag is known.
        bags, shares = easyllp.make_bags(train_part.y, size, seed=options.seed)
        # A fifth of the bags is held out. Targets come from the bags that are trained on, and from no others.
        held_out = np.isin(bags, np.unique(bags)[::5])
        targets = easyllp.soft_targets(shares[~held_out], bags[~held_out])
        judges = rows[held_out], shares[held_out], bags[held_out]
        tried = {}
        try:
            for setting in itertools.product(DEPTHS, LEAST_HESSIANS):
                tried[setting] = train(rows[~held_out], targets, *setting, held_out=judges)
        except ImportError as missing:
            print(f"{library} is left out: {missing}")
            continue
        best = min(tried, key=lambda setting: tried[setting][2])
        _, rounds, brier = tried[best]
        # The chosen setting once more, on all bags.
        predict, _, _ = train(rows, easyllp.soft_targets(shares, bags), *best, rounds=rounds)
        print(
            f"{library}, bags of {size}: depth {best[0]}, least hessian {best[1]}, {rounds} rounds; Brier score "
            f"{brier:.4f} from held-out bags; test AUC {roc_auc_score(test_part.y, predict(test_part.X)):.4f}",
            flush=True,
        )
        points[f"{library}, bags of {size}"] = np.array(
            [(brier, roc_auc_score(test_part.y, predict(test_part.X))) for predict, _, brier in tried.values()]
        )

    def plot(axes):
        for color, (name, of_settings) in enumerate(points.items()):
            axes.plot(*of_settings.T, "o", color=f"C{color}", label=name)
            chosen = of_settings[of_settings[:, 0].argmin()]
            axes.plot(*chosen, "o", color=f"C{color}", markersize=13, fillstyle="none")

    draw(
        options.out,
        plot,
        xlabel="Brier score from held-out bags (chosen: circled)",
        ylabel="AUC on test labels",
        title="Settings on Adult",
    )


if __name__ == "__main__":
    main()
