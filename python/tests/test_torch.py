"""Losses and batches for PyTorch: what they are worth on average, their slopes, and what they refuse."""

import itertools
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import easyllp  # noqa: E402
from easyllp.torch import BagBatchSampler, CountLikelihoodLoss, EasyLLPLoss, ProportionMatchingLoss  # noqa: E402

functional = torch.nn.functional
torch.set_num_threads(1)


def normal(*shape, seed=1):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def squared(scores, labels):
    return (torch.sigmoid(scores) - labels) ** 2


def hinge(scores, labels):
    return torch.relu(1 - (2 * labels - 1) * scores)


def dealings():
    """All ways to deal six rows into three bags of two."""
    return sorted(set(itertools.permutations([0, 0, 1, 1, 2, 2])))


def shares(labels, bags):
    return np.array([labels[bags == bag].mean(axis=0) for bag in bags])


@pytest.mark.parametrize("loss", [None, torch.nn.BCEWithLogitsLoss(reduction="none"), squared, hinge])
def test_corrected_loss_is_unbiased_over_all_dealings(loss):
    # One positive in six: a flipped sign, or targets of the other class, would not come out the same.
    scores, labels = normal(6), np.array([1.0, 0, 0, 0, 0, 0])
    corrected = EasyLLPLoss(loss)
    values = []
    for bags in map(np.array, dealings()):
        values.append(corrected(scores, torch.from_numpy(easyllp.soft_targets(shares(labels, bags), bags))).item())
    by_row = functional.binary_cross_entropy_with_logits if loss is None else loss
    truth = by_row(scores, torch.from_numpy(labels)).mean().item()
    assert np.mean(values) == pytest.approx(truth, abs=1e-6)
    assert np.ptp(values) > 0.1


def test_corrected_loss_of_several_classes_is_unbiased_over_all_dealings():
    scores, classes = normal(6, 3), np.array([2, 0, 1, 2, 2, 1])
    one_hot = np.eye(3)[classes]
    values = []
    for bags in map(np.array, dealings()):
        targets = torch.from_numpy(np.asarray(easyllp.soft_targets(shares(one_hot, bags), bags)))
        values.append(EasyLLPLoss()(scores, targets).item())
    assert np.mean(values) == pytest.approx(
        functional.cross_entropy(scores, torch.from_numpy(classes)).item(), abs=1e-6
    )


def test_targets_that_are_labels_are_supervision():
    scores, labels = normal(8), torch.arange(8, dtype=torch.float64) % 2
    supervised = functional.binary_cross_entropy_with_logits(scores, labels)
    torch.testing.assert_close(EasyLLPLoss()(scores, labels), supervised)
    torch.testing.assert_close(EasyLLPLoss()(scores[:, None], labels), supervised)
    # Two columns are the same model, written otherwise.
    columns = torch.stack([torch.zeros_like(scores), scores], dim=1)
    torch.testing.assert_close(EasyLLPLoss()(columns, labels), supervised)


def test_bags_of_one_are_supervision():
    scores, labels, bags = normal(8), torch.arange(8) % 2, torch.arange(8)
    supervised = functional.binary_cross_entropy_with_logits(scores, labels.double())
    torch.testing.assert_close(CountLikelihoodLoss()(scores, bags, labels), supervised)
    torch.testing.assert_close(ProportionMatchingLoss()(scores, bags, labels), supervised)
    brier = ((torch.sigmoid(scores) - labels) ** 2).mean()
    torch.testing.assert_close(ProportionMatchingLoss("squared")(scores, bags, labels), brier)
    several, classes = normal(9, 3), torch.arange(9) % 3
    matching = ProportionMatchingLoss()(several, torch.arange(9), torch.eye(3)[classes])
    torch.testing.assert_close(matching, functional.cross_entropy(several, classes))


