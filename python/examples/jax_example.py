"""EasyLLP in JAX: logistic regression on handwritten digits, even against odd, in bags of 8; the loss is two lines.

    python jax_example.py [--out figure.svg] [--size 8] [--seed 1]

Needs JAX. EasyLLP, the naive baseline, which takes a bag's share for the label of its rows, and row labels are compared on
test labels. Where classes are balanced, the naive baseline ranks rows well, but what it says are no probabilities: they
hardly leave the overall share.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from _figure import draw
from sklearn.calibration import calibration_curve
from sklearn.metrics import log_loss, roc_auc_score

import easyllp


def corrected_loss(weights, rows, targets, l2):
    """The mean of ℓ(f, 0) + A·(ℓ(f, 1) − ℓ(f, 0)): for log loss ℓ(f, 0) = log(1 + eᶠ), and the difference is −f."""
    scores = rows @ weights[1:] + weights[0]
    return jnp.mean(jax.nn.softplus(scores) - targets * scores) + l2 * jnp.sum(weights[1:] ** 2)


@jax.jit
def train(rows, targets, l2=0.003, steps=1000, rate=0.3):
    """Gradient descent with momentum; the loss is convex, wherever targets are."""

    def step(_, state):
        weights, speed = state
        speed = 0.9 * speed - rate * jax.grad(corrected_loss)(weights, rows, targets, l2)
        return weights + speed, speed

    start = jnp.zeros(rows.shape[1] + 1)
    return jax.lax.fori_loop(0, steps, step, (start, start))[0]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--out", help="draw the figure into this file, .svg or .png")
    options.add_argument("--size", type=int, default=8, help="how many rows a bag has")
    options.add_argument("--seed", type=int, default=1)
    options = options.parse_args()

    train_part, test_part = easyllp.datasets.optdigits()
    labels, test_labels = train_part.y % 2, test_part.y % 2
    bags, shares = easyllp.make_bags(labels, options.size, seed=options.seed)
    ways = {"EasyLLP": easyllp.soft_targets(shares, bags), "naive": shares, "row labels": labels}
    curves = {}
    for name, targets in ways.items():
        weights = train(jnp.asarray(train_part.X), jnp.asarray(targets, dtype=jnp.float32))
        said = np.asarray(jax.nn.sigmoid(test_part.X @ weights[1:] + weights[0]))
        curves[name] = calibration_curve(test_labels, said, n_bins=10, strategy="quantile")[::-1]
        loss, auc = log_loss(test_labels, said), roc_auc_score(test_labels, said)
        print(f"{name}: test log loss {loss:.3f}, AUC {auc:.3f}", flush=True)

    def plot(axes):
        for name, curve in curves.items():
            axes.plot(*curve, "o-", label=name)

    title = f"Digits, even against odd, in bags of {options.size}"
    draw(options.out, plot, xlabel="predicted probability, ten groups of rows", ylabel="share of odd digits", title=title)


if __name__ == "__main__":
    main()
