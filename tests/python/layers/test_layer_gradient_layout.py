"""dy as autograd makes it: expanded, transposed, in half precision. It is read where it lies, and
means what it means as a contiguous tensor."""

import pytest
import torch
from torch import Tensor

import aimle

SAMPLES = 5


def _layer(kind: str, solver, output: str) -> torch.nn.Module:
    settings = {"noise": aimle.Gumbel(), "nb_samples": SAMPLES, "output": output}
    adaptive = aimle.AdaptiveTarget(initial_alpha=0.5)
    if kind == "central":
        return aimle.AIMLE(solver, target=adaptive, **settings)
    if kind == "forward":
        return aimle.AIMLE(solver, target=adaptive, symmetric_perturbation=False, **settings)
    if kind == "batch":
        target = aimle.AdaptiveTarget(initial_alpha=0.5, scope="batch")
        return aimle.AIMLE(solver, target=target, **settings)
    if kind == "straight_through":
        return aimle.STE(solver, **settings)
    return aimle.estimator("thresholds", solver, **settings)


def _layouts(shape: torch.Size, dtype: torch.dtype) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(3)

    def draw(*sizes: int) -> Tensor:
        return torch.randn(sizes, generator=generator).to(dtype)

    layouts = {
        "one number": draw(*(1,) * len(shape)).expand(shape),
        "one row": draw(*(1,) * (len(shape) - 1), shape[-1]).expand(shape),
        "permuted": draw(*reversed(shape)).permute(*reversed(range(len(shape)))),
        "every second": draw(*(2 * size for size in shape))[(slice(None, None, 2),) * len(shape)],
        "cut out": draw(*shape[:-1], shape[-1] + 3)[..., 1:-2],
    }
    for d in range(len(shape)):
        sizes = list(shape)
        sizes[d] = 1
        layouts[f"expanded along {d}"] = draw(*sizes).expand(shape)
    return layouts


KINDS = ("central", "forward", "batch", "straight_through", "thresholds")
CASES = [
    pytest.param(solver, shape, kind, id=f"{name}-{kind}")
    for name, solver, shape in (
        ("rows", aimle.TopK(3), (6, 8)),
        ("two batch dimensions", aimle.TopK(3), (2, 3, 8)),
        ("one example", aimle.TopK(2), (8,)),
        ("grids", aimle.GridPath(), (4, 3, 5)),
    )
    for kind in KINDS
    if not (kind == "thresholds" and name == "grids")  # which have none
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("output", ["samples", "flat", "mean"])
@pytest.mark.parametrize(("solver", "shape", "kind"), CASES)
def test_every_layout_of_the_gradient_means_the_same(solver, shape, kind, output, dtype):
    theta = torch.randn(shape, generator=torch.Generator().manual_seed(2)).abs().to(dtype)
    theta.requires_grad_()
    key = torch.tensor([5, 6])
    shape_of_z = _layer(kind, solver, output)(theta, key=key).shape
    for name, dy in _layouts(shape_of_z, dtype).items():
        gradients = [
            torch.autograd.grad(_layer(kind, solver, output)(theta, key=key), theta, given)[0]
            for given in (dy, dy.clone(memory_format=torch.contiguous_format))
        ]
        assert gradients[0].dtype == dtype
        assert torch.equal(*gradients), name
        if name == "cut out":
            assert gradients[0].any(), name
