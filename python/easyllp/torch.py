"""PyTorch on bags: losses for any network, and batches of whole bags.

`EasyLLPLoss` is a loss of single rows, for any minibatches: each row has a soft target. `ProportionMatchingLoss` and
`CountLikelihoodLoss` are losses of whole bags, and require batches of whole bags from `BagBatchSampler`. EasyLLP is
unbiased for any loss and model. The likelihood of counts has less variance, and usually gives a better model from the
same bags if the network is large enough.

Examples
--------
>>> import numpy as np
>>> import torch
>>> import easyllp
>>> from easyllp.torch import BagBatchSampler, CountLikelihoodLoss
>>> rows = torch.randn(2048, 2, generator=torch.Generator().manual_seed(1))
>>> positive = rows[:, 0] > 0
>>> ids, y = easyllp.make_bags(positive.numpy(), 8, seed=1)
>>> sampler = BagBatchSampler(ids, 16, seed=1)
>>> counts = sampler.counts(y)
>>> _ = torch.manual_seed(1)
>>> model, loss = torch.nn.Linear(2, 1), CountLikelihoodLoss()
>>> optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
>>> for epoch in range(5):
...     for batch in sampler:
...         optimiser.zero_grad()
...         loss(model(rows[batch]), sampler.places[batch], counts).backward()
...         optimiser.step()
>>> bool(((model(rows)[:, 0] > 0) == positive).float().mean() > 0.95)
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from easyllp._bags import from_proportions, places
from easyllp._settings import checked_seed, whole_number

__all__ = ["BagBatchSampler", "CountLikelihoodLoss", "EasyLLPLoss", "ProportionMatchingLoss"]

REDUCTIONS = ("mean", "sum", "none")

# Replaces the logarithm of zero: infinities would make the gradients of impossible terms NaN instead of zero.
IMPOSSIBLE = -1e30


class EasyLLPLoss(nn.Module):  # type: ignore[misc, unused-ignore]
    """Any loss of single rows, corrected so that it is unbiased under soft targets: Σ_c A_c ℓ(f, c).

    For two classes that is ℓ(f, 0) + A·(ℓ(f, 1) − ℓ(f, 0)) (eq. *simple_tlalpha* of the paper). Targets may be outside
    of [0, 1] and so the corrected loss may be negative: it is an unbiased estimate. Large networks overfit
    its noise; use early stopping on the Brier score of validation bags, and prefer a squared loss to log loss.

    Parameters
    ----------
    loss : callable, optional
        ``loss(scores, labels)`` returns one number per row. Scores of one column come with labels 0. and 1. of the same
        shape and dtype, as `torch.nn.BCEWithLogitsLoss` wants them; scores of several columns with whole numbers, one per
        row, as `torch.nn.CrossEntropyLoss` does. Modules of PyTorch need ``reduction="none"``. By default log loss.
    reduction : {"mean", "sum", "none"}
        How the losses of the rows are reduced.

    Examples
    --------
    >>> import torch
    >>> loss = EasyLLPLoss()
    >>> scores = torch.tensor([0.0, 2.0])
    >>> targets = torch.tensor([1.5, -0.5])  # from easyllp.soft_targets
    >>> round(loss(scores, targets).item(), 4)
    1.91
    >>> squared = EasyLLPLoss(lambda scores, labels: (torch.sigmoid(scores) - labels) ** 2)
    >>> squared(scores, targets).shape
    torch.Size([])
    """

    def __init__(self, loss: Callable[[Tensor, Tensor], Tensor] | None = None, *, reduction: str = "mean") -> None:
        super().__init__()
        reduced = getattr(loss, "reduction", "none")
        if reduced != "none":
            raise ValueError(f"the loss has reduction={reduced!r}: each row's own is needed, reduction='none'")
        self.loss = loss
        self.reduction = _checked("reduction", reduction, REDUCTIONS)

    def forward(self, scores: Tensor, targets: Tensor) -> Tensor:
        """The corrected loss.

        Parameters
        ----------
        scores : Tensor of shape (n_rows,), (n_rows, 1) or (n_rows, n_classes)
            The network's output for each row.
        targets : Tensor of shape (n_rows,) or (n_rows, n_classes)
            Soft targets of the same rows, from `easyllp.soft_targets`.
        """
        n_rows = len(scores)
        # Whatever dtype targets have, the loss keeps that of the scores.
        targets = targets.to(device=scores.device, dtype=scores.dtype)
        if targets.ndim == 2 and targets.shape[1] == 1:
            targets = targets[:, 0]
        n_classes = scores.shape[1] if scores.ndim == 2 and scores.shape[1] > 1 else 2
        expected = (n_rows,) if targets.ndim == 1 and n_classes == 2 else (n_rows, n_classes)
        if scores.ndim not in (1, 2) or targets.shape != expected:
            raise ValueError(
                f"scores have the shape {tuple(scores.shape)} and targets {tuple(targets.shape)}: one line per row is "
                "needed in both, and targets of several classes need a score for each"
            )
        if targets.ndim == 1:
            negative, positive = (self._of_class(scores, label) for label in (0, 1))
            losses = negative + targets * (positive - negative)
        else:
            losses = torch.stack([targets[:, c] * self._of_class(scores, c) for c in range(n_classes)]).sum(dim=0)
        return _reduced(losses, self.reduction)

    def _of_class(self, scores: Tensor, label: int) -> Tensor:
        """The loss of each row with this label."""
        several = scores.ndim == 2 and scores.shape[1] > 1
        if several:
            labels = torch.full((len(scores),), label, dtype=torch.long, device=scores.device)
        else:
            labels = torch.full_like(scores, float(label))
        if self.loss is not None:
            losses = self.loss(scores, labels)
        elif several:
            losses = functional.cross_entropy(scores, labels, reduction="none")
        else:
            losses = functional.binary_cross_entropy_with_logits(scores, labels, reduction="none")
        if losses.numel() != len(scores):
            raise ValueError(
                f"the loss returned the shape {tuple(losses.shape)} for {len(scores)} rows: expected one number per "
                "row (reduction='none')"
            )
        return losses.reshape(-1)


class ProportionMatchingLoss(nn.Module):  # type: ignore[misc, unused-ignore]
    """The mean prediction of a bag against the proportion that it reports (DLLP; Ardehali & Culotta 2017).

    Parameters
    ----------
    distance : {"cross_entropy", "squared"}
        −Σ_c α_c log h̄_c, or Σ_c (α_c − h̄_c)², over class 1 only if there are two; h̄ is the bag's mean probability.
    reduction : {"mean", "sum", "none"}
        How the losses of the bags are reduced.

    Examples
    --------
    >>> import torch
    >>> loss = ProportionMatchingLoss("squared")
    >>> scores = torch.zeros(4)  # all rows have the probability 0.5
    >>> loss(scores, bags=torch.tensor([0, 0, 1, 1]), counts=torch.tensor([1, 2])).item()
    0.125
    """

    def __init__(self, distance: str = "cross_entropy", *, reduction: str = "mean") -> None:
        super().__init__()
        self.distance = _checked("distance", distance, ("cross_entropy", "squared"))
        self.reduction = _checked("reduction", reduction, REDUCTIONS)

    def forward(self, scores: Tensor, bags: Tensor, counts: Tensor) -> Tensor:
        """The loss of the bags whose rows are here; parameters as those of `CountLikelihoodLoss.forward`."""
        logs, _, counts, layout = _whole_bags(scores, bags, counts)
        sizes = layout.sizes.to(logs.dtype)[:, None]
        log_means = torch.logsumexp(layout.padded(logs, IMPOSSIBLE), dim=1) - sizes.log()
        if self.distance == "cross_entropy":
            losses = -(counts / sizes * log_means).sum(dim=1)
        else:
            squares = (counts / sizes - log_means.exp()) ** 2
            losses = squares[:, 1] if squares.shape[1] == 2 else squares.sum(dim=1)
        return _reduced(losses, self.reduction)


class CountLikelihoodLoss(nn.Module):  # type: ignore[misc, unused-ignore]
    """−log P(count): the negative log-likelihood of a bag's count, if rows are independent with the predicted probabilities.

    The number of positive rows then has the Poisson-binomial distribution, which is computed exactly, row by row and in
    logarithms; a bag of k rows takes k steps over at most k + 1 counts. The derivative in a row's log-odds is q − E[y |
    count], the probability minus the probability given the count. Several classes are treated one against the
    rest, and their losses are added (a composite likelihood).

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
        How the losses of the bags are reduced.

    Examples
    --------
    >>> import torch
    >>> scores = torch.zeros(2)  # two rows with the probability 0.5: one of them is positive in half of all cases
    >>> loss = CountLikelihoodLoss()(scores, bags=torch.tensor([0, 0]), counts=torch.tensor([1]))
    >>> round(loss.exp().item(), 6)
    2.0
    """

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = _checked("reduction", reduction, REDUCTIONS)

    def forward(self, scores: Tensor, bags: Tensor, counts: Tensor) -> Tensor:
        """The loss of the bags whose rows are here.

        Parameters
        ----------
        scores : Tensor of shape (n_rows,), (n_rows, 1) or (n_rows, n_classes)
            Log-odds of class 1, or one score per class, of the rows of whole bags, in any order.
        bags : Tensor of shape (n_rows,), of whole numbers
            The index of each row's bag in `counts`.
        counts : Tensor of shape (n_bags,) or (n_bags, n_classes)
            How many rows of each bag are positive, or in each class; of all bags, or of those in this batch.
        """
        logs, log_others, counts, layout = _whole_bags(scores, bags, counts)
        # The second of two classes is redundant.
        classes = [1] if logs.shape[1] == 2 else list(range(logs.shape[1]))
        yes = layout.padded(logs[:, classes], IMPOSSIBLE)
        no = layout.padded(log_others[:, classes], 0.0)
        wanted = counts[:, classes].long()
        n_bags, size, n_classes = yes.shape
        # distribution[b, c, m]: the logarithm of the probability of m positive rows among those seen so far. What is
        # more than the largest count of the batch is not needed.
        distribution = yes.new_full((n_bags, n_classes, int(wanted.max()) + 1), IMPOSSIBLE)
        distribution[:, :, 0] = 0.0
        for row in range(size):
            one_more = functional.pad(distribution[:, :, :-1], (1, 0), value=IMPOSSIBLE)
            distribution = torch.logaddexp(distribution + no[:, row, :, None], one_more + yes[:, row, :, None])
        losses = -distribution.gather(2, wanted[:, :, None])[:, :, 0].sum(dim=1)
        return _reduced(losses, self.reduction)


class BagBatchSampler(torch.utils.data.Sampler[list[int]]):  # type: ignore[misc, unused-ignore]
    """Batches of whole bags, for ``DataLoader(batch_sampler=…)`` or your own loop.

    The order of bags is drawn again in each epoch, from the seed and the number of the epoch alone. Epochs are counted
    automatically; `set_epoch` sets the number of the next one, to resume training.

    Parameters
    ----------
    bags : array-like of shape (n_rows,)
        The bag id of each row, of any hashable type.
    bags_per_batch : int
        How many bags a batch has.
    shuffle : bool
        Whether to shuffle the bags; otherwise they are in the order of their first rows.
    seed : int
        The seed of the order.
    drop_last : bool
        Whether to leave out the last bags of an epoch if they do not make a whole batch.

    Attributes
    ----------
    places : Tensor of shape (n_rows,)
        The index of each row's bag in `names`: the argument `bags` of the losses.
    names : list
        The ids of the bags.

    Examples
    --------
    >>> sampler = BagBatchSampler(["a", "b", "a", "c"], bags_per_batch=2, shuffle=False)
    >>> list(sampler)
    [[0, 2, 1], [3]]
    >>> sampler.places.tolist()
    [0, 1, 0, 2]
    """

    def __init__(
        self, bags: Any, bags_per_batch: int = 1, *, shuffle: bool = True, seed: int = 1, drop_last: bool = False
    ) -> None:
        bags_per_batch, seed = whole_number("bags_per_batch", bags_per_batch, 1), checked_seed(seed)
        of_row, self.names = places(bags)
        self.places = torch.from_numpy(of_row.astype(np.int64))
        sizes = np.bincount(of_row, minlength=len(self.names))
        self._rows = np.split(np.argsort(of_row, kind="stable"), np.cumsum(sizes)[:-1])
        self.bags_per_batch = bags_per_batch
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the next epoch; the first one is 0."""
        self.epoch = epoch

    def counts(self, y: Any) -> Tensor:
        """The counts of the bags, in the order of `names`.

        Parameters
        ----------
        y : array-like of shape (n_rows,) or (n_rows, n_classes)
            The share of positive rows, or of each class, in each row's bag.
        """
        return torch.from_numpy(from_proportions(y, self.places.numpy()).counts)

    def __iter__(self) -> Iterator[list[int]]:
        order = np.arange(len(self._rows))
        if self.shuffle:
            order = np.random.default_rng((self.seed, self.epoch)).permutation(order)
        self.epoch += 1
        for batch in range(len(self)):
            chosen = order[batch * self.bags_per_batch : (batch + 1) * self.bags_per_batch]
            yield np.concatenate([self._rows[bag] for bag in chosen]).tolist()

    def __len__(self) -> int:
        whole, rest = divmod(len(self._rows), self.bags_per_batch)
        return whole + (rest > 0 and not self.drop_last)


