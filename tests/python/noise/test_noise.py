"""Noise on tensors: a pure function of key and counters, with the right distribution."""

import math

import numpy as np
import pytest
import torch
from scipy import special, stats
from torch import Tensor

import aimle

NOISES = {
    "gumbel": aimle.Gumbel(),
    "normal": aimle.Normal(),
    "logistic": aimle.Logistic(),
    "sum_of_gamma_1": aimle.SumOfGamma(1),
    "sum_of_gamma_10": aimle.SumOfGamma(10, nb_iterations=20),
}


@pytest.fixture(params=NOISES.values(), ids=NOISES.keys())
def noise(request: pytest.FixtureRequest) -> aimle.Noise:
    return request.param


def moments(noise: aimle.Noise) -> tuple[float, float]:
    """Mean and variance in closed form."""
    match noise:
        case aimle.Gumbel():
            return -special.digamma(1), math.pi**2 / 6
        case aimle.Normal():
            return 0.0, 1.0
        case aimle.Logistic():
            return 0.0, math.pi**2 / 3
        case aimle.SumOfGamma(k, s):
            i = np.arange(1, s + 1)
            return (np.sum(1 / i) - math.log(s)) / k, np.sum(1 / i**2) / k
    raise AssertionError(noise)


# ---- Shapes and determinism ----------------------------------------------------------------------


def test_a_part_of_a_batch_has_the_noise_of_the_whole(noise: aimle.Noise, key: Tensor):
    whole = aimle.sample_noise(noise, (9, 5), key, nb_samples=3)
    numbered = torch.cat([key, key.new_tensor([4])])  # the number of the first instance
    assert torch.equal(aimle.sample_noise(noise, (5, 5), numbered, nb_samples=3), whole[4:])


def test_shapes(noise: aimle.Noise, key: Tensor):
    assert aimle.sample_noise(noise, (4, 5), key).shape == (4, 5)
    assert aimle.sample_noise(noise, (4, 5), key, nb_samples=3).shape == (4, 3, 5)
    assert aimle.sample_noise(noise, (5,), key, nb_samples=3).shape == (3, 5)
    assert aimle.sample_noise(noise, (2, 4, 6, 7), key, nb_samples=3, instance_dims=2).shape == (
        2,
        4,
        3,
        6,
        7,
    )
    assert aimle.sample_noise(noise, (0, 5), key, nb_samples=3).shape == (0, 3, 5)
    assert aimle.sample_noise(noise, (4, 0), key).shape == (4, 0)
    drawn = aimle.sample_noise(noise, (2, 3), key)
    assert drawn.dtype == torch.float32
    assert drawn.device == key.device


def test_the_same_key_gives_the_same_noise(noise: aimle.Noise, key: Tensor):
    shape = (50, 40)
    drawn = aimle.sample_noise(noise, shape, key)
    assert torch.equal(drawn, aimle.sample_noise(noise, shape, key.clone()))
    for other in (key + torch.tensor([1, 0]).to(key), key + torch.tensor([0, 1]).to(key)):
        different = aimle.sample_noise(noise, shape, other)
        assert (different != drawn).float().mean() > 0.99
    strided = torch.stack([key, key + 1], dim=-1)[:, 0]
    assert torch.equal(drawn, aimle.sample_noise(noise, shape, strided))


def test_more_of_anything_leaves_the_rest_alone(noise: aimle.Noise, key: Tensor):
    drawn = aimle.sample_noise(noise, (7, 33), key, nb_samples=6)
    assert torch.equal(drawn[:, :, :5], aimle.sample_noise(noise, (7, 5), key, nb_samples=6))
    assert torch.equal(drawn[:, :2], aimle.sample_noise(noise, (7, 33), key, nb_samples=2))
    assert torch.equal(drawn[:3], aimle.sample_noise(noise, (3, 33), key, nb_samples=6))
    assert torch.equal(drawn[:, 0], aimle.sample_noise(noise, (7, 33), key))


