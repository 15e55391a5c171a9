"""`aimle diagnose` and `aimle.diagnose`: right numbers, on files and on a user's batch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from aimle_program import aimle, fails, need_program
from html_page import check
from repository import ROOT

import aimle as library

ROW = {
    "estimator", "lambda", "fixed_lambda", "samples", "cosine", "cosine_se", "norm_ratio", "bias",
    "variance", "zeros", "alpha", "microseconds", "clipped",
}  # fmt: skip


def by_name(rows: list[dict], samples: int) -> dict[str, dict]:
    return {row["estimator"]: row for row in rows if row["samples"] == samples}


def by_the_package(rows: list[dict]) -> list[dict]:
    """What the package recommends where the program measured these rows."""
    found = library.Diagnosis("", [], "exact", 0.0, 20, rows)
    fields = ("samples", "estimator", "lambda", "reason")
    return [{name: advice[name] for name in fields} for advice in found.recommendations]


# ---- the program -------------------------------------------------------------------------------


def run(folder: Path, *options: object, **more) -> dict:
    need_program()
    result = aimle("diagnose", "--out", folder, "--repeats", 20, "--warmup", 20, *options, **more)
    assert result.returncode == 0, result.stderr
    found = json.loads((folder / "diagnosis.json").read_text())
    assert all(set(row) == ROW for row in found["results"])
    assert "estimator" in result.stdout
    assert len(found["recommendations"]) == len({row["samples"] for row in found["results"]})
    assert found["recommendations"] == by_the_package(found["results"])
    return found


def test_files_are_read_and_unbiased_estimators_found_so(tmp_path: Path):
    random = np.random.RandomState(3)
    theta, b = random.randn(8).astype(np.float32), random.randn(8)
    np.save(tmp_path / "theta.npy", theta)
    np.savetxt(tmp_path / "b.csv", b[None], delimiter=",")
    found = run(
        tmp_path / "out",
        *("--theta", tmp_path / "theta.npy", "--b", tmp_path / "b.csv"),
        *("--structure", "topk", "--k", 3, "--samples", "1000"),
        *("--estimators", "sfe:baseline=leave_one_out,thresholds,ste,imle", "--lambdas", "0.1,1"),
    )
    assert found["truth"] == "exact"
    rows = by_name(found["results"], 1000)
    # 20 000 samples in all: what is left of the noise is a hundredth of its standard deviation.
    assert rows["sfe:baseline=leave_one_out"]["bias"] < 0.1
    assert rows["sfe:baseline=leave_one_out"]["cosine"] > 0.97
    assert rows["ste"]["bias"] > 1
    assert {r["lambda"] for r in found["results"] if r["estimator"] == "imle"} == {0.1, 1}


@pytest.mark.parametrize(
    "structure",
    [
        "argmax",
        "topk",
        "spanning_tree",
        "grid_path",
        "chain",
        "bernoulli",
        "lattice_path",
        "assignment",
        "arborescence",
    ],
)
def test_every_structure_and_all_that_apply(structure: str, tmp_path: Path):
    sizes = {"spanning_tree": 5, "grid_path": 3, "chain": 3, "lattice_path": 3}
    n = {**sizes, "assignment": 4, "arborescence": 4}.get(structure, 8)
    found = run(tmp_path / "out", "--structure", structure, "--n", n, "--samples", "10")
    assert found["truth"] == "exact"
    solver = {
        "argmax": library.Argmax(),
        "topk": library.TopK(3),
        "spanning_tree": library.SpanningTree(5),
        "grid_path": library.GridPath(),
        "lattice_path": library.LatticePath(),
        "assignment": library.Assignment(),
        "arborescence": library.Arborescence(),
        "chain": library.Chain(),
        "bernoulli": library.Bernoulli(),
    }[structure]
    expected = set()
    for name in library.estimators():
        for usable in [solver] + ([library.TopK(1)] if structure == "argmax" else []):
            try:
                library.estimator(name, usable, **({} if name == "dbb" else {"nb_samples": 10}))
                expected.add(name)
            except TypeError:
                pass
    assert {row["estimator"].split(":")[0] for row in found["results"]} == expected


def test_recorded_gradients_and_a_large_grid(tmp_path: Path):
    dy = np.random.RandomState(0).rand(3, 36).astype(np.float32)
    np.save(tmp_path / "dy.npy", dy)
    found = run(
        tmp_path / "out",
        *("--structure", "grid_path", "--n", 6, "--dy", tmp_path / "dy.npy"),
        *("--samples", "3,2000", "--estimators", "dpo,imle_central:lambda=0.3"),
    )
    assert found["truth"].startswith("long run")
    assert 0 < found["truth_relative_se"] < 0.2
    # The loss is linear: the perturbed optimiser is unbiased for the same model, by another way.
    rows = by_name(found["results"], 2000)
    noise = (rows["dpo"]["variance"] / 20) ** 0.5 + found["truth_relative_se"]
    assert rows["dpo"]["bias"] < 4 * noise < 0.5
    assert rows["imle_central"]["cosine"] > 0.2


def test_the_page(tmp_path: Path):
    pytest.importorskip("matplotlib")
    run(tmp_path / "out", "--n", 6, "--samples", "2,20", "--lambdas", "0.1,1", figures=True)
    html = (tmp_path / "out/report.html").read_text()
    check(html)
    assert html.count("<svg") == 3


def test_grid_paths_of_scores_are_refused(tmp_path: Path):
    need_program()
    for method in ("aimle", "dpo"):
        fails(
            *("diagnose", "--structure", "grid_path", "--n", 5, "--out", tmp_path / "out"),
            *("--estimators", f"{method}:sense=max"),
            code=1,
            says='expected sense "min" for grid_path',
        )
    assert not (tmp_path / "out").exists()


def test_bad_files_are_named(tmp_path: Path):
    need_program()

    def theta(name: str, content: bytes, says: str, *more: object) -> None:
        path = tmp_path / name
        path.write_bytes(content)
        fails(*("diagnose", "--theta", path, "--out", tmp_path / "out", *more), code=1, says=says)
        assert not (tmp_path / "out").exists()

    def npy(array: np.ndarray) -> bytes:
        np.save(tmp_path / "array.npy", array)
        return (tmp_path / "array.npy").read_bytes()

    good = npy(np.ones(5))
    fails("diagnose", "--theta", tmp_path / "no.npy", code=1, says="there is no such file")
    theta("a.txt", b"1,2", "ends in .npy, .npz or .csv")
    theta("a.npy", b"1,2", "expected a .npy file")
    theta("b.npy", good[:-1], "breaks off")
    theta("c.npy", good[:20], "breaks off inside the header")
    theta("d.npy", npy(np.ones(5, dtype=np.complex64)), "expected little-endian numbers")
    theta("e.npy", npy(np.ones((2, 2, 2))), "one or two dimensions")
    theta("f.npy", npy(np.array([1.0, np.nan])), "entry 1 is nan")
    theta("h.npy", npy(np.ones(0)), "expected numbers but it holds none")
    theta("a.csv", b"", "expected numbers but it holds none")
    theta("b.csv", b"1,2\n3\n", "b.csv:2: expected 2 numbers")
    theta("c.csv", b"1,two\n", "c.csv:1: expected a number but got 'two'")
    theta("d.csv", b"1,2\n3,4\n", "expected one row")
    theta("e.csv", b"1,,2\n", "expected a number but got ''")
    theta("f.csv", b"1,2,3,4\n", "n(n-1)/2", "--structure", "spanning_tree")
    theta("g.csv", b"1,2,3,4\n", "expected --k below", "--structure", "topk", "--k", 4)
    (tmp_path / "b3.csv").write_text("1,2,3")
    theta("h.csv", b"1,2,3,4\n", "as many as theta has", "--b", tmp_path / "b3.csv")


# ---- the Python function -----------------------------------------------------------------------


def quartic(z: torch.Tensor) -> torch.Tensor:
    weights = torch.linspace(-1, 1, z.shape[-1], dtype=z.dtype)
    return (z * weights).sum(-1).pow(4) + (z * weights.flip(-1)).sum(-1)


def test_on_a_batch_and_any_loss(tmp_path: Path):
    torch.manual_seed(0)
    theta = torch.randn(3, 7)
    layer = library.AIMLE(library.TopK(2), nb_samples=5)
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    found = library.diagnose(
        layer, theta, quartic, nb_samples=(400,), repeats=12, warmup=30, lambdas=(0.5,)
    )
    assert found.truth == "exact"
    rows = by_name(found.rows, 400)
    assert {"your layer", "aimle", "imle", "thresholds", "sfe"} <= set(rows)
    assert "gumbel_softmax" not in rows
    assert rows["sfe"]["bias"] < 4 * (rows["sfe"]["variance"] / 12) ** 0.5
    assert rows["sfe"]["cosine"] > 0.8
    assert all(torch.equal(value, before[name]) for name, value in layer.state_dict().items())
    assert "S = 400" in str(found)
    pytest.importorskip("matplotlib")
    assert found.save(tmp_path / "out").name == "report.html"
    assert len(json.loads((tmp_path / "out/diagnosis.json").read_text())["results"]) == len(rows)


def test_the_truth_of_a_long_run_agrees_with_the_exact_one():
    torch.manual_seed(1)
    theta = torch.randn(1, 5)
    loss = torch.tensor([0.0, 1.0, -2.0, 0.5, 3.0])

    def linear(z: torch.Tensor) -> torch.Tensor:
        return (z * loss).sum(-1)

    # As a callable the solver has no exact distribution; for argmax the two models are the same.
    def solver(scores: torch.Tensor) -> torch.Tensor:
        return library.solve(library.Argmax(), scores)

    from aimle._truth import Model, find_truth

    exact, about, error = find_truth(library.Argmax(), Model(), theta, linear, 1000)
    assert (about, error) == ("exact", 0.0)
    run_, about, error = find_truth(solver, Model(), theta, linear, 400_000)
    assert about == "perturbation model, long run"
    assert 0 < error < 0.05
    assert (run_ - exact).norm() / exact.norm() < 4 * error


def spread(z: torch.Tensor) -> torch.Tensor:
    """A linear loss, in which every entry of an instance counts otherwise."""
    flat = z.flatten(2)
    return (flat * torch.linspace(-1, 2, flat.shape[-1])).sum(-1)


def test_a_short_truth_uses_one_thread_and_leaves_the_number_as_it_was():
    """Threads wait busily at the end of each short operation: most of the time of small batches."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        seen = []

        def loss(z: torch.Tensor) -> torch.Tensor:
            seen.append((z.shape[1], torch.get_num_threads()))
            return z.flatten(2).sum(-1)

        solver, theta = library.GridPath(), torch.rand(2, 6, 6) + 0.5
        library.diagnose(solver, theta, loss, nb_samples=1, estimators=["ste"], repeats=2)
        assert {threads for samples, threads in seen if samples > 1} == {1}
        assert {threads for samples, threads in seen if samples == 1} == {2}

        def fails(z: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("no loss")

        with pytest.raises(RuntimeError, match="no loss"):
            library.diagnose(solver, theta, fails)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("solver", "shape"),
    [
        (library.Argmax(), (2, 5)),
        (library.TopK(2), (2, 5)),
        (library.SpanningTree(4), (2, 6)),
        (library.SpanningTree(4), (2, 12)),
        (library.SpanningTree(9), (1, 36)),
        (library.GridPath(), (2, 3, 3)),
        (library.LatticePath(), (2, 3, 4)),
        (library.LatticeMoves("diagonal"), (2, 4, 2, 3)),
    ],
    ids=str,
)
def test_every_solver_has_a_truth(solver: library.Solver, shape: tuple[int, ...]):
    torch.manual_seed(2)
    found = library.diagnose(
        solver,
        torch.rand(shape),
        spread,
        estimators=["ste"],
        nb_samples=(2,),
        repeats=2,
        truth_samples=400,
    )
    assert found.rows[0]["estimator"] == "ste"
    truths = {
        library.SpanningTree(9): "score function, long run",
        library.GridPath(): "perturbation model, long run",  # of Normal noise
        library.LatticePath(): "perturbation model, long run",
        library.LatticeMoves("diagonal"): "perturbation model, long run",
    }
    assert found.truth == truths.get(solver, "exact")


