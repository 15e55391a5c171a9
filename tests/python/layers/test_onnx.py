"""Models in eval mode are exported to ONNX with Argmax, TopK and functions of PyTorch's operators;
others are refused by an error that names the layer and the remedy."""

import json
import warnings
from pathlib import Path

import pytest
import torch
from extras import need
from torch import Tensor, nn

import aimle
from aimle.onnx.solution import onnx_solution

N = 6


def best_two(scores: Tensor) -> Tensor:
    return torch.zeros_like(scores).scatter(-1, scores.topk(2, -1).indices, 1.0)


def outside(scores: Tensor) -> Tensor:
    """As a solver in another library, which gets numbers and returns numbers."""
    rows = json.loads(json.dumps(scores.tolist()))
    return torch.tensor([[float(score > 0) for score in row] for row in rows])


def cheapest(costs: Tensor) -> Tensor:
    return best_two(-costs)


cheapest.sense = "min"

LAYERS = {
    "top-k": lambda **settings: aimle.AIMLE(aimle.TopK(2), **settings),
    "argmax": lambda **settings: aimle.IMLE(aimle.Argmax(), 3.0, **settings),
    "smallest": lambda **settings: aimle.AIMLE(aimle.TopK(2), sense="min", **settings),
    "thresholds": lambda **settings: aimle.Thresholds(aimle.TopK(2), **settings),
    "exact": lambda **settings: aimle.ExactMarginals(aimle.TopK(2), **settings),
    "dpo": lambda output: aimle.DPO(aimle.TopK(2)),
    "callable": lambda **settings: aimle.AIMLE(best_two, instance_dims=1, **settings),
    "costs": lambda **settings: aimle.AIMLE(cheapest, instance_dims=1, **settings),
    "other sense": lambda **s: aimle.AIMLE(cheapest, sense="max", instance_dims=1, **s),
}
each_layer = pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
each_exporter = pytest.mark.parametrize("dynamo", [True, False], ids=["dynamo", "trace"])


def export(model: nn.Module, x: Tensor, file: Path, dynamo: bool, **settings: object) -> None:
    if dynamo:
        need("onnxscript")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tracing exporter is deprecated
        torch.onnx.export(model.eval(), (x,), file, dynamo=dynamo, verbose=False, **settings)


def run(file: Path, x: Tensor) -> Tensor:
    import onnxruntime

    session = onnxruntime.InferenceSession(file)
    return torch.from_numpy(session.run(None, {session.get_inputs()[0].name: x.numpy()})[0])


@each_layer
@pytest.mark.parametrize("output", ["samples", "flat", "mean"])
def test_what_is_exported_solves_alike(make, output: str):
    torch.manual_seed(0)
    layer, theta = make(output=output).eval(), torch.randn(2, 3, N)
    mask = torch.rand(2, 3, N) < 0.8
    mask[..., :2] = True
    expected = [layer(theta), layer(theta, mask=mask)]
    for given, z in zip((None, mask), expected, strict=True):
        assert torch.equal(onnx_solution(layer, theta, given, None), z)


NATIVE = ("top-k", "argmax", "smallest", "exact")
EXPORTS = [*((name, dynamo) for name in NATIVE for dynamo in (True, False)), ("callable", True)]


@pytest.mark.parametrize(("name", "dynamo"), EXPORTS)
def test_an_exported_file_gives_the_same(name: str, dynamo: bool, tmp_path: Path):
    need("onnxruntime")
    torch.manual_seed(0)
    model, file = nn.Sequential(nn.Linear(N, N), LAYERS[name]()), tmp_path / "model.onnx"
    if dynamo:
        settings: dict = {"dynamic_shapes": ({0: torch.export.Dim("batch")},)}
    else:
        settings = {"input_names": ["x"], "dynamic_axes": {"x": {0: "batch"}}}
    export(model, torch.randn(4, N), file, dynamo, **settings)
    for x in (torch.randn(9, N), torch.zeros(3, N)):
        assert torch.equal(run(file, x), model(x))


@each_exporter
def test_ties_go_to_the_lower_index(dynamo: bool, tmp_path: Path):
    need("onnxruntime")
    file, theta = tmp_path / "model.onnx", torch.tensor([[1.0, 2, 2, 2, 0, 0], [0.0] * N])
    export(aimle.AIMLE(aimle.TopK(2)), theta, file, dynamo)
    chosen = run(file, theta)[:, 0].tolist()
    assert chosen == [[0, 1, 1, 0, 0, 0], [1, 1, 0, 0, 0, 0]]


@each_exporter
def test_rows_without_a_solution_are_nan(dynamo: bool, tmp_path: Path):
    need("onnxruntime")
    file, theta = tmp_path / "model.onnx", torch.randn(4, N)
    theta[1, 3] = torch.nan
    theta[2, 1:] = -torch.inf  # masked: one is left
    theta[3, 2:] = -torch.inf
    layer = aimle.AIMLE(aimle.TopK(2))
    export(layer, theta, file, dynamo)
    with pytest.raises(ValueError, match="row 2: expected at least k=2 entries"):
        layer(theta)  # an error where it can be raised
    others = [0, 1, 3]
    expected = torch.full((4, 1, N), torch.nan)
    expected[others] = layer(theta[others])
    assert expected.isnan().any(-1).flatten().tolist() == [False, True, True, False]
    assert torch.equal(onnx_solution(layer, theta, None, None).isnan(), expected.isnan())
    torch.testing.assert_close(run(file, theta), expected, rtol=0, atol=0, equal_nan=True)


REFUSED = {
    "solver": (
        aimle.SpanningTree(4),
        {},
        "AIMLE. SpanningTree cannot be .* compile the whole model",
    ),
    "noise": (aimle.TopK(2), {"noise_in_eval": True}, "AIMLE. noise cannot .* noise_in_eval=False"),
    "outside": (outside, {}, "AIMLE. .*callable solver cannot be"),
}


@each_exporter
@pytest.mark.parametrize(("solver", "settings", "said"), REFUSED.values(), ids=REFUSED)
def test_others_are_refused(solver, settings: dict, said: str, dynamo: bool, tmp_path: Path):
    model = nn.Sequential(nn.Linear(N, N), aimle.AIMLE(solver, **settings))
    with pytest.raises(Exception, match=said):  # the new exporter wraps errors in its own
        export(model, torch.randn(4, N), tmp_path / "model.onnx", dynamo)


def test_a_layer_in_training_mode_is_refused(monkeypatch):
    monkeypatch.setattr("aimle.perturbed_map.in_onnx_export", lambda: True)
    with pytest.raises(RuntimeError, match=r"AIMLE. a layer in training mode .* call eval\(\)"):
        aimle.AIMLE(aimle.TopK(2))(torch.randn(4, N))
    with pytest.raises(RuntimeError, match="k per row cannot be exported"):
        aimle.AIMLE(aimle.TopK(2)).eval()(torch.randn(4, N), k=torch.tensor([1, 2, 3, 4]))


def test_nothing_else_is_taken_for_an_export():
    layer, theta = aimle.AIMLE(aimle.SpanningTree(4)).eval(), torch.randn(4, N)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(theta), layer(theta))
    exported = torch.export.export(layer, (theta,), strict=True).module()
    assert torch.equal(exported(theta), layer(theta))
