"""EasyLLP in Keras: a small network on MNIST, even against odd digits, in bags of 8; the loss is one line.

    python keras_example.py [--out figure.svg] [--epochs 5] [--size 8] [--seed 1]

Needs Keras with any of its backends, and the data: `easyllp datasets get mnist`. Prints the test accuracy.
"""

import argparse
import importlib.util
import os

import numpy as np
from _data import mnist
from _figure import draw

import easyllp

if "KERAS_BACKEND" not in os.environ:
    # Keras would take TensorFlow, installed or not.
    installed = [name for name in ("jax", "torch", "tensorflow") if importlib.util.find_spec(name)]
    os.environ["KERAS_BACKEND"] = installed[0] if installed else "numpy"
import keras


def corrected_loss(targets, scores):
    """ℓ(f, 0) + A·(ℓ(f, 1) − ℓ(f, 0)) for the squared loss of the probability h: h² + A·((1 − h)² − h²)."""
    h = keras.ops.sigmoid(scores)
    return h**2 + targets * (1 - 2 * h)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--out", help="draw the figure into this file, .svg or .png")
    options.add_argument("--epochs", type=int, default=5)
    options.add_argument("--size", type=int, default=8, help="how many images a bag has")
    options.add_argument("--seed", type=int, default=1)
    options = options.parse_args()
    keras.utils.set_random_seed(options.seed)

    # Images are dealt into bags, and from here on only the share of odd digits in each bag is known.
    images, digits, test_images, test_digits = mnist()
    bags, shares = easyllp.make_bags(digits % 2, options.size, seed=options.seed)
    held_out = np.isin(bags, np.unique(bags)[::10])
    targets = easyllp.soft_targets(shares[~held_out], bags[~held_out])

    layers = keras.layers
    hidden = [layers.Dense(256, activation="relu"), layers.Dense(128, activation="relu")]
    model = keras.Sequential([keras.Input((28, 28)), layers.Flatten(), *hidden, layers.Dense(1)])
    model.compile(keras.optimizers.Adam(1e-3), corrected_loss)

    def predict(images):
        return 1 / (1 + np.exp(-model.predict(images, batch_size=1000, verbose=0)[:, 0]))

    estimates = []
    for epoch in range(options.epochs):
        model.fit(images[~held_out], targets[:, None].astype(np.float32), batch_size=256, verbose=0)
        estimates.append(easyllp.bag_metric("accuracy", predict(images[held_out]), shares[held_out], bags[held_out]))
        print(f"epoch {epoch + 1}: accuracy {estimates[-1]:.3f} from held-out bags", flush=True)

    accuracy = np.mean((predict(test_images) > 0.5) == (test_digits % 2 == 1))
    print(f"test accuracy {accuracy:.4f}")

    def plot(axes):
        axes.plot(range(1, len(estimates) + 1), estimates, "o-", label="from counts of held-out bags")
        axes.axhline(accuracy, color="C1", linestyle="--", label="on test labels, in the end")

    title = f"MNIST, even against odd, in bags of {options.size}"
    draw(options.out, plot, xlabel="epoch", ylabel="accuracy", title=title)


if __name__ == "__main__":
    main()
