"""`aimle train`: the files of a run, and bit-identical resumption."""

from __future__ import annotations

import gzip
import json
import math
import os
import random
import re
import resource
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from aimle_program import metrics

import aimle

# Options of a run of about a second, for every experiment.
SHORT = {
    "dvae": {
        "--examples": "400",
        "--test_examples": "40",
        "--validation": "40",
        "--batch": "20",
        "--nb_samples": "2",
        "--epochs": "3",
        "--threads": "1",
    },
}


def command(program: Path, out: Path, *options: str, experiment: str = "dvae") -> list[str]:
    kept = [text for pair in SHORT[experiment].items() if pair[0] not in options for text in pair]
    return [str(program), "train", experiment, "--out", str(out), *kept, *options]


def train(program: Path, out: Path, *options: str, **settings: Any) -> subprocess.CompletedProcess:
    expect = settings.pop("expect", 0)
    experiment = settings.pop("experiment", "dvae")
    done = subprocess.run(
        command(program, out, *options, experiment=experiment),
        capture_output=True,
        text=True,
        timeout=300,
        **settings,
    )
    assert done.returncode == expect, done.stderr
    return done


def same_tensors(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_tensors(a[k], b[k]) for k in a)
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else True


@pytest.fixture(scope="module", params=list(SHORT))
def finished(request: pytest.FixtureRequest, program: Path, tmp_path_factory) -> tuple[str, Path]:
    """An uninterrupted run of each experiment."""
    out = tmp_path_factory.mktemp(request.param) / "run"
    train(program, out, experiment=request.param)
    return request.param, out


def test_folder_of_a_run(finished: tuple[str, Path]) -> None:
    experiment, out = finished
    config = json.loads((out / "config.json").read_text())
    assert config["experiment"] == experiment
    assert config["seed"] == 0
    assert config["versions"]["torch"] == torch.__version__.split("+")[0]
    assert {"commit", "command", "settings"} <= config.keys()
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2, 3]
    for name in ("train_loss", "test_loss", "alpha", "lambda", "count", "seconds"):
        assert all(isinstance(line[name], float) for line in lines), name
    assert lines[-1]["train_loss"] < lines[0]["train_loss"]
    assert all((out / name).is_file() for name in ("checkpoint.pt", "best.pt"))
    for picture in (out / "pictures").iterdir():
        assert picture.read_bytes().startswith(b"\x89PNG")


def test_checkpoints_are_plain_weights(finished: tuple[str, Path]) -> None:
    _, out = finished
    checkpoint = torch.load(out / "checkpoint.pt", weights_only=True)
    best = torch.load(out / "best.pt", weights_only=True)
    assert checkpoint["epoch"] == 3
    assert checkpoint["step"] == 0
    assert set(best["model"]) == set(checkpoint["model"])
    assert all(tensor.isfinite().all() for tensor in best["model"].values())
    assert checkpoint["state"]["estimator.updates"].item() == 3 * 18  # 360 examples of 400


def test_killed_twenty_times_it_ends_the_same(program: Path, finished, tmp_path: Path) -> None:
    experiment, whole = finished
    seed = random.randrange(1 << 30)
    moments = random.Random(seed)
    out = tmp_path / "run"
    options = ["--resume", "--quiet", "--checkpoint_steps", "1"]
    kills = 0
    while kills < 20:
        before = _stamp(out)
        running = subprocess.Popen(command(program, out, *options, experiment=experiment))
        patience = moments.choice([moments.uniform(0, 0.5), 60.0, 60.0])
        start = time.monotonic()
        while _stamp(out) == before and time.monotonic() - start < patience:
            time.sleep(0.002)
        time.sleep(moments.uniform(0, 0.03))
        running.kill()
        if running.wait() == -signal.SIGKILL:
            kills += 1
        else:  # it was done before: the next one begins anew
            shutil.rmtree(out)
    train(program, out, *options, experiment=experiment)
    assert metrics(out) == metrics(whole), f"seed {seed}"
    for name in ("checkpoint.pt", "best.pt"):
        a, b = (torch.load(f / name, weights_only=True) for f in (out, whole))
        assert same_tensors(a["model"], b["model"]), f"{name}, seed {seed}"
        assert same_tensors(a.get("state", {}), b.get("state", {})), f"{name}, seed {seed}"


