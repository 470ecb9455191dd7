"""Losses of five Adam steps in PyTorch, to which engine.rs compares ours: `python engine_reference.py`.

All numbers come from formulas, in double precision, stored as f32:
  parameter i of block b     0.1·sin(0.7·q(i) + b)   blocks in order, weights before bias; i counts through the block as
                                                     it lies in memory: dense weights inputs × outputs, convolutions
                                                     outputs × inputs × height × width, embeddings lines × width
  feature c of row r         sin(0.37·q(r·d + c))    d features; images channel by channel, line by line
  id of row r in field f     (7·r + 13·f + r·f) mod 256
  target of row r            0.5 + 1.5·sin(0.9·r)
with q(i) = i² mod 10007, which keeps rows and columns of a matrix from being alike.
One batch of 256 rows, so that order does not matter; the loss is the mean of softplus(f) − A·f before each step.
Tables are trained with SparseAdam, all else with Adam, both with a learning rate of 1e-3. SparseAdam adds its ε before
the correction of young squares, Adam and we after it: with a table ε is 1e-12, so that it does not matter.
"""

import numpy
import torch
from torch import nn

ROWS, FIELDS, BUCKETS, WIDTH = 256, 26, 256, 16


def q(n):
    return numpy.arange(n) ** 2 % 10007


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
    def __init__(self):
        super().__init__()
        self.embeddings = nn.Embedding(FIELDS * BUCKETS, WIDTH, sparse=True)
        self.head = mlp(13 + FIELDS * WIDTH, 256, 128, 1)

    def forward(self, numbers):
        rows, fields = numpy.ogrid[:ROWS, :FIELDS]
        ids = (7 * rows + 13 * fields + rows * fields) % BUCKETS
        lines = torch.tensor(ids + BUCKETS * fields)
        return self.head(torch.cat([numbers, self.embeddings(lines).flatten(1)], 1))


def set_parameters(model):
    with torch.no_grad():
        for block, parameter in enumerate(model.parameters()):
            values = 0.1 * numpy.sin(0.7 * q(parameter.numel()) + block)
            values = torch.tensor(values, dtype=torch.float32)
            is_dense = parameter.dim() == 2 and not (isinstance(model, Table) and block == 0)
            # PyTorch keeps dense weights as outputs × inputs.
            parameter.copy_(values.reshape(parameter.shape[::-1]).T if is_dense else values.reshape(parameter.shape))


def losses(model, shape):
    set_parameters(model)
    d = numpy.prod(shape)
    features = torch.tensor(numpy.sin(0.37 * q(ROWS * d)), dtype=torch.float32).reshape(ROWS, *shape)
    targets = torch.tensor(0.5 + 1.5 * numpy.sin(0.9 * numpy.arange(ROWS)), dtype=torch.float32).reshape(ROWS, 1)
    parameters = list(model.parameters())
    optimizers = []
    if isinstance(model, Table):
        optimizers.append(torch.optim.SparseAdam([parameters.pop(0)], lr=1e-3, eps=1e-12))
    optimizers.append(torch.optim.Adam(parameters, lr=1e-3, eps=1e-12 if optimizers else 1e-8))
    for _ in range(5):
        scores = model(features)
        loss = (nn.functional.softplus(scores) - targets * scores).mean()
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        yield float(loss.detach().double())


if __name__ == "__main__":
    print(f"// PyTorch {torch.__version__}")
    for name, model, shape in [
        ("MLP", mlp(784, 256, 128, 1), [784]),
        ("LENET", lenet(), [1, 28, 28]),
        ("CNN_28", cnn(1, 28), [1, 28, 28]),
        ("TABLE", Table(), [13]),
        ("CNN_32", cnn(3, 32), [3, 32, 32]),
    ]:
        print(f"const {name}: [f64; 5] = [{', '.join(f'{loss:.7f}' for loss in losses(model, shape))}];")