def test_only_the_flat_numbers_count(noise: aimle.Noise, key: Tensor):
    drawn = aimle.sample_noise(noise, (6, 20), key, nb_samples=3)
    grouped = aimle.sample_noise(noise, (2, 3, 4, 5), key, nb_samples=3, instance_dims=2)
    assert torch.equal(grouped.reshape(6, 3, 20), drawn)


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_any_number_of_threads(noise: aimle.Noise, device: torch.device, key: Tensor, threads: int):
    shape = (2000, 203)
    expected = aimle.sample_noise(noise, shape, key)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        assert torch.equal(aimle.sample_noise(noise, shape, key), expected)
    finally:
        torch.set_num_threads(before)


def test_names_stand_for_the_settings(key: Tensor):
    for name in ("gumbel", "normal", "logistic"):
        assert torch.equal(
            aimle.sample_noise(name, (2, 3), key), aimle.sample_noise(NOISES[name], (2, 3), key)
        )


def test_no_noise_is_zeros(key: Tensor):
    drawn = aimle.sample_noise(None, (2, 3), key, nb_samples=4)
    assert drawn.shape == (2, 4, 3)
    assert drawn.dtype == torch.float32
    assert not drawn.any()


def test_temperature_scales(noise: aimle.Noise, key: Tensor):
    drawn = aimle.sample_noise(noise, (2, 3), key)
    assert torch.equal(aimle.sample_noise(noise, (2, 3), key, temperature=2.0), drawn * 2)
    assert not aimle.sample_noise(noise, (2, 3), key, temperature=0.0).any()


# ---- Distribution --------------------------------------------------------------------------------


def test_moments(noise: aimle.Noise, key: Tensor):
    draws = aimle.sample_noise(noise, (1000, 1000), key).double().flatten().cpu().numpy()
    mean, variance = moments(noise)
    count = draws.size
    assert abs(draws.mean() - mean) < 5 * math.sqrt(variance / count)
    fourth = ((draws - draws.mean()) ** 4).mean()
    assert abs(draws.var() - variance) < 5 * math.sqrt((fourth - variance**2) / count)


@pytest.mark.parametrize(
    ("noise", "distribution"),
    [
        (aimle.Gumbel(), stats.gumbel_r()),
        (aimle.Normal(), stats.norm()),
        (aimle.Logistic(), stats.logistic()),
        (aimle.SumOfGamma(3, nb_iterations=1), stats.gamma(1 / 3, scale=1.0)),
    ],
    ids=["gumbel", "normal", "logistic", "sum_of_gamma"],
)
def test_kolmogorov_smirnov(noise: aimle.Noise, distribution, key: Tensor):
    draws = aimle.sample_noise(noise, (500, 400), key).double().flatten().cpu().numpy()
    assert stats.kstest(draws, distribution.cdf).pvalue > 1e-4


def test_gumbel_and_argmax_sample_a_softmax(device: torch.device, key: Tensor):
    theta = torch.tensor([0.5, -1.0, 2.0, 0.0], device=device)
    count = 200_000
    draws = aimle.sample_noise("gumbel", theta.shape, key, nb_samples=count)
    frequencies = aimle.Argmax()(theta + draws).double().mean(0)
    p = theta.double().softmax(0)
    assert ((frequencies - p).abs() < 5 * (p * (1 - p) / count).sqrt()).all()


# ---- Keys ----------------------------------------------------------------------------------------


def test_draw_key_follows_the_seed(device: torch.device):
    like = torch.zeros(3, 4, device=device)
    torch.manual_seed(1)
    first, second = aimle.draw_key(like), aimle.draw_key(like)
    assert first.shape == (2,)
    assert first.dtype == torch.int64
    assert first.device.type == device.type
    assert not torch.equal(first, second)
    torch.manual_seed(1)
    assert torch.equal(aimle.draw_key(like), first)