def _stamp(out: Path) -> int:
    try:
        return (out / "checkpoint.pt").stat().st_mtime_ns
    except FileNotFoundError:
        return 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_save_and_exit(program: Path, tmp_path: Path, number: int) -> None:
    out = tmp_path / "run"
    running = subprocess.Popen(
        command(program, out, "--epochs", "1000"), stderr=subprocess.PIPE, text=True
    )
    while not (out / "metrics.jsonl").exists():
        assert running.poll() is None
        time.sleep(0.01)
    running.send_signal(number)
    _, stderr = running.communicate(timeout=600)
    assert running.returncode == 128 + number
    assert "--resume" in stderr
    checkpoint = torch.load(out / "checkpoint.pt", weights_only=True)
    assert checkpoint["epoch"] >= 1
    done = checkpoint["epoch"] + 1
    train(program, out, "--resume", "--epochs", str(done))
    assert len(metrics(out)) == done


def test_a_folder_in_use_is_refused(program: Path, finished, tmp_path: Path) -> None:
    experiment, whole = finished
    message = train(program, whole, expect=1, experiment=experiment).stderr
    assert "not empty" in message
    assert "--resume" in message
    assert "--force" in message
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("mine")
    train(program, tmp_path / "run", "--force", "--epochs", "1")
    train(program, tmp_path / "run", "--force", "--epochs", "2")
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"
    assert len(metrics(tmp_path / "run")) == 2
    assert metrics(tmp_path / "run") == metrics(whole)[:2]


