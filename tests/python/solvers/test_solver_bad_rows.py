"""Invalid data: a status and a row of NaN, or an exception that names the row."""

import pytest
import torch
from bad_rows import bools, scores, with_value

import aimle

inf, nan = float("inf"), float("nan")

VALUES_THAT_ONLY_DATA_SHOW = [
    (aimle.TopK(2), scores(3, 5), {"k": torch.tensor([1, 9, 2])}, aimle.Status.BAD_K),
    (aimle.TopK(2), scores(3, 3), {"mask": bools("111", "100", "011")}, "TOO_FEW_ENTRIES"),
    (aimle.SpanningTree(3), scores(3, 3), {"mask": bools("111", "100", "111")}, "DISCONNECTED"),
    (
        aimle.GridPath(negative="error"),
        with_value(-1, 1, 0, 1, shape=(3, 2, 2)),
        {},
        "NEGATIVE_COST",
    ),
    (
        aimle.Assignment(),
        scores(3, 2, 2),
        {"mask": torch.tensor([[[True, True]] * 2, [[True, False]] * 2, [[True, True]] * 2])},
        "TOO_FEW_ENTRIES",
    ),
    (
        aimle.Arborescence(single_root=True),
        scores(3, 2, 2),
        {
            "mask": torch.tensor(
                [[[True, True]] * 2, [[True, False], [False, True]], [[True, True]] * 2]
            )
        },
        "DISCONNECTED",
    ),
    (aimle.Assignment(), with_value(nan, 1, 0, 1, shape=(3, 2, 3)), {}, "NAN"),
    (aimle.Argmax(), with_value(nan, 1, 0, shape=(3, 2)), {}, "NAN"),
    (aimle.LatticePath(), with_value(-inf, 1, 0, 0, shape=(3, 2, 3)), {}, "DISCONNECTED"),
    (aimle.LatticeMoves(), with_value(nan, 1, 1, 0, 2, shape=(3, 2, 2, 3)), {}, "NAN"),
]


@pytest.mark.parametrize(("solver", "x", "extra", "status"), VALUES_THAT_ONLY_DATA_SHOW)
@pytest.mark.parametrize("options", [{"return_status": True}, {"check": False}])
def test_bad_rows_are_nan_where_nothing_is_to_raise(
    solver, x, extra, status, options, device: torch.device
):
    extra = {name: value.to(device) for name, value in extra.items()}
    result = aimle.solve(solver, x.to(device), **extra, **options)
    z = result[0] if "return_status" in options else result
    assert z[1].isnan().all()
    assert not z[[0, 2]].isnan().any()
    if "return_status" in options:
        expected = aimle.Status[status] if isinstance(status, str) else status
        assert result[1].tolist() == [0, expected, 0]


@pytest.mark.parametrize(("solver", "x", "extra", "status"), VALUES_THAT_ONLY_DATA_SHOW)
def test_check_raises_on_every_device(solver, x, extra, status, device: torch.device):
    extra = {name: value.to(device) for name, value in extra.items()}
    with pytest.raises(ValueError, match="row 1: expected"):
        aimle.solve(solver, x.to(device), check=True, **extra)
    with pytest.raises(ValueError, match="row 1: expected"):
        aimle.solve(solver, x.to(device), check=True, return_status=True, **extra)


def test_whatever_comes_it_is_solved_or_refused():
    """Random shapes, types, masks, k and values, right and wrong: a result or one of two errors."""
    generator = torch.Generator().manual_seed(12)

    def pick(*choices):
        return choices[torch.randint(len(choices), (), generator=generator)]

    def shape(most: int) -> tuple[int, ...]:
        return tuple(pick(0, 1, 2, 3, 6) for _ in range(pick(*range(most + 1))))

    solved, refused = 0, []
    for trial in range(3000):
        x = torch.randn(shape(4), generator=generator) * pick(1.0, 1e-40, 1e38)
        x = torch.where(
            torch.rand(x.shape, generator=generator) < 0.1, pick(inf, -inf, nan, 0.0), x
        )
        x = x.to(pick(torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64))
        solver = pick(
            aimle.Argmax(),
            aimle.TopK(pick(0, 1, 3)),
            aimle.SpanningTree(pick(1, 2, 3, 4)),
            aimle.GridPath(pick(4, 8), source=pick((0, 0), (1, 2)), negative=pick("clip", "error")),
            aimle.LatticePath(pick("all", "straight", "diagonal")),
            aimle.LatticeMoves(pick("all", "straight", "diagonal")),
            aimle.Assignment(),
            aimle.Arborescence(single_root=pick(True, False)),
        )
        masked = torch.rand(pick(x.shape, x.shape[1:], shape(4)), generator=generator) < 0.7
        k = torch.randint(-1, 5, pick(x.shape[:-1], x.shape[:1], shape(2)), generator=generator)
        options = {
            "mask": pick(None, None, masked, masked.float()),
            "k": pick(None, None, k, k.int()) if isinstance(solver, aimle.TopK) else None,
            "check": pick(None, True, False),
        }
        try:
            z, status = aimle.solve(solver, x, return_status=True, **options)
        except (ValueError, TypeError) as error:
            refused.append(str(error))
        else:
            solved += 1
            assert z.shape == x.shape, (trial, solver, x.shape, options)
            assert z.dtype == x.dtype
            good = (status == 0)[(...,) + (None,) * solver.instance_dims].expand(z.shape)
            assert ((z == 0) | (z == 1))[good].all(), (trial, solver, x, options)
            assert z[~good].isnan().all(), (trial, solver, x, options)
    assert min(solved, len(refused)) > 300
    assert [message for message in refused if not message.startswith("[aimle")] == []