def test_the_share_of_clipped_costs_is_shown_for_grids():
    torch.manual_seed(2)
    settings = {"nb_samples": 2, "repeats": 2, "warmup": 2}
    costs = 0.1 + torch.rand(2, 3, 3)
    found = library.diagnose(
        library.IMLE(library.GridPath(), noise="gumbel"),
        costs,
        spread,
        estimators=["ste"],
        **settings,
    )
    yours, ste = found.rows
    assert 0 < yours["clipped"] < 0.5
    assert ste["clipped"] is None
    assert "us/call clipped" in str(found)
    found = library.diagnose(
        library.Argmax(), torch.rand(2, 4), spread, estimators=["ste"], **settings
    )
    assert found.rows[0]["clipped"] is None
    assert "clipped" not in str(found)


@pytest.mark.parametrize("shape", [(6,), (3, 6), (2, 2, 6), (3, 3, 3)], ids=str)
def test_the_cosine_is_that_of_whole_examples(shape: tuple[int, ...]):
    from aimle._measure import compare

    class Given(torch.nn.Module):
        def forward(self, theta: torch.Tensor) -> torch.Tensor:
            return theta.unsqueeze(theta.dim() - dims)

    torch.manual_seed(3)
    dims = 2 if shape == (3, 3, 3) else 1
    truth, weights = torch.randn(shape, dtype=torch.float64), torch.randn(shape)
    place = len(shape) - dims

    def loss(z: torch.Tensor) -> torch.Tensor:
        return (z * weights.unsqueeze(place)).flatten(place + 1).sum(-1)

    row = compare(Given(), torch.zeros(shape), loss, truth, 2, dims)
    rows = [
        x.reshape(*shape[:place], -1).reshape(-1, 6 if dims == 1 else 9) for x in (truth, weights)
    ]
    expected = torch.cosine_similarity(rows[0], rows[1].double(), dim=-1).mean()
    assert row["cosine"] == pytest.approx(float(expected))