class _Layout:
    """Where rows of bags of several sizes are in an array with a line for each bag."""

    def __init__(self, bag: Tensor, sizes: Tensor) -> None:
        self.sizes = sizes
        self.order = torch.argsort(bag, stable=True)
        starts = torch.cumsum(sizes, 0) - sizes
        self.line = bag[self.order]
        self.place = torch.arange(len(bag), device=bag.device) - starts[self.line]

    def padded(self, of_rows: Tensor, pad: float) -> Tensor:
        """Values of rows, (n_rows, n_columns), as (n_bags, size of the largest, n_columns)."""
        shape = (len(self.sizes), int(self.sizes.max()), of_rows.shape[1])
        return of_rows.new_full(shape, pad).index_put((self.line, self.place), of_rows[self.order])


def _whole_bags(scores: Tensor, bags: Tensor, counts: Tensor) -> tuple[Tensor, Tensor, Tensor, _Layout]:
    """Log probabilities of rows' classes and of their opposites; the counts of the bags that are here, and a layout."""
    if not scores.is_floating_point() or scores.ndim not in (1, 2):
        raise ValueError(
            f"scores must be real numbers of shape (n_rows,) or (n_rows, n_columns), not {tuple(scores.shape)}"
        )
    if len(scores) == 0 or bags.shape != (len(scores),):
        raise ValueError(
            f"there are {len(scores)} scores and bags has the shape {tuple(bags.shape)}: one index per row is required, "
            "and at least one row"
        )
    if scores.dtype in (torch.float16, torch.bfloat16):
        scores = scores.float()  # sums of many logarithms need more digits
    present, bag, sizes = torch.unique(bags.to(scores.device), return_inverse=True, return_counts=True)
    if present.is_floating_point() or int(present[0]) < 0 or int(present[-1]) >= len(counts):
        raise ValueError(f"bags must be whole numbers from 0 to {len(counts) - 1}, the places of bags in counts")
    of_bags = counts.to(scores.device)[present].to(scores.dtype)
    if scores.ndim == 2 and scores.shape[1] > 1:
        logs, log_others = _log_softmax(scores)
    else:
        odds = scores.reshape(-1)
        logs = torch.stack([functional.logsigmoid(-odds), functional.logsigmoid(odds)], dim=1)
        log_others = logs.flip(1)
    if of_bags.ndim == 2 and of_bags.shape[1] == 1:
        of_bags = of_bags[:, 0]
    if of_bags.ndim == 1 and logs.shape[1] == 2:
        of_bags = torch.stack([sizes - of_bags, of_bags], dim=1)
    if of_bags.shape != (len(present), logs.shape[1]):
        raise ValueError(
            f"counts have the shape {tuple(counts.shape)} and scores {tuple(scores.shape)}: their classes do not match"
        )
    bad = (of_bags != of_bags.round()) | (of_bags < 0)
    wrong = bad.any(dim=1) | (of_bags.sum(dim=1) != sizes)
    if bool(wrong.any()):
        first = int(wrong.int().argmax())
        raise ValueError(
            f"bag {int(present[first])} has {int(sizes[first])} rows here and counts "
            f"{counts[int(present[first])].tolist()}: counts must "
            "be whole numbers from 0 to the bag's size and sum to it, and all rows of a bag must be in one batch "
            "(BagBatchSampler)"
        )
    return logs, log_others, of_bags, _Layout(bag, sizes)


def _log_softmax(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return log q_c and log(1 − q_c), precise for probabilities near to 0 and to 1."""
    logs = functional.log_softmax(scores, dim=1)
    top = scores.argmax(dim=1, keepdim=True)
    is_top = torch.zeros_like(scores, dtype=torch.bool).scatter(1, top, True)
    # All but the largest are at most 1/2, where log1p is precise; the largest's opposite is the sum of the others.
    of_top = torch.logsumexp(logs.masked_fill(is_top, IMPOSSIBLE), dim=1, keepdim=True)
    small = logs.masked_fill(is_top, -1.0)
    return logs, torch.where(is_top, of_top, torch.log1p(-small.exp()))


def _checked(what: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ValueError(f"unknown {what} {value!r}: expected one of {', '.join(allowed)}")
    return value


def _reduced(losses: Tensor, reduction: str) -> Tensor:
    return losses.mean() if reduction == "mean" else losses.sum() if reduction == "sum" else losses
