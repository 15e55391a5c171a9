"""Chains: scores of labels and transitions, labels of z, different lengths, bad input."""

import itertools
import math

import oracles
import pytest
import torch
from torch import Tensor

import aimle

TIMES, LABELS = 5, 3


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def score_of(emissions: Tensor, transitions: Tensor, labels: tuple[int, ...]) -> float:
    """Of one sequence: what it emits and what its transitions add."""
    sum_ = sum(emissions[t, label] for t, label in enumerate(labels))
    for t, (i, j) in enumerate(itertools.pairwise(labels)):
        sum_ += (transitions if transitions.dim() == 2 else transitions[t])[i, j]
    return float(sum_)


@pytest.mark.parametrize("shape", [(LABELS, LABELS), (TIMES - 1, LABELS, LABELS)])
def test_a_sequence_has_the_score_of_its_labels_and_transitions(shape: tuple[int, ...]):
    emissions, transitions = randn(TIMES, LABELS), randn(*shape, seed=1)
    scores = aimle.chain_scores(emissions, transitions)
    assert scores.shape == (TIMES - 1, LABELS, LABELS)
    best = max(
        itertools.product(range(LABELS), repeat=TIMES),
        key=lambda labels: score_of(emissions, transitions, labels),
    )
    z = aimle.Chain(TIMES, LABELS)(scores)
    assert aimle.chain_labels(z).tolist() == list(best)
    assert (scores * z).sum().item() == pytest.approx(score_of(emissions, transitions, best))