@pytest.mark.parametrize("native", [True, False], ids=["native", "callable"])
def test_the_layers_sense_is_everybodys(native: bool):
    torch.manual_seed(4)
    costs = torch.randn(2, 5)
    names = ["ste", "imle_central", *(["sfe"] if native else [])]
    settings = {"nb_samples": (2000,), "repeats": 4, "lambdas": (0.3,), "estimators": names}

    def cheapest(scores: torch.Tensor) -> torch.Tensor:
        return library.Argmax()(-scores)

    target = library.FixedTarget(0.3)
    layer = library.IMLE(library.Argmax() if native else cheapest, target=target, sense="min")
    for row in library.diagnose(layer, costs, spread, **settings).rows:
        assert row["cosine"] > (0.2 if row["estimator"] == "ste" else 0.8), row


def test_advice_leaves_out_estimators_whose_bias_samples_do_not_reduce():
    def row(name: str, cosine: float) -> dict:
        same = {"samples": 10, "cosine_se": 0.01, "bias": 1.5, "microseconds": 9.0}
        return {"estimator": name, "lambda": None, "fixed_lambda": False, "cosine": cosine} | same

    rows = [row("identity", 0.9), row("ste", 0.8), row("thresholds", 0.7), row("aimle", 0.6)]
    found = library.Diagnosis("TopK", [1, 6], "exact", 0.0, 10, rows)
    (advice,) = found.recommendations
    assert advice["estimator"] == "thresholds"
    assert advice["reason"].endswith(
        "; identity has cosine 0.900, but a bias that more samples do not reduce, and may train "
        "badly"
    )
    found.rows = rows[2:]
    assert "do not reduce" not in found.recommendations[0]["reason"]
    found.rows = rows[:2]
    (advice,) = found.recommendations
    assert advice["estimator"] == "identity"
    assert advice["reason"].endswith("more samples do not reduce that, and it may train badly")


