"""SFE warns if it is trained without ``surrogate``, and only then."""

import copy
import pickle
import warnings

import pytest
import torch
from torch import Tensor

import aimle

# More than the training calls after which it warns.
MANY = 250


@pytest.fixture
def layer() -> aimle.SFE:
    return aimle.SFE(aimle.TopK(2), nb_samples=3)


@pytest.fixture
def theta() -> Tensor:
    return torch.zeros(4, 6, requires_grad=True)


def messages_of(calls) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        calls()
    return [str(each.message) for each in caught]


def test_training_without_losses_warns_once(layer: aimle.SFE, theta: Tensor):
    def train():
        scale = torch.ones((), requires_grad=True)
        for _ in range(MANY):
            (scale * layer(theta)).sum().backward()

    (message,) = messages_of(train)
    assert "[aimle.SFE] theta got no gradient in 100 training calls" in message
    assert "layer.surrogate(theta, z, losses).mean().backward()" in message


def test_the_warning_points_at_the_call(layer: aimle.SFE, theta: Tensor):
    with pytest.warns(UserWarning, match="surrogate") as caught:
        [layer(theta) for _ in range(MANY)]
    assert caught[0].filename == __file__


def test_copies_warn_too(layer: aimle.SFE, theta: Tensor):
    for one in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert len(messages_of(lambda one=one: [one(theta) for _ in range(MANY)])) == 1


def test_correct_programs_do_not_warn(layer: aimle.SFE, theta: Tensor):
    def draws_often_before_its_first_loss():
        draws = [layer(theta) for _ in range(99)]
        layer.surrogate(theta, draws[0], draws[0].sum(-1)).mean().backward()

    def discards_draws():
        draws = [layer(theta) for _ in range(MANY)]
        layer.surrogate(theta, draws[0], draws[0].sum(-1)).mean().backward()

    def evaluates():
        one = copy.deepcopy(layer)
        with torch.no_grad():
            for _ in range(MANY):
                one(theta)
        for _ in range(MANY):
            one(theta.detach())
        one.eval()
        for _ in range(MANY):
            one(theta)

    for calls in (evaluates, draws_often_before_its_first_loss, discards_draws):
        assert messages_of(calls) == [], calls.__name__


def test_compiled_losses_count(layer: aimle.SFE, theta: Tensor):
    @torch.compile(backend="eager", fullgraph=True)
    def loss(z: Tensor) -> Tensor:
        return layer.surrogate(theta, z, z.sum(-1)).mean()

    def train():
        for _ in range(MANY):
            loss(layer(theta)).backward()

    assert messages_of(train) == []
