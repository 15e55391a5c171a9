"""How layers treat the results of a callable, and its declared properties."""

import numpy as np
import pytest
import torch
from layer_cases import randn, run
from torch import Tensor

import aimle

TOPK = aimle.TopK(2)
LAYERS = {
    "aimle": lambda solver, **told: aimle.AIMLE(solver, **told),
    "imle": lambda solver, **told: aimle.IMLE(solver, **told),
    "dbb": lambda solver, **told: aimle.DBB(solver, **told),
    "ste": lambda solver, **told: aimle.STE(solver, **told),
    "identity": lambda solver, **told: aimle.Identity(solver, **told),
    "covariance": lambda solver, **told: aimle.CovarianceAIMLE(solver, **told),
    "dpo": lambda solver, **told: aimle.DPO(solver, **told),
}


def soft(x: Tensor) -> Tensor:
    return x.softmax(-1)


class ArrayOfAnotherLibrary:
    """What is known about it is that NumPy can read it."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return self.values


ANSWERS = {
    "array of another library": lambda x: ArrayOfAnotherLibrary(TOPK(x).cpu().numpy()),
    "array in the other byte order": lambda x: TOPK(x).cpu().numpy().astype(">f4"),
    "integers in the other byte order": lambda x: TOPK(x).cpu().numpy().astype(">i4"),
    "array of long doubles": lambda x: TOPK(x).cpu().numpy().astype(np.longdouble),
    "array": lambda x: TOPK(x).cpu().numpy(),
    "array of bools": lambda x: TOPK(x).cpu().numpy().astype(bool),
    "array of float64, from behind": lambda x: TOPK(x).cpu().numpy()[:, ::-1][:, ::-1],
    "bools": lambda x: TOPK(x).bool(),
    "integers": lambda x: TOPK(x).long(),
    "float64": lambda x: TOPK(x).double(),
    "nearly whole": lambda x: TOPK(x) - 1e-6,
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_answers_are_converted(answer, device: torch.device, key: Tensor):
    theta = randn(4, 6, dtype=torch.float32, device=device)
    for difference in (True, False):
        settings = {"symmetric_perturbation": difference, "nb_samples": 3}
        plain = run(aimle.AIMLE(lambda x: TOPK(x), **settings).to(device), theta, key=key)
        given = run(aimle.AIMLE(answer, **settings).to(device), theta, key=key)
        assert torch.equal(given[0], plain[0])
        assert torch.equal(given[1], plain[1])
    dpo = aimle.DPO(answer)
    assert torch.equal(dpo(theta, key=key), aimle.DPO(lambda x: TOPK(x))(theta, key=key))


def into_one_array():
    array = np.zeros((100, 6), dtype=np.float32)

    def solve(x: Tensor) -> np.ndarray:
        array[: len(x)] = TOPK(x).numpy()
        return array[: len(x)]

    return solve


def into_one_tensor():
    tensor = torch.zeros(100, 6)

    def solve(x: Tensor) -> Tensor:
        return tensor[: len(x)].copy_(TOPK(x))

    return solve


def into_its_argument():
    return lambda x: x.copy_(TOPK(x))


@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("solver", [into_one_array, into_one_tensor, into_its_argument])
@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
def test_a_callable_may_reuse_its_memory(make, solver, train: bool, fractional: bool):
    """Its next call overwrites its answer, and it may write into its argument."""
    key = torch.tensor([1, 2])
    theta, dy = randn(4, 6, dtype=torch.float32), randn(6, seed=2, dtype=torch.float32)

    def results(solve) -> list[Tensor | None]:
        layer, leaf = make(solve, fractional=fractional).train(train), theta.clone()
        z = layer(leaf.requires_grad_(), key=key)
        layer(randn(4, 6, seed=3, dtype=torch.float32))
        if z.requires_grad:
            (z * dy).square().sum().backward()
        return [leaf.detach(), z.detach(), leaf.grad]

    expected = results(lambda x: TOPK(x))
    assert torch.equal(expected[0], theta)
    for got, wanted in zip(results(solver()), expected, strict=True):
        assert (got is None) == (wanted is None)
        assert got is None or torch.equal(got, wanted)


def test_the_losses_keep_what_they_are_given():
    key = torch.tensor([1, 2])
    theta, c = randn(4, 6, dtype=torch.float32), randn(4, 6, seed=2, dtype=torch.float32)
    for loss in (
        lambda solver, c: aimle.spo_plus_loss(theta, c, solver),
        lambda solver, c: aimle.perturbed_fenchel_young_loss(theta, c, solver, key=key),
    ):
        given = c.clone()
        values = loss(into_its_argument(), given)
        assert torch.equal(given, c)
        assert torch.equal(values, loss(lambda x: TOPK(x), c))


@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
def test_fractional_solutions_are_refused_unless_asked_for(make):
    theta = randn(3, 5)
    with pytest.raises(ValueError, match=r"fractional solution: 0\.\d+ in row 0, entry 0.*=True"):
        make(soft)(theta)
    assert 0 < make(soft, fractional=True)(theta).flatten()[0] < 1
    modest = torch.nn.Softmax(-1)
    modest.fractional = True
    assert 0 < make(modest)(theta).flatten()[0] < 1
    with pytest.raises(ValueError, match="fractional solution"):
        make(modest, fractional=False)(theta)


def test_whole_numbers_other_than_zero_and_one_are_no_fractions():
    z = aimle.IMLE(lambda x: 3 * x.sign(), noise=None)(torch.tensor([[1.0, -2.0]]))
    assert z.tolist() == [[[3.0, -3.0]]]


def test_compiled_code_and_the_gpu_answer_fractions_with_nan(device: torch.device):
    """Only where an error is possible without waiting for the device is there one."""

    def partly(x: Tensor) -> Tensor:
        return torch.where(x.sum(-1, keepdim=True) > 0, x.softmax(-1), TOPK(x))

    layer = aimle.STE(partly, noise=None)
    theta = torch.tensor([[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0]], device=device)
    calls = [torch.compile(layer, backend="aot_eager", fullgraph=True)]
    for call in calls if device.type == "cpu" else [*calls, layer]:
        z = call(theta)
        assert z[:, 0].isnan().any(1).tolist() == [True, False]
        assert z[1, 0].tolist() == [1, 1, 0]


@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
def test_layers_are_told_how_many_dimensions_an_instance_has(make):
    seen = []

    def solver(x: Tensor) -> Tensor:
        seen.append(tuple(x.shape[1:]))
        return x.sign()

    make(solver, instance_dims=1)(randn(2, 3, 4))
    make(solver, instance_dims=2)(randn(2, 3, 4))
    make(solver)(randn(2, 3, 4))
    make(solver, instance_dims=2)(randn(3, 4))  # one instance, no batch
    assert seen == [(4,), (3, 4), (3, 4), (3, 4)]
    message = r"which has no batch dimension: .*theta.unsqueeze\(0\), or .*instance_dims=1"
    with pytest.raises(ValueError, match=message):
        make(solver)(randn(4))
    with pytest.raises(ValueError, match="instance_dims >= 1"):
        make(solver, instance_dims=0)


def test_the_loss_is_told_too():
    theta, target = randn(2, 3, 4), torch.ones(2, 3, 4).double()
    seen = []

    def solver(x: Tensor) -> np.ndarray:
        seen.append(tuple(x.shape))
        return x.sign().numpy()

    for told, batch, rows in (({}, [2], (2, 3, 4)), ({"instance_dims": 1}, [2, 3], (6, 4))):
        loss = aimle.perturbed_fenchel_young_loss(theta, target, solver, **told)
        assert list(loss.shape) == batch
        assert seen[-1] == rows
    with pytest.raises(ValueError, match="fractional"):
        aimle.perturbed_fenchel_young_loss(theta, target, soft)
    aimle.perturbed_fenchel_young_loss(theta, target, soft, fractional=True)


def test_the_targets_of_losses_may_be_bools():
    theta, true_theta, key = randn(4, 6), randn(4, 6, seed=1), torch.tensor([1, 2])
    target = TOPK(true_theta)
    for loss in (
        lambda z: aimle.perturbed_fenchel_young_loss(theta, z, TOPK, key=key),
        lambda z: aimle.spo_plus_loss(theta, true_theta, TOPK, solution=z),
    ):
        assert torch.equal(loss(target.bool()), loss(target))


def test_the_layers_word_goes_before_the_solvers():
    solver = torch.nn.Identity()
    solver.instance_dims = 1
    layer = aimle.STE(solver, instance_dims=2, noise=None, fractional=True)
    assert layer(randn(3, 4)).shape == (1, 3, 4)
    layer.instance_dims = None
    assert layer(randn(3, 4)).shape == (3, 1, 4)


@pytest.mark.parametrize(
    "told", [{"instance_dims": 2}, {"fractional": True}, {"repeat_arguments": True}]
)
def test_native_solvers_know_themselves(told: dict):
    with pytest.raises(TypeError, match=f"TopK defines its own instances.*{next(iter(told))}"):
        aimle.AIMLE(TOPK, **told)
    assert aimle.AIMLE(TOPK, instance_dims=1).instance_dims == 1


@pytest.mark.parametrize("batch", [(4,), (2, 2)])
def test_arguments_are_repeated_for_the_samples(batch: tuple[int, ...]):
    """As if repeated by hand, but some rows are left out in backward, and their entries too."""
    rows = []

    def solver(x: Tensor, shift: Tensor, *, weights: np.ndarray, names: list, sign: int) -> Tensor:
        rows.append(len(x))
        assert x.shape == shift.shape == weights.shape
        assert names == [f"{each:.3f}" for each in shift[:, 0].tolist()]
        return TOPK(sign * (x + shift) * torch.from_numpy(weights))

    theta, shift, weights = randn(*batch, 6), randn(*batch, 6, seed=2), randn(*batch, 6, seed=3)
    names = [f"{each:.3f}" for each in shift[..., 0].flatten().tolist()]
    settings = {"nb_samples": 3, "instance_dims": 1, "target": aimle.AdaptiveTarget(0.7)}
    dy = torch.zeros(*batch, 3, 6).double()
    dy.view(-1, 6)[5] = torch.linspace(-1, 1, 6)
    call = {"key": torch.tensor([1, 2]), "names": names, "sign": -1, "weights": weights.numpy()}
    results = []
    for by_hand in (False, True):
        layer = aimle.AIMLE(solver, repeat_arguments=not by_hand, **settings)
        given = theta.clone().requires_grad_()
        extra = {**call, "shift": shift}
        if by_hand:
            flat = [each.reshape(-1, 6).repeat_interleave(3, 0) for each in (shift, weights)]
            every_name = [name for name in names for _ in range(3)]
            extra |= {"shift": flat[0], "weights": flat[1].numpy(), "names": every_name}
        z = layer(given, **extra)
        z.backward(dy)
        results.append((z.detach(), given.grad))
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])
    assert rows == [12, 1, 1, 12, 12, 12]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("own", ["max", "min"])
def test_masked_entries_are_the_worst_in_the_callables_own_sense(layer: str, own: str):
    def best(x: Tensor) -> Tensor:
        assert not (x == (torch.inf if own == "max" else -torch.inf)).any()
        return aimle.Argmax()(x if own == "max" else -x)

    best.sense = own
    theta, mask = torch.tensor([[1.0, 2.0, 3.0, 4.0]]), torch.tensor([False, True, True, False])
    for sense, entry in (("max", 2), ("min", 1)):
        z = LAYERS[layer](best, sense=sense).eval()(theta, mask=mask)
        assert z.flatten().tolist() == [float(j == entry) for j in range(4)]