def square(z: torch.Tensor) -> torch.Tensor:
    target = torch.linspace(0, 1, z.shape[-1], dtype=z.dtype)
    return (z * target.flip(-1)).sum(-1) * (z * target).sum(-1) + (z - target).square().sum(-1)


@pytest.mark.parametrize("temperature", [0.3, 2.0])
def test_the_truth_has_the_temperature_of_the_layer(temperature: float):
    """Thresholds and ReinMax are unbiased for one of n under Gumbel noise and a quadratic loss."""
    torch.manual_seed(0)
    theta = temperature * torch.randn(1, 6)
    layer = library.Thresholds(library.Argmax(), temperature=temperature)
    names = ["thresholds", "reinmax", "imle"]
    settings = {"nb_samples": 500, "repeats": 20, "estimators": names, "lambdas": (temperature,)}
    found = library.diagnose(layer, theta, square, **settings)
    assert found.truth == "exact"
    rows = by_name(found.rows, 500)
    for name in ("your layer", "thresholds", "reinmax"):
        assert rows[name]["bias"] < 4 * (rows[name]["variance"] / 20) ** 0.5 + 1e-3, rows[name]
        assert rows[name]["norm_ratio"] == pytest.approx(1, abs=0.1)
    assert rows["imle"]["lambda"] == temperature
    # Everything but lambda is that of theta / temperature at temperature 1.
    torch.manual_seed(1)
    scaled = library.diagnose(
        library.Thresholds(library.Argmax()),
        theta / temperature,
        square,
        **settings | {"lambdas": (1.0,)},
    )
    other = by_name(scaled.rows, 500)["imle"]
    assert rows["imle"]["bias"] == pytest.approx(other["bias"], abs=0.1)