def improbability(q, count):
    """−log P(count), by going through all labels of the rows."""
    total = 0.0
    for labels in itertools.product([0, 1], repeat=len(q)):
        if sum(labels) == count:
            total += math.prod(p if label else 1 - p for p, label in zip(q, labels, strict=True))
    return -math.log(total)


@pytest.mark.parametrize("size", range(1, 7))
def test_count_likelihood_is_that_of_all_labels(size):
    q = torch.sigmoid(2 * normal(size, seed=size))
    for count in range(size + 1):
        loss = CountLikelihoodLoss()(torch.logit(q), torch.zeros(size, dtype=torch.long), torch.tensor([count]))
        assert loss.item() == pytest.approx(improbability(q.tolist(), count), rel=1e-10)


def test_count_likelihood_takes_each_class_against_the_rest():
    scores, bags = 2 * normal(7, 3), torch.tensor([1, 0, 1, 1, 0, 1, 0])
    counts = torch.tensor([[0, 2, 1], [1, 3, 0]])
    q = torch.softmax(scores, dim=1)
    losses = CountLikelihoodLoss(reduction="none")(scores, bags, counts)
    for bag in range(2):
        each = [improbability(q[bags == bag, c].tolist(), counts[bag, c]) for c in range(3)]
        assert losses[bag].item() == pytest.approx(sum(each), rel=1e-10)


def test_slope_of_count_likelihood_is_what_the_count_changes():
    scores = normal(5).requires_grad_()
    CountLikelihoodLoss()(scores, torch.zeros(5, dtype=torch.long), torch.tensor([2])).backward()
    q = torch.sigmoid(scores.detach()).tolist()
    joint = {}
    for labels in itertools.product([0, 1], repeat=5):
        if sum(labels) == 2:
            joint[labels] = math.prod(p if label else 1 - p for p, label in zip(q, labels, strict=True))
    known = [sum(p * labels[row] for labels, p in joint.items()) / sum(joint.values()) for row in range(5)]
    np.testing.assert_allclose(scores.grad, np.array(q) - known, atol=1e-12)


def test_proportion_matching_is_of_mean_probabilities():
    scores, bags = 2 * normal(7, 3), torch.tensor([1, 0, 1, 1, 0, 1, 0])
    counts = torch.tensor([[0.0, 2, 1], [1, 3, 0]], dtype=torch.float64)
    shares = counts / counts.sum(dim=1, keepdim=True)
    means = torch.stack([torch.softmax(scores, dim=1)[bags == bag].mean(dim=0) for bag in range(2)])
    entropies = ProportionMatchingLoss(reduction="none")(scores, bags, counts)
    torch.testing.assert_close(entropies, -(shares * means.log()).sum(dim=1))
    squares = ProportionMatchingLoss("squared", reduction="none")(scores, bags, counts)
    torch.testing.assert_close(squares, ((shares - means) ** 2).sum(dim=1))
    # Of two classes the squared distance counts one, as the Brier score does.
    odds, positive = scores[:, 0], counts[:, 0]
    means = torch.stack([torch.sigmoid(odds)[bags == bag].mean() for bag in range(2)])
    squares = ProportionMatchingLoss("squared", reduction="none")(odds, bags, positive)
    torch.testing.assert_close(squares, (shares[:, 0] - means) ** 2)


BAG_LOSSES = [CountLikelihoodLoss(), ProportionMatchingLoss(), ProportionMatchingLoss("squared")]


@pytest.mark.parametrize("loss", BAG_LOSSES)
@pytest.mark.parametrize("classes", [2, 3])
def test_slopes_are_those_of_finite_differences(loss, classes):
    bags = torch.tensor([0, 2, 2, 0, 2, 0, 2])
    counts = torch.tensor([1, 9, 3]) if classes == 2 else torch.tensor([[1, 0, 2], [9, 9, 9], [0, 4, 0]])
    scores = (normal(7) if classes == 2 else normal(7, 3)).requires_grad_()
    assert torch.autograd.gradcheck(lambda scores: loss(scores, bags, counts), scores)


