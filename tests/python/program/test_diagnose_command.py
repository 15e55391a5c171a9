"""`aimle diagnose`: files, options and messages; the numbers are those of `aimle.diagnose`."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from aimle_program import PROGRAM, aimle, fails, need_program
from html_page import check
from terminal import terminal

import aimle as library

ROW = {
    "estimator", "lambda", "fixed_lambda", "samples", "cosine", "cosine_se", "norm_ratio", "bias",
    "variance", "zeros", "alpha", "microseconds", "clipped",
}  # fmt: skip


def by_name(rows: list[dict], samples: int) -> dict[str, dict]:
    return {row["estimator"]: row for row in rows if row["samples"] == samples}


def run(folder: Path, *options: object, **more) -> dict:
    need_program()
    result = aimle("diagnose", "--out", folder, "--repeats", 20, "--warmup", 20, *options, **more)
    assert result.returncode == 0, result.stderr
    found = json.loads((folder / "diagnosis.json").read_text())
    assert all(set(row) == ROW for row in found["results"])
    assert "estimator" in result.stdout
    assert len(found["recommendations"]) == len({row["samples"] for row in found["results"]})
    kind = {"argmax": "Argmax"}.get(found["structure"], "")
    steps = {name: found[name] for name in ("long_step", "saturated")}
    about = library.Diagnosis(kind, [], "exact", 0.0, 20, found["results"], **steps)
    assert found["recommendations"] == about.recommendations
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
    settings = ("--samples", "10", "--long_run", 2000)
    found = run(tmp_path / "out", "--structure", structure, "--n", n, *settings)
    # Those with Normal noise are compared with the model of that noise.
    varies = structure in ("grid_path", "lattice_path")
    assert found["truth"] == ("perturbation model, long run" if varies else "exact")
    assert found["temperature"] == (0.3 if varies else 1)
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
    assert found["truth"] == "perturbation model, long run"
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
    assert "bands are one standard error over 20 estimates." in html
    assert "S = 2; ± is the standard error over 20 estimates; " in html


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
    theta("b.npy", good[:-1], "is truncated")
    theta("c.npy", good[:20], "is truncated inside the header")
    theta("d.npy", npy(np.ones(5, dtype=np.complex64)), "expected little-endian numbers")
    theta("e.npy", npy(np.ones((2, 2, 2))), "one or two dimensions")
    theta("f.npy", npy(np.array([1.0, np.nan])), "entry 1 is nan")
    theta("h.npy", npy(np.ones(0)), "expected numbers but it contains none")
    theta("a.csv", b"", "expected numbers but it contains none")
    theta("b.csv", b"1,2\n3\n", "b.csv:2: expected 2 numbers")
    theta("c.csv", b"1,two\n", "c.csv:1: expected a number but got 'two'")
    theta("d.csv", b"1,2\n3,4\n", "expected one row")
    theta("e.csv", b"1,,2\n", "expected a number but got ''")
    theta("f.csv", b"1,2,3,4\n", "n(n-1)/2", "--structure", "spanning_tree")
    theta("g.csv", b"1,2,3,4\n", "expected --k below", "--structure", "topk", "--k", 4)
    (tmp_path / "b3.csv").write_text("1,2,3")
    theta("h.csv", b"1,2,3,4\n", "as many as theta has", "--b", tmp_path / "b3.csv")


def test_structures_with_data(tmp_path: Path):
    np.save(tmp_path / "knapsack.npy", library.Knapsack([3, 1, 4, 2], capacity=5).data.numpy())
    options = ("--samples", "4", "--long_run", 2000, "--estimators", "aimle,ste")
    knapsack = ("--structure", "knapsack", "--n", 4)
    found = run(tmp_path / "a", *knapsack, "--data", tmp_path / "knapsack.npy", *options)
    assert found["solver"].startswith("knapsack:max_capacity=")
    assert found["shape"] == [4]
    path = library.DagPath([(0, 1), (1, 3), (0, 2), (2, 3), (0, 3)], 0, 3)
    np.savetxt(tmp_path / "dag.csv", path.data[None].numpy(), fmt="%d", delimiter=",")
    dag = ("--structure", "dag_path", "--vertices", 4, "--n", 5, "--data", tmp_path / "dag.csv")
    assert len(run(tmp_path / "b", *dag, *options)["results"]) == 2

    out = ("--out", tmp_path / "out")
    fails("diagnose", *knapsack, *out, code=2, says="knapsack needs data besides its scores")
    data = ("--data", tmp_path / "knapsack.npy")
    fails("diagnose", *data, *out, code=2, says="--data: argmax takes no data")
    fails("diagnose", *knapsack[:2], "--n", 9, *data, *out, code=1, says="but got")
    (tmp_path / "half.csv").write_text("3,1.5,4,2,5")
    half = ("--data", tmp_path / "half.csv")
    fails("diagnose", *knapsack, *half, *out, code=1, says="entry 1 is 1.5")
    (tmp_path / "rows.csv").write_text("3,1,4,2,5\n3,1,4,2,5\n")
    rows = ("--data", tmp_path / "rows.csv")
    fails("diagnose", *knapsack, *rows, *out, code=1, says="expected one row of numbers")
    assert not (tmp_path / "out").exists()


def test_sizes_that_a_file_does_not_tell(tmp_path: Path):
    """Directed trees have a vertex count, chains their positions and labels."""
    np.save(tmp_path / "edges.npy", np.random.RandomState(0).randn(12))
    np.save(tmp_path / "chain.npy", np.random.RandomState(0).randn(4, 9))
    options = ("--samples", 1, "--estimators", "ste")
    tree = ("--structure", "spanning_tree", "--theta", tmp_path / "edges.npy")
    assert run(tmp_path / "tree", *tree, "--n", 4, *options)["solver"] == "spanning_tree:n=4"
    chain = ("--structure", "chain", "--theta", tmp_path / "chain.npy")
    sizes = ("--length", 5, "--labels", 3)
    assert run(tmp_path / "chain", *chain, *sizes, *options)["shape"] == [4, 3, 3]

    out = ("--out", tmp_path / "out")
    fails("diagnose", *tree, "--n", 5, *out, code=1, says="20 (directed) entries for n=5")
    has = f"{tmp_path / 'chain.npy'} but it has 36 entries"
    follows = "the shape follows from --n, --length, --labels"
    says = f"expected theta of shape [19, 20, 20] in {has}: {follows}"
    fails("diagnose", *chain, *out, code=1, says=says)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("structure", "says"),
    [
        ("topk:kk=3", "aimle: topk: takes no 'kk'; its settings are k"),
        ("graph_path", "aimle: graph_path: needs vertices (number of vertices of the graph)"),
        ("grid_path:neighbourhood=5", "aimle: grid_path: expected neighbourhood to be 8 or 4"),
    ],
)
def test_wrong_settings_of_a_structure_name_it(structure: str, says: str, tmp_path: Path):
    need_program()
    fails("diagnose", "--structure", structure, "--out", tmp_path / "out", code=2, says=says)


def test_a_loss_that_ignores_the_choice_is_refused(tmp_path: Path):
    (tmp_path / "b.csv").write_text("0.5,0.5,0.5,0.5")
    options = ("--structure", "topk", "--k", 2, "--n", 4, "--b", tmp_path / "b.csv")
    fails("diagnose", *options, "--out", tmp_path / "out", code=1, says="the true gradient is zero")


def test_without_a_python_it_says_what_to_do(tmp_path: Path):
    need_program()
    done = subprocess.run(
        [PROGRAM, "diagnose", "--out", tmp_path / "out"],
        env={**os.environ, "AIMLE_PYTHON": "/no/python"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("aimle: cannot run /no/python")


def test_quiet_still_prints_the_table(tmp_path: Path):
    need_program()
    options = ("--n", 4, "--repeats", 2, "--samples", 2, "--estimators", "ste", "--quiet")
    done = aimle("diagnose", *options, "--out", tmp_path / "out")
    assert done.returncode == 0
    assert "S = 2: ste (cosine" in done.stdout
    assert done.stderr.splitlines() == [
        "no figures were drawn; the numbers are complete without them (matplotlib is not installed)"
    ]


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
        says="set the temperature of the noise with --temperature",
    )


@pytest.mark.parametrize(
    ("seen", "structure", "is_kept"),
    [
        ("finding the true gradient", ["--structure", "grid_path", "--n", "300"], False),
        ("diagnose  ", ["--structure", "argmax", "--repeats", "2000"], True),
    ],
)
@pytest.mark.parametrize("paused", [0, 2])
def test_ctrl_c_in_a_diagnosis(
    paused: float, seen: str, structure: list[str], is_kept: bool, tmp_path: Path
):
    need_program()
    out = tmp_path / "out"
    with terminal("diagnose", "--out", out, *structure, columns=100) as opened:
        opened.wait_for(lambda: seen in opened.shown)
        # Two seconds, on a machine under load more.
        assert opened.interrupt(paused=paused) < 15 + paused
    assert opened.process.returncode == 130
    assert opened.last_line().startswith("aimle: stopped")
    assert (
        f"the results so far are in {out}/diag" if is_kept else "nothing was"
    ) in opened.last_line()
    assert (out / "diagnosis.json").exists() == is_kept
    if is_kept:
        found = json.loads((out / "diagnosis.json").read_text())
        assert not found["complete"]
        assert found["results"]
