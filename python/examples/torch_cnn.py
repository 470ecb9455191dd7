"""A PyTorch network on MNIST, even against odd digits, that sees counts of bags of 32 images and not one label.

    python torch_cnn.py [--out figure.svg] [--epochs 6] [--seed 1]

Needs PyTorch, and the data: `easyllp datasets get mnist`. The test accuracy is 0.97 to 0.98, after some minutes. It
is a failure below 0.955.
"""

import argparse
import sys

import numpy as np
import torch
from _data import mnist
from _figure import draw
from torch import nn

import easyllp
from easyllp.torch import BagBatchSampler, CountLikelihoodLoss

EPOCHS = 6
# The minimum test accuracy expected after this many epochs.
LEAST = 0.955


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--out", help="draw the figure into this file, .svg or .png")
    options.add_argument("--epochs", type=int, default=EPOCHS)
    options.add_argument("--seed", type=int, default=1)
    options = options.parse_args()
    torch.manual_seed(options.seed)

    # Images are dealt into bags of 32, and from here on only the share of odd digits in each bag is known.
    images, digits, test_images, test_digits = mnist()
    bags, shares = easyllp.make_bags(digits % 2, 32, seed=options.seed)
    images, test_images = torch.from_numpy(images)[:, None], torch.from_numpy(test_images)[:, None]

    # A tenth of the bags is held out, to see how good the network is.
    held_out = np.isin(bags, np.unique(bags)[::10])
    train_images = images[~held_out]
    sampler = BagBatchSampler(bags[~held_out], 4, seed=options.seed)
    counts = sampler.counts(shares[~held_out])

    model = nn.Sequential(
        *(nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 1)),
    )
    loss = CountLikelihoodLoss()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, options.epochs * len(sampler))
    estimates = []
    for epoch in range(options.epochs):
        for batch in sampler:
            optimiser.zero_grad()
            loss(model(train_images[batch]), sampler.places[batch], counts).backward()
            optimiser.step()
            schedule.step()
        predicted = predict(model, images[held_out])
        estimates.append(easyllp.bag_metric("accuracy", predicted, shares[held_out], bags[held_out]))
        print(f"epoch {epoch + 1}: accuracy {estimates[-1]:.3f} from held-out bags", flush=True)

    # Labels are looked at now, and not before.
    accuracy = np.mean((predict(model, test_images) > 0.5) == (test_digits % 2 == 1))
    print(f"test accuracy {accuracy:.4f}")

    def plot(axes):
        axes.plot(range(1, len(estimates) + 1), estimates, "o-", label="from counts of held-out bags")
        axes.axhline(accuracy, color="C1", linestyle="--", label="on test labels, in the end")

    draw(options.out, plot, xlabel="epoch", ylabel="accuracy", title="MNIST, even against odd, in bags of 32")
    if options.epochs >= EPOCHS and accuracy < LEAST:
        sys.exit(f"the test accuracy is {accuracy:.4f}, below {LEAST}")


@torch.no_grad()
def predict(model, images):
    return torch.cat([torch.sigmoid(model(part)[:, 0]) for part in images.split(1000)]).numpy()


if __name__ == "__main__":
    main()