def test_slopes_of_corrected_losses_are_those_of_finite_differences():
    targets = torch.tensor([-1.5, 0.5, 2.5], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda scores: EasyLLPLoss()(scores, targets), normal(3).requires_grad_())
    several = torch.tensor([[-1.0, 0.5, 1.5], [2.0, -2.0, 1.0]], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda scores: EasyLLPLoss()(scores, several), normal(2, 3).requires_grad_())


@pytest.mark.parametrize("loss", BAG_LOSSES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_scores_far_from_zero_have_finite_losses_and_slopes(loss, dtype):
    # The counts are all but impossible: rows that are surely positive are reported as negative, and vice versa.
    for scores, counts in [
        (torch.full((6,), 300.0), torch.tensor([0, 0])),
        (torch.full((6,), -300.0), torch.tensor([3, 3])),
        (torch.tensor([[300.0, 0, -300]] * 6), torch.tensor([[0, 0, 3], [0, 3, 0]])),
    ]:
        scores = scores.to(dtype).requires_grad_()
        value = loss(scores, torch.tensor([0, 0, 0, 1, 1, 1]), counts)
        value.backward()
        assert torch.isfinite(value) and torch.isfinite(scores.grad).all()


@pytest.mark.parametrize("loss", BAG_LOSSES)
def test_neither_order_nor_absent_bags_matter(loss):
    scores, bags, counts = normal(9), torch.tensor([0, 0, 0, 1, 1, 2, 2, 2, 2]), torch.tensor([1, 2, 0])
    order = torch.randperm(9, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(loss(scores[order], bags[order], counts), loss(scores, bags, counts))
    two = bags != 1
    torch.testing.assert_close(loss(scores[two], bags[two], counts), loss(scores[two], bags[two] // 2, counts[[0, 2]]))


def test_reductions():
    scores, bags, counts = normal(4), torch.tensor([0, 0, 1, 1]), torch.tensor([1, 2])
    each = CountLikelihoodLoss(reduction="none")(scores, bags, counts)
    assert each.shape == (2,)
    torch.testing.assert_close(CountLikelihoodLoss(reduction="sum")(scores, bags, counts), each.sum())
    torch.testing.assert_close(CountLikelihoodLoss()(scores, bags, counts), each.mean())
    assert EasyLLPLoss(reduction="none")(scores, torch.ones(4)).shape == (4,)


def test_what_is_wrong_is_said():
    scores, bags = normal(4), torch.tensor([0, 0, 1, 1])
    with pytest.raises(ValueError, match="all rows of a bag must be in one batch"):
        CountLikelihoodLoss()(scores[:1], bags[:1], torch.tensor([2, 1]))
    with pytest.raises(ValueError, match="whole numbers"):
        CountLikelihoodLoss()(scores, bags, torch.tensor([0.5, 1]))
    with pytest.raises(ValueError, match="bags must be whole numbers from 0 to 0"):
        ProportionMatchingLoss()(scores, bags, torch.tensor([1]))
    with pytest.raises(ValueError, match="their classes do not match"):
        ProportionMatchingLoss()(scores, bags, torch.ones(2, 3))
    with pytest.raises(ValueError, match="one index per row"):
        ProportionMatchingLoss()(scores, bags[:3], torch.tensor([1, 1]))
    with pytest.raises(ValueError, match="reduction='none'"):
        EasyLLPLoss(torch.nn.BCEWithLogitsLoss())
    with pytest.raises(ValueError, match="one number per row"):
        EasyLLPLoss(functional.binary_cross_entropy_with_logits)(scores, torch.ones(4))
    with pytest.raises(ValueError, match="targets of several classes need a score for each"):
        EasyLLPLoss()(scores, torch.ones(4, 3))
    with pytest.raises(ValueError, match="unknown distance 'l1'"):
        ProportionMatchingLoss("l1")
    with pytest.raises(ValueError, match="unknown reduction 'max'"):
        EasyLLPLoss(reduction="max")


def test_batches_are_whole_bags():
    bags = np.array(list("abcdefgh"))[np.random.default_rng(1).integers(8, size=50)]
    sampler = BagBatchSampler(bags, 3, seed=1)
    batches = list(sampler)
    assert len(batches) == len(sampler) == 3
    assert sorted(itertools.chain(*batches)) == list(range(50))
    held = [set(bags[batch]) for batch in batches]
    assert [len(names) for names in held] == [3, 3, 2] and not held[0] & held[1]
    assert [sampler.names[place] for place in sampler.places.tolist()] == bags.tolist()
    assert len(list(BagBatchSampler(bags, 3, drop_last=True))) == 2
    with pytest.raises(ValueError, match="at least 1"):
        BagBatchSampler(bags, 0)


def test_the_order_of_bags_is_that_of_seed_and_epoch():
    bags = np.arange(100) // 2
    sampler, same = BagBatchSampler(bags, 4, seed=1), BagBatchSampler(bags, 4, seed=1)
    first, second = list(sampler), list(sampler)
    assert first != second and list(BagBatchSampler(bags, 4, seed=2)) != first
    assert list(same) == first
    same.set_epoch(1)
    assert list(same) == second
    unshuffled = BagBatchSampler(bags, 4, shuffle=False)
    assert list(unshuffled) == list(unshuffled) and next(iter(unshuffled)) == list(range(8))


def test_the_sampler_serves_a_data_loader():
    bags = np.arange(40) // 4
    sampler = BagBatchSampler(bags, 2, seed=1)
    data = torch.utils.data.TensorDataset(torch.arange(40), sampler.places)
    seen = [rows.tolist() for rows, _ in torch.utils.data.DataLoader(data, batch_sampler=sampler)]
    assert seen == list(BagBatchSampler(bags, 2, seed=1))


def test_the_sampler_counts():
    bags, classes = np.array(["x", "y", "x", "y", "x"]), np.array([0, 1, 2, 1, 2])
    sampler = BagBatchSampler(bags)
    assert sampler.counts(shares((classes == 1) * 1.0, bags)).tolist() == [0, 2]
    assert sampler.counts(shares(np.eye(3)[classes], bags)).tolist() == [[1, 0, 2], [0, 2, 0]]


def learnt(loss, classes=2, size=8):
    """The accuracy of a linear model after training on bags."""
    torch.manual_seed(1)
    rows = normal(1600, 2).float()
    labels = (
        (rows[:, 0] > 0.5).long() if classes == 2 else (rows @ torch.tensor([[1.0, -1, 0], [0, 0, 1]])).argmax(dim=1)
    )
    bags, y = easyllp.make_bags(labels.numpy(), size, seed=1)
    sampler = BagBatchSampler(bags, 10, seed=1)
    counts, targets = sampler.counts(y), torch.from_numpy(np.asarray(easyllp.soft_targets(y, bags)))
    model = torch.nn.Linear(2, 1 if classes == 2 else classes)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(8):
        for batch in sampler:
            scores = model(rows[batch])
            by_row = isinstance(loss, EasyLLPLoss)
            value = loss(scores, targets[batch]) if by_row else loss(scores, sampler.places[batch], counts)
            optimiser.zero_grad()
            value.backward()
            optimiser.step()
    scores = model(rows)
    predicted = scores[:, 0] > 0 if classes == 2 else scores.argmax(dim=1)
    return (predicted == labels).float().mean().item()


@pytest.mark.parametrize("loss", [EasyLLPLoss(), EasyLLPLoss(squared), *BAG_LOSSES])
def test_rows_are_learnt_from_bags(loss):
    assert learnt(loss) > 0.93


@pytest.mark.parametrize("loss", [EasyLLPLoss(), *BAG_LOSSES])
def test_rows_of_several_classes_are_learnt_from_bags(loss):
    assert learnt(loss, classes=3) > 0.85