def test_scores_of_chains_are_differentiable_and_broadcast():
    emissions, transitions = randn(2, 4, 3).requires_grad_(), randn(3, 3, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(aimle.chain_scores, (emissions, transitions))
    scores = aimle.chain_scores(emissions, transitions)
    for row in range(2):
        torch.testing.assert_close(scores[row], aimle.chain_scores(emissions[row], transitions))
    each = transitions.expand(2, 3, 3, 3)
    torch.testing.assert_close(scores, aimle.chain_scores(emissions, each))


def test_bad_scores_of_labels_are_named():
    square = torch.zeros(3, 3)
    for emissions, transitions, message in (
        (torch.zeros(3), square, r"emissions \[..., length, labels\].*got shape \[3\]"),
        (torch.zeros(0, 3), square, r"neither of them 0, but got shape \[0, 3\]"),
        (torch.zeros(5, 4), square, r"transitions \[4, 4\] or \[..., 4, 4, 4\].*shape \[3, 3\]"),
        (torch.zeros(5, 3), torch.zeros(3, 3, 3), r"or \[..., 4, 3, 3\].*shape \[3, 3, 3\]"),
    ):
        with pytest.raises(ValueError, match=message):
            aimle.chain_scores(emissions, transitions)
    with pytest.raises(TypeError, match="transitions to be a tensor but got list"):
        aimle.chain_scores(torch.zeros(5, 3), [[0.0]])
    with pytest.raises(ValueError, match=r"z \[..., length - 1, labels, labels\] but got shape"):
        aimle.chain_labels(torch.zeros(4, 3, 2))


def test_chains_of_different_lengths_in_one_batch(device: torch.device):
    lengths = torch.tensor([1, 2, 5, 3], device=device)
    scores = randn(4, TIMES - 1, LABELS, LABELS).to(device)
    mask = aimle.chain_mask(lengths, TIMES)
    assert mask.shape == (4, TIMES - 1, 1, 1)
    z = aimle.Chain()(scores, mask=mask)
    labels = aimle.chain_labels(z)
    assert labels.shape == (4, TIMES)
    for row, length in enumerate(lengths.tolist()):
        alone = aimle.Chain()(scores[row, : length - 1])
        assert torch.equal(z[row, : length - 1], alone)
        assert not z[row, length - 1 :].any()
        if length > 1:
            assert labels[row, :length].min() >= 0
            assert torch.equal(labels[row, :length], aimle.chain_labels(alone))
        assert (labels[row, length:] == -1).all()
    mu = aimle.exact.marginals(aimle.Chain(), scores, mask=mask)
    torch.testing.assert_close(mu.sum((1, 2, 3)), (lengths - 1).double())


def test_a_chain_of_one_position_has_no_edges(device: torch.device):
    scores = aimle.chain_scores(torch.randn(4, 1, 3), torch.zeros(3, 3)).to(device)
    assert scores.shape == (4, 0, 3, 3)
    for solver in (aimle.Chain(), aimle.Chain(1, 3)):
        z, status = aimle.solve(solver, scores, return_status=True)
        assert z.shape == (4, 0, 3, 3)
        assert not status.any()
        assert aimle.chain_labels(z).tolist() == [[-1]] * 4
    assert aimle.exact.log_partition(aimle.Chain(), scores).tolist() == [0.0] * 4
    assert aimle.exact.marginals(aimle.Chain(), scores).shape == (4, 0, 3, 3)
    assert aimle.exact.sample(aimle.Chain(), scores, torch.tensor([1, 2]), 5).shape[1] == 5
    leaf = scores.clone().requires_grad_()
    z = aimle.AIMLE(aimle.Chain(), nb_samples=2).to(device)(leaf)
    assert z.shape == (4, 2, 0, 3, 3)
    z.sum().backward()
    assert leaf.grad.shape == leaf.shape


def test_forbidden_transitions_and_masked_labels():
    scores = randn(20, 4, 3, 3)
    scores[..., 1, 2] = -torch.inf
    z = aimle.Chain()(scores)
    assert not z[..., 1, 2].any()
    mask = torch.ones(4, 3, 3, dtype=torch.bool)
    mask[..., 1, 2] = False
    assert torch.equal(aimle.Chain()(randn(20, 4, 3, 3), mask=mask), z)
    mask[2] = False  # a step in the middle without any edge
    with pytest.raises(ValueError, match=r"row 0: expected .* leave no connected solution"):
        aimle.Chain()(scores, mask=mask)
    _, status = aimle.solve(aimle.Chain(), scores, mask=mask, return_status=True, check=False)
    assert status.eq(aimle.Status.DISCONNECTED).all()


def test_bad_shapes_and_settings_are_named():
    for solver, shape, message in (
        (aimle.Chain(), (4, 3), "at least 3 dimensions"),
        (aimle.Chain(), (4, 3, 2), r"\[..., length - 1, labels, labels\] but .* are 4, 3, 2"),
        (aimle.Chain(), (4, 0, 0), "the last dimensions are 4, 0, 0"),
        (aimle.Chain(4), (4, 3, 3), "for length=4 but the last dimensions are 4, 3, 3"),
        (aimle.Chain(5, 2), (4, 3, 3), "for length=5, labels=2 but the last"),
    ):
        with pytest.raises(ValueError, match=message):
            solver(torch.zeros(shape))
    with pytest.raises(ValueError, match="length >= 0 but got length=-1"):
        aimle.Chain(-1)
    with pytest.raises(TypeError, match="labels to be an int but got float"):
        aimle.Chain(labels=2.0)
    assert aimle.solver("chain", labels=3) == aimle.Chain(labels=3)
    assert aimle.Chain(7, 3).text == "chain:length=7,labels=3"


def test_thousands_of_small_chains_are_those_of_networkx_and_of_the_list():
    for steps, labels in ((1, 2), (2, 3), (3, 2), (5, 1), (2, 4)):
        scores = randn(400, steps, labels, labels, seed=steps)
        z = aimle.Chain()(scores)
        every = aimle.exact.structures(aimle.Chain(), scores).double()
        values = torch.einsum("btij,ntij->bn", scores, every)
        torch.testing.assert_close((scores * z).sum((1, 2, 3)), values.max(-1).values)
        assert torch.equal(z, every[values.argmax(-1)])
        for row in range(20):
            expected = torch.from_numpy(oracles.chain(scores[row].numpy()))
            assert torch.equal(z[row], expected)


@pytest.mark.parametrize(
    "name",
    ["aimle", "imle", "ste", "dbb", "identity", "dpo", "aimle_covariance", "sfe", "sst", "exact"],
)
def test_no_estimator_looks_beyond_the_end(name: str):
    layer = aimle.estimator(name, aimle.Chain())
    lengths = torch.tensor([1, 2, 5, 3])
    mask, key = aimle.chain_mask(lengths, TIMES), torch.tensor([3, 4])
    scores = randn(4, TIMES - 1, LABELS, LABELS).requires_grad_()
    z = layer(scores, mask=mask, key=key)
    weights = randn(LABELS, LABELS, seed=1)
    losses = (z * weights).flatten(-3).sum(-1)
    if hasattr(layer, "surrogate"):
        losses = layer.surrogate(scores, z, losses, **({"mask": mask} if name == "sfe" else {}))
    losses.sum().backward()
    beyond = ~mask.expand_as(scores)
    assert not scores.grad[beyond].any()
    assert scores.grad.isfinite().all()
    each = z.unsqueeze(1) if z.dim() == scores.dim() else z
    steps = each.detach().sum((-1, -2))
    expected = mask.squeeze((-1, -2)).double().unsqueeze(1).expand_as(steps)
    torch.testing.assert_close(steps, expected)


def test_chains_without_a_solution_have_no_labels():
    z = aimle.Chain()(torch.tensor([[[[0.0, math.nan], [1.0, 2.0]]], [[[0.0, 1.0], [1.0, 2.0]]]]))
    assert z[0].isnan().all()
    assert aimle.chain_labels(z).tolist() == [[-1, -1], [1, 1]]
