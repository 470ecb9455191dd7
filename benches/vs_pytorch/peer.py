"""PyTorch's side of the comparison: trains one workload one way and prints the milliseconds of each epoch as JSON.

`peer.py W2 1 5 fused` trains the workload W2 on 1 thread, one epoch to warm up and 5 to be timed, with fused Adam.
`peer.py W2 ways` prints the ways that make sense for a workload.
"""

import json
import sys
import time

import torch
from torch import nn

ROWS, TABLE_ROWS, FIELDS, BUCKETS = 12_000, 100_000, 26, 1 << 18


def mlp(*widths):
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 8, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), mlp(256, 120, 84, 1),
    )  # fmt: skip


def cnn(channels, side):
    return nn.Sequential(
        nn.Conv2d(channels, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), mlp(64 * (side // 4) ** 2, 128, 1),
    )  # fmt: skip


class Table(nn.Module):
    """13 numbers and 26 fields in one embedding table, the ids of a field shifted behind those of the field before."""

    def __init__(self, sparse):
        super().__init__()
        self.embeddings = nn.Embedding(FIELDS * BUCKETS, 16, sparse=sparse)
        self.head = mlp(13 + FIELDS * 16, 256, 128, 1)

    def forward(self, numbers, lines):
        return self.head(torch.cat([numbers, self.embeddings(lines).flatten(1)], 1))


DENSE, IMAGES = ["eager", "fused", "compile"], ["eager", "fused", "channels_last", "compile"]
WORKLOADS = {
    "W1": (DENSE, [784], lambda: nn.Linear(784, 1)),
    "W1b": (DENSE, [784], lambda: nn.Linear(784, 32)),
    "W2": (DENSE, [784], lambda: mlp(784, 256, 128, 1)),
    "W3": (IMAGES, [1, 28, 28], lenet),
    "W4": (IMAGES, [1, 28, 28], lambda: cnn(1, 28)),
    "W5": (["sparse", "fused", "compile_sparse"], None, None),
    "W6": (IMAGES, [3, 32, 32], lambda: cnn(3, 32)),
}


def main():
    name, threads = sys.argv[1:3]
    ways, shape, build = WORKLOADS[name]
    if threads == "ways":
        print(*ways)
        return
    epochs, way = int(sys.argv[3]), sys.argv[4]
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    if name == "W5":
        sparse = "sparse" in way
        features = (torch.rand(TABLE_ROWS, 13) * 2 - 1,
                    torch.randint(BUCKETS, (TABLE_ROWS, FIELDS)) + BUCKETS * torch.arange(FIELDS))
        model, batch_size = Table(sparse), 1024
    else:
        sparse = False
        features, model, batch_size = (torch.rand(ROWS, *shape),), build(), 256
    if way == "channels_last":
        features = (features[0].contiguous(memory_format=torch.channels_last),)
        model = model.to(memory_format=torch.channels_last)
    with torch.no_grad():
        n_scores = model(*(feature[:2] for feature in features)).shape[1]
    n_rows = len(features[0])
    targets = torch.rand(n_rows, n_scores) * 1.4 - 0.2

    if sparse:
        head = [parameter for name, parameter in model.named_parameters() if not name.startswith("embeddings")]
        optimizers = [torch.optim.SparseAdam(model.embeddings.parameters(), lr=1e-3),
                      torch.optim.Adam(head, lr=1e-3, fused=True)]
    else:
        optimizers = [torch.optim.Adam(model.parameters(), lr=1e-3, fused=way != "eager")]

    def loss_of(*batch):
        *features, targets = batch
        scores = model(*features)
        return (nn.functional.softplus(scores) - targets * scores).sum() / len(targets)

    if "compile" in way:
        loss_of = torch.compile(loss_of)

    times, losses = [], []
    for _ in range(epochs + 1):
        start = time.perf_counter()
        order, sum_of_losses = torch.randperm(n_rows), torch.zeros(())
        for members in order.split(batch_size):
            loss = loss_of(*(feature[members] for feature in features), targets[members])
            for optimizer in optimizers:
                optimizer.zero_grad(set_to_none=True)
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            sum_of_losses += loss.detach() * len(members)
        losses.append(float(sum_of_losses) / n_rows)
        times.append(1e3 * (time.perf_counter() - start))
    print(json.dumps({"ms": times[1:], "loss": losses[-1]}))


if __name__ == "__main__":
    main()