def test_a_resumed_run_keeps_its_threads(program: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    threads = lambda: json.loads((out / "config.json").read_text())["threads"]  # noqa: E731
    train(program, out, "--threads", "3", "--epochs", "1")
    assert threads() == 3
    train(program, out, "--resume", "--threads", "0", "--epochs", "2")
    assert threads() == 3


def test_a_run_with_the_step_of_version_0_1_is_refused(
    program: Path, finished, tmp_path: Path
) -> None:
    """Its defaults were the paper's rule: it may not go on with another one."""
    experiment, whole = finished
    out = tmp_path / "old"
    shutil.copytree(whole, out)
    config = json.loads((out / "config.json").read_text())

    def resumed(expect: int, **settings: str) -> str:
        config["settings"].update(settings)
        (out / "config.json").write_text(json.dumps(config))
        again = ("--resume", "--epochs", "4")
        return train(program, out, *again, expect=expect, experiment=experiment).stderr

    config["versions"]["aimle"] = "0.1.0"
    message = resumed(1)
    assert "0.1.0" in message
    assert "--preset paper" in message
    # A run that names its rule goes on: here as far as its own checkpoint lets it.
    assert "0.1.0" not in resumed(1, scale="theta", rule="additive", target_norm="1")


def test_resume_refuses_other_settings(program: Path, finished) -> None:
    experiment, whole = finished
    message = train(
        program, whole, "--resume", "--lr", "0.1", expect=1, experiment=experiment
    ).stderr
    assert "lr is 0.001" in message


def test_a_full_disk_keeps_the_checkpoint(program: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(program, out, "--epochs", "1")
    before = (out / "checkpoint.pt").read_bytes()

    def limit_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    message = train(
        program, out, "--resume", "--epochs", "2", expect=1, preexec_fn=limit_files
    ).stderr
    assert "cannot write" in message
    assert ".pt" in message
    assert (out / "checkpoint.pt").read_bytes() == before
    assert not list(out.glob("*.tmp*"))
    train(program, out, "--resume", "--epochs", "2")


def test_a_folder_that_cannot_be_written(program: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot" in train(program, tmp_path / "file" / "run", expect=1).stderr
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere; only the file in the way was tested")
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    assert "permission denied" in train(program, locked, expect=1).stderr.lower()


def test_a_loss_that_is_not_finite_stops_the_run(program: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    message = train(program, out, "--lr", "1e30", "--checkpoint_steps", "1", expect=1).stderr
    assert "not finite at epoch 1, step" in message
    if (out / "checkpoint.pt").exists():
        checkpoint = torch.load(out / "checkpoint.pt", weights_only=True)
        assert all(tensor.isfinite().all() for tensor in checkpoint["model"].values())


def test_seeds_side_by_side_are_the_runs_alone(program: Path, finished, tmp_path: Path) -> None:
    experiment, whole = finished
    seeds = ["--seeds", "0,3", "--threads", "2"]
    told = train(program, tmp_path / "all", *seeds, experiment=experiment).stderr
    said = "^mean ± standard error over 2 seeds:\nall seeds:.*  test_loss ([0-9.]+) ± ([0-9.]+)"
    found = re.search(said, told, re.MULTILINE)
    assert found, told
    assert metrics(tmp_path / "all" / "seed-0") == metrics(whole)
    assert metrics(tmp_path / "all" / "seed-3") != metrics(whole)
    summary = json.loads((tmp_path / "all" / "summary.json").read_text())
    losses = [metrics(tmp_path / "all" / f"seed-{seed}") for seed in (0, 3)]
    best = [min(run, key=lambda line: line["val_loss"])["test_loss"] for run in losses]
    test_loss = summary["cells"][0]["metrics"]["test_loss"]
    mean, error = sum(best) / 2, abs(best[0] - best[1]) / 2
    assert test_loss == pytest.approx({"mean": mean, "sd": 2**0.5 * error, "se": error})
    assert list(map(float, found.groups())) == pytest.approx([mean, error], rel=1e-4)


def test_a_grid_is_searched_by_the_validation_loss(program: Path, tmp_path: Path) -> None:
    out = tmp_path / "grid"
    grid = ["--method", "imle", "--grid", "lambda=1,10,100", "--select", "val_loss"]
    message = train(program, out, *grid, "--epochs", "1").stderr
    losses = {value: metrics(out / f"lambda={value}")[0] for value in (1, 10, 100)}
    best = min(losses, key=lambda value: losses[value]["val_loss"])
    summary = json.loads((out / "summary.json").read_text())
    assert summary["winner"]["settings"] == f"lambda={best}"
    assert summary["winner"]["metrics"]["test_loss"]["mean"] == losses[best]["test_loss"]
    last = message.splitlines()[-2]  # before where the results are
    assert last.startswith(f"selected by val_loss: lambda={best}:  ")
    assert f"  test_loss {losses[best]['test_loss']:.5g}  " in last
    assert "train_loss" not in last
    assert "±" not in message  # of one run
    assert "se" not in summary["winner"]["metrics"]["test_loss"]


def test_a_metric_to_select_by_must_exist(program: Path, tmp_path: Path) -> None:
    message = train(program, tmp_path / "a", "--select", "val_los", expect=1).stderr
    assert "there is no metric val_los; did you mean 'val_loss'?" in message
    options = ["--grid", "lr=1e-3,1e-4", "--validation", "0"]
    assert (
        "there is no metric val_loss" in train(program, tmp_path / "b", *options, expect=1).stderr
    )


def test_settings_by_config_and_preset(program: Path, finished, tmp_path: Path) -> None:
    _, whole = finished
    train(program, tmp_path / "again", "--config", str(whole / "config.json"))
    assert metrics(tmp_path / "again") == metrics(whole)
    piped = train(
        *(program, tmp_path / "piped", "--config", "/dev/stdin"),
        input=(whole / "config.json").read_text(),
    )
    assert piped.returncode == 0
    assert metrics(tmp_path / "piped") == metrics(whole)
    train(program, tmp_path / "paper", "--preset", "reference", "--epochs", "1")
    settings = json.loads((tmp_path / "paper" / "config.json").read_text())["settings"]
    assert settings["reference"] == "true"
    assert settings["epochs"] == 1
    assert settings["validation"] == 40


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--method", "aimel"], 2, "--method: expected one of aimle, "),
        (["--method", "aimel"], 2, "did you mean 'aimle'"),
        (["--lr", "fast"], 2, "--lr: expected a number >= 0 but got 'fast'"),
        (["--lr", "nan"], 2, "--lr: expected a number >= 0 but got 'nan'"),
        (["--epochs", "0"], 2, "--epochs: expected a whole number >= 1"),
        (["--noise", "cauchy"], 2, "expected noise to be none, gumbel, normal"),
        (["--method", "ste", "--lambda", "3"], 2, "ste does not take lambda; those that do are"),
        (["--k", "21"], 2, "expected --k of at most the --size of a row but got k=21, size=20"),
        (["--method", "reinmax"], 2, "reinmax applies to argmax but got topk"),
        (
            ["--temperature", "1", "--theta_noise_temperature", "1"],
            2,
            "two names of one setting, but got both",
        ),
        (["--nb_samples", "0"], 2, "expected nb_samples >= 1 but got 0"),
        (["--grid", "k=5,30"], 2, "k=30, size=20"),
        (["--grid", "noise=gumbel,pink"], 2, "--grid: option noise: "),
        (["--grid", "lamda=3"], 2, "--grid: there is no option 'lamda'; did you mean 'lambda'"),
        (["--seeds", "3-1"], 2, "--seeds: expected numbers and ranges such as 0-9 or 1,4,6-8 but"),
        (
            ["--seeds", "0-9999,10000"],
            2,
            "--seeds: expected up to 10000 seeds but '0-9999,10000' has",
        ),
        (["--seeds", ""], 2, "--seeds: expected numbers and ranges"),
        (["--grid", "lambda"], 2, "--grid: expected OPTION=VALUE,VALUE,... but got 'lambda'"),
        (["--grid", "lr=0.1", "--grid", "lambda"], 2, "but got 'lambda'"),
        (
            ["--grid", "lr=0.1,1e-1"],
            2,
            "--grid: expected different values of lr but '1e-1' is given twice",
        ),
        (["--grid", "lr=0.1", "--grid", "lr=0.2"], 2, "--grid: lr is given twice; list all its"),
        (["--grid", "data=a,b"], 2, "--grid: data cannot vary"),
        (["--data", "/nowhere"], 1, "there is no folder /nowhere"),
        (["--preset", "papre"], 2, "did you mean 'paper'"),
        (["--epoch", "3"], 2, "did you mean '--epochs'"),
        (["--config", "/nowhere.json"], 2, "--config: /nowhere.json: there is no such file"),
    ],
)
def test_wrong_options_are_named_and_leave_nothing_behind(
    program: Path, tmp_path: Path, options: list[str], code: int, message: str
) -> None:
    done = train(program, tmp_path / "run", *options, expect=code)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert message in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "--config: {file}:1: the JSON text is truncated"),
        ("[1]", "--config: {file} is not the config.json of a run"),
        ('{"experiment": "dvae"}', "--config: {file} is not the config.json of a run"),
        (
            '{"experiment": "l2x", "settings": {}}',
            "--config: expected a config.json of the experiment dvae but got '{file}' of l2x",
        ),
        (
            '{"experiment": "dvae", "settings": {"lamda": "1"}}',
            "--config: there is no option 'lamda'; did you mean 'lambda'?",
        ),
        (
            '{"experiment": "dvae", "settings": {"epochs": "x"}}',
            "--config: option epochs: expected a whole number >= 1",
        ),
    ],
)
def test_a_config_that_does_not_fit_is_wrong_usage(
    program: Path, tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "config.json"
    file.write_text(text)
    done = train(program, tmp_path / "run", "--config", str(file), expect=2)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("aimle: " + message.replace("{file}", str(file))), done.stderr
    assert not (tmp_path / "run").exists()


def test_what_fails_over_an_old_run_leaves_it_as_it_is(program: Path, finished, tmp_path: Path):
    _, whole = finished
    old = shutil.copytree(whole, tmp_path / "run")
    before = {path: path.read_bytes() for path in sorted(old.rglob("*")) if path.is_file()}
    train(program, old, "--force", "--data", "/nowhere", expect=1)
    assert {p: p.read_bytes() for p in sorted(old.rglob("*")) if p.is_file()} == before


def test_resuming_nothing_says_so_and_begins(program: Path, tmp_path: Path) -> None:
    done = train(program, tmp_path / "run", "--resume", "--epochs", "1")
    assert f"{tmp_path / 'run'}: there is no run in it yet" in done.stdout + done.stderr
    assert (tmp_path / "run" / "metrics.jsonl").exists()


@pytest.mark.parametrize(
    ("place", "options", "says"),
    [
        ("", ("--seeds", "0-1"), "{out} holds a single run: leave out --grid and --seeds, or"),
        ("seed-0", (), "{out} holds several runs, such as {run}: give --grid and --seeds as"),
        (
            "lr=0.1/seed-0",
            (),
            "{out} holds several runs, such as {run}: give --grid and --seeds as",
        ),
    ],
)
def test_runs_of_another_kind_are_not_mixed_up(
    program: Path, finished, tmp_path: Path, place: str, options: tuple[str, ...], says: str
) -> None:
    experiment, whole = finished
    out, run = tmp_path / "out", tmp_path / "out" / place
    shutil.copytree(whole, run)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    done = train(program, out, "--resume", *options, experiment=experiment, expect=1)
    assert done.stderr.startswith("aimle: --resume: " + says.format(out=out, run=run)), done.stderr
    after = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert after.keys() - before.keys() <= {out / ".aimle.lock"}
    assert {path: after[path] for path in before} == before


def test_a_campaign_adds_runs_to_those_of_another(program: Path, finished, tmp_path: Path) -> None:
    experiment, whole = finished
    out = tmp_path / "out"
    shutil.copytree(whole, out / "seed-0")
    done = train(program, out, "--resume", "--seeds", "7-8", experiment=experiment)
    assert f"--resume: {out} has other runs: adding new ones" in done.stderr
    assert all((out / f"seed-{seed}" / "metrics.jsonl").exists() for seed in (0, 7, 8))


def test_a_finished_run_says_where_it_is_and_that_nothing_is_left(
    program: Path, finished, tmp_path: Path
) -> None:
    experiment, whole = finished
    run = shutil.copytree(whole, tmp_path / "run")
    done = train(program, run, "--resume", experiment=experiment)
    assert f"{run} is complete; use a larger --epochs to continue" in done.stderr
    assert f"results are in {run}; to draw a page of them: aimle report {run}" in done.stderr
    assert train(program, run, "--resume", "--quiet", experiment=experiment).stderr == ""


def test_commands_with_spaces_can_be_typed_again(program: Path, tmp_path: Path) -> None:
    run = tmp_path / "my first run"
    done = train(program, run, "--epochs", "1")
    suggested = done.stderr.partition("to draw a page of them: ")[2].splitlines()[0]
    assert shlex.split(suggested) == ["aimle", "report", str(run)]
    recorded = shlex.split(json.loads((run / "config.json").read_text())["command"])
    assert recorded[recorded.index("--out") + 1] == str(run)


def test_options_may_have_dashes(program: Path, tmp_path: Path) -> None:
    train(program, tmp_path / "run", "--epochs", "1", "--target-norm=3", "--kl-weight", "0.5")
    settings = json.loads((tmp_path / "run" / "config.json").read_text())["settings"]
    assert (settings["target_norm"], settings["kl_weight"]) == ("3", 0.5)


def test_the_temperature_of_the_noise_has_two_names(program: Path, tmp_path: Path) -> None:
    seen = []
    for name in ("temperature", "theta_noise_temperature"):
        out = tmp_path / name
        train(program, out, "--epochs", "1", f"--{name}", "0.25")
        seen.append([line["train_loss"] for line in metrics(out)])
    train(program, tmp_path / "default", "--epochs", "1")
    assert seen[0] == seen[1] != [line["train_loss"] for line in metrics(tmp_path / "default")]


def test_a_temperature_outlasts_that_of_the_preset(program: Path, tmp_path: Path) -> None:
    """In a run that continues, and in one with the first one's config."""
    preset = ["--preset", "paper", "--temperature", "0.25"]
    train(program, tmp_path / "whole", *preset, "--epochs", "2")
    train(program, tmp_path / "parts", *preset, "--epochs", "1")
    train(program, tmp_path / "parts", "--resume", "--epochs", "2")
    config = tmp_path / "whole" / "config.json"
    train(program, tmp_path / "again", "--config", str(config), "--epochs", "2")
    losses = {
        name: [line["train_loss"] for line in metrics(tmp_path / name)]
        for name in ("whole", "parts", "again")
    }
    assert losses["parts"] == losses["again"] == losses["whole"]


@pytest.mark.parametrize(("k", "method"), [(1, "aimle"), (18, "aimle"), (10, "aimle_forward")])
def test_the_default_target_can_be_reached(
    program: Path, tmp_path: Path, k: int, method: str
) -> None:
    train(program, tmp_path / "run", "--k", str(k), "--method", method, "--epochs", "40")
    alphas = [line["alpha"] for line in metrics(tmp_path / "run")]
    assert 1e-3 < alphas[-1] < 3.0  # away from its bounds, 1e-6 and 4


def test_without_a_gpu_cuda_is_refused(program: Path, tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    assert "--device cuda" in train(program, tmp_path / "run", "--device", "cuda", expect=1).stderr


def test_the_reported_loss_is_that_of_the_saved_model(program: Path, tmp_path: Path) -> None:
    """Noise-free, from best.pt and the files, in plain PyTorch."""
    files = tmp_path / "digits"
    subprocess.run(
        [program, "data", "make", "--out", files, "--examples", "200", "--test_examples", "50"],
        check=True,
        capture_output=True,
    )
    out = tmp_path / "run"
    train(program, out, "--data", str(files), "--epochs", "2")
    best = torch.load(out / "best.pt", weights_only=True)
    raw = gzip.decompress((files / "t10k-images-idx3-ubyte.gz").read_bytes())[16:]
    x = torch.tensor(list(raw), dtype=torch.float32).view(50, 784) / 255
    w = best["model"]

    def mlp(h: torch.Tensor, part: str) -> torch.Tensor:
        for i in range(3):
            h = torch.nn.functional.linear(h, w[f"{part}{i}.weight"], w[f"{part}{i}.bias"])
            h = h.relu() if i < 2 else h
        return h

    theta = mlp(x, "encoder").view(50, 20, 20)
    z = torch.zeros_like(theta).scatter_(2, theta.topk(10, 2).indices, 1.0)
    logits = mlp(z.view(50, 400), "decoder")
    bce = torch.nn.functional.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    q = theta.softmax(2)
    kl = (q * (q.log() + math.log(20))).sum()
    reported = metrics(out)[best["epoch"] - 1]
    assert reported["test_kl_softmax"] == pytest.approx(kl.item() / 50, rel=1e-5)
    assert reported["test_bce_kl_softmax_map"] == pytest.approx((bce + kl).item() / 50, rel=1e-5)
    assert reported["test_loss"] == pytest.approx(
        reported["test_bce"] + reported["test_kl_softmax"] / 2, rel=1e-9
    )
    # The evidence bound: the KL of the ten of twenty in every row, and codes drawn from them.
    scores, ten = theta.double(), aimle.TopK(10)
    expected = (scores * aimle.exact.marginals(ten, scores)).sum()
    log_z = aimle.exact.log_partition(ten, scores).sum()
    code_kl = (expected - log_z).item() / 50 + 20 * math.log(math.comb(20, 10))
    assert reported["test_code_kl"] == pytest.approx(code_kl, rel=1e-5)
    key = torch.tensor([3, 5])
    codes = aimle.exact.sample(ten, scores, key, 100).transpose(1, 2).reshape(50, 100, 400).float()
    each = torch.nn.functional.binary_cross_entropy_with_logits(
        mlp(codes, "decoder"), x.unsqueeze(1).expand(-1, 100, -1), reduction="none"
    ).sum(2)
    # Ten codes of each image against a hundred; five standard deviations.
    error = each.var(1).mean().div(50).mul(1 / 10 + 1 / 100).sqrt().item()
    assert reported["test_nelbo"] == pytest.approx(each.mean().item() + code_kl, abs=5 * error)
    assert reported["test_iw10"] < reported["test_nelbo"]