def test_the_truth_has_the_noise_of_the_layer():
    """A long run of the layer's own model, also for noise without a density."""
    torch.manual_seed(0)
    theta = torch.randn(2, 5)
    for noise, temperature in ((library.Normal(), 0.5), (library.Logistic(), 0.3)):
        layer = library.Thresholds(library.Argmax(), noise=noise, temperature=temperature)
        found = library.diagnose(
            layer, theta, square, nb_samples=500, estimators=["ste"], truth_samples=100_000
        )
        assert found.truth == "perturbation model, long run"
        row = by_name(found.rows, 500)["your layer"]
        error = (row["variance"] / 20 + found.truth_relative_se**2) ** 0.5
        assert row["bias"] < 4 * error
    grid = library.IMLE(library.GridPath(), noise=library.SumOfGamma(9), temperature=0.5)
    costs = torch.rand(1, 6, 6) + 1
    found = library.diagnose(
        grid, costs, spread, nb_samples=500, estimators=["imle_central"], lambdas=(0.3,)
    )
    assert by_name(found.rows, 500)["imle_central"]["cosine"] > 0.8


def test_the_program_takes_the_temperature_of_the_noise(tmp_path: Path):
    need_program()
    np.save(tmp_path / "theta.npy", 0.3 * np.random.default_rng(0).normal(size=6))
    options = ["--theta", tmp_path / "theta.npy", "--samples", 2000, "--repeats", 20]
    options += ["--estimators", "thresholds,reinmax", "--temperature", 0.3]
    done = aimle("diagnose", *options, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out/diagnosis.json").read_text())
    for row in found["results"]:
        assert row["bias"] < 4 * (row["variance"] / 20) ** 0.5 + 1e-3
    fails(
        *("diagnose", "--estimators", "thresholds:temperature=0.3", "--out", tmp_path / "other"),
        code=2,
        says="give the temperature of the noise as --temperature",
    )


def test_it_says_what_it_wants():
    theta = torch.randn(2, 5)
    with pytest.raises(TypeError, match="an estimator or a solver"):
        library.diagnose(torch.nn.Linear(2, 2), theta, quartic)
    with pytest.raises(ValueError, match=r"a loss for every sample"):
        library.diagnose(library.Argmax(), theta, lambda z: z.sum())
    with pytest.raises(ValueError, match="ignores the choice"):
        library.diagnose(library.Argmax(), theta, lambda z: 0 * z.sum(-1))
    with pytest.raises(ValueError, match=r"it is 1\.6 for all solutions"):
        library.diagnose(library.TopK(2), theta, lambda z: (0.3 * z.flip(-1) + 0.2).sum(-1))
    with pytest.raises(ValueError, match="repeats"):
        library.diagnose(library.Argmax(), theta, quartic, repeats=1)
    with pytest.raises(TypeError, match="applies to"):
        library.diagnose(library.TopK(2), theta, quartic, estimators=["reinmax"])
    with pytest.raises(TypeError, match="loss_fn to return a tensor but got NoneType"):
        library.diagnose(library.TopK(2), theta, lambda z: None)

    def blind(z):
        return quartic(z).detach()

    with pytest.raises(ValueError, match="differentiable in z"):
        library.diagnose(library.TopK(2), theta, blind, nb_samples=2, warmup=0)
    found = library.diagnose(library.TopK(2), theta, blind, nb_samples=2, estimators=["sfe"])
    assert {row["estimator"] for row in found.rows} == {"sfe"}
    assert {row["samples"] for row in found.rows} == {2}


# ---- the log -----------------------------------------------------------------------------------


def test_stats_go_to_any_callable():
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.choose = library.AIMLE(library.TopK(2))

    model = Model()
    written: list[tuple[str, float, int]] = []
    first = library.log_stats(model, lambda *entry: written.append(entry), 0)
    assert set(first) == {"aimle/choose/alpha", "aimle/choose/gbar", "aimle/choose/updates"}
    z = model.choose(torch.randn(4, 6, requires_grad=True))
    z.square().sum().backward()
    library.log_stats(model.choose, lambda *entry: written.append(entry), 7, prefix="layer")
    assert ("layer/updates", 1.0, 7) in written
    assert any(name == "layer/lambda_mean" for name, _, _ in written)


def test_the_example_logs_every_number():
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, str(ROOT / "examples/log_stats.py")]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines()]
    names = {name for _, name, _ in lines}
    assert {"loss", "aimle/alpha", "aimle/lambda_mean", "aimle/count"} <= names
    losses = [float(value) for _, name, value in lines if name == "loss"]
    assert losses[-1] < losses[0]