def test_draw_key_takes_a_generator(device: torch.device):
    like = torch.zeros(2, device=device)
    torch.manual_seed(2)
    state = torch.get_rng_state()
    keys = [
        aimle.draw_key(like, generator=torch.Generator(device).manual_seed(seed))
        for seed in (5, 5, 6)
    ]
    assert torch.equal(keys[0], keys[1])
    assert not torch.equal(keys[0], keys[2])
    assert torch.equal(torch.get_rng_state(), state)


def test_a_host_key_has_the_numbers_of_draw_key(device: torch.device):
    like, draw_host_key = torch.zeros(2, device=device), torch.ops.aimle.draw_host_key
    for rank in (0, 3):
        torch.manual_seed(4)
        expected = [aimle.draw_key(like, rank=rank).cpu() for _ in range(3)]
        torch.manual_seed(4)
        got = [draw_host_key(like, rank=rank) for _ in range(3)]
        assert all(key.device.type == "cpu" for key in got)
        torch.testing.assert_close(got, expected, rtol=0, atol=0)
    with pytest.raises(ValueError, match="rank >= 0"):
        draw_host_key(like, rank=-1)


@pytest.mark.parametrize("theta_type", [torch.float32, torch.float16])
def test_a_layer_draws_its_key_without_an_op_of_its_own(
    monkeypatch: pytest.MonkeyPatch, device: torch.device, theta_type: torch.dtype
):
    """The key is that of draw_key, for the gradient too."""
    layer = aimle.IMLE(aimle.TopK(3), nb_samples=4).to(device)
    weights = torch.linspace(-1, 1, 10, device=device, dtype=theta_type)

    def step(key: Tensor | None) -> tuple[Tensor, Tensor]:
        theta = torch.zeros(5, 10, device=device, dtype=theta_type, requires_grad=True)
        z = layer(theta, key=key)
        (z * weights).sum().backward()
        return z.detach(), theta.grad

    torch.manual_seed(2)
    expected = [step(aimle.draw_key(weights)) for _ in range(2)]
    monkeypatch.setattr(aimle.functional, "_draw_key", None)
    monkeypatch.setattr(aimle.functional, "_draw_host_key", None)
    torch.manual_seed(2)
    torch.testing.assert_close([step(None) for _ in range(2)], expected, rtol=0, atol=0)


def test_draw_key_uses_all_its_bits(device: torch.device):
    keys = torch.stack([aimle.draw_key(torch.zeros(1, device=device)) for _ in range(200)]).cpu()
    bits = (keys.unsqueeze(-1) >> torch.arange(64)) & 1
    assert ((bits.double().mean(0) - 0.5).abs() < 6 * 0.5 / math.sqrt(200)).all()


def test_draw_key_sets_ranks_apart(device: torch.device, monkeypatch: pytest.MonkeyPatch):
    def drawn(rank: int | None) -> Tensor:
        torch.manual_seed(9)
        return aimle.draw_key(torch.zeros(1, device=device), rank=rank)

    keys = [drawn(rank) for rank in range(50)]
    assert torch.equal(keys[0], drawn(None))
    assert len({tuple(key.tolist()) for key in keys}) == 50
    assert len({key[0].item() for key in keys}) == 50
    monkeypatch.setattr(aimle.functional, "_RANK", 7)
    assert torch.equal(drawn(None), keys[7])


def test_a_key_is_drawn_from_a_generator_for_a_rank():
    like = torch.zeros(2)
    with pytest.raises(TypeError, match=r"generator to be a torch\.Generator or None but got int"):
        aimle.draw_key(like, generator=3)
    with pytest.raises(TypeError, match="rank to be an int but got str"):
        aimle.draw_key(like, rank="first")
    with pytest.raises(ValueError, match="rank >= 0 but got rank=-1"):
        aimle.draw_key(like, rank=-1)
