"""The tasks of the comparison: model, data, metric, length of training, methods, grid of lambda.

Lengths are chosen so that the whole table takes well under an hour on one large GPU. Each grid has
seven values of lambda around the task's best; lambda is in units of the gradient at the layer, so
its scale differs between tasks.
"""

import aimle
from aimle.program.benchmark import digits, pyepo_problems, restated
from aimle.program.benchmark.program_tasks import ProgramTask
from aimle.program.benchmark.task import PythonTask, Task

_COMMON = ("default", "paper", "imle", "imle_central", "noise")

_LAMBDAS = ("0.1", "0.3", "1", "3", "10", "30", "100", "300", "1000", "3000", "10000", "30000")


def _seven_from(first: str) -> tuple[str, ...]:
    """A grid of lambda."""
    place = _LAMBDAS.index(first)
    return _LAMBDAS[place : place + 7]


def _dvae(k: int, samples: int) -> ProgramTask:
    base = f"--k {k} --nb_samples {samples}"
    return ProgramTask(
        name=f"dvae-k{k}-s{samples}",
        title=f"Discrete VAE, {k} of 20, S = {samples}",
        metric="test_loss",
        methods=(
            *_COMMON,
            "thresholds",
            "exact",
            *(("reinmax", "gumbel_rao", "gumbel_softmax") if k == 1 else ("sst", "softsub")),
        ),
        lambdas=_seven_from("0.1" if k == 1 else "0.3"),
        ones=k,
        samples=samples,
        length="20 epochs",
        quick_length="1 epoch of 40 images",
        experiment="dvae",
        arguments=f"{base} --epochs 20",
        quick_arguments=f"{base} --epochs 1 --examples 60 --validation 20 --test_examples 20 "
        "--batch 20 --rows 4",
        files="mnist",
        without_files="drawn digits",
        solver=aimle.Argmax() if k == 1 else aimle.TopK(k),
        probe=restated.codes(k, samples),
    )


def _maps(cells: int, epochs: int) -> ProgramTask:
    base = f"--cells {cells}"
    return ProgramTask(
        name=f"warcraft-{cells}",
        title=f"Shortest paths on maps, {cells} × {cells}",
        metric="test_optimal",
        methods=_COMMON,
        lambdas=_seven_from("1"),
        ones=cells,
        samples=1,
        length=f"{epochs} epochs",
        quick_length="1 epoch of 20 maps",
        experiment="warcraft",
        arguments=f"{base} --epochs {epochs}",
        quick_arguments=f"{base} --epochs 1 --examples 20 --validation 5 --test_examples 10 "
        "--batch 10",
        without_files="generated maps",
        solver=aimle.GridPath(),
        probe=restated.maps(cells),
    )


def _trees() -> ProgramTask:
    return ProgramTask(
        name="nri-t10",
        title="Latent trees, T = 10",
        metric="val_elbo",  # the test set is measured only at the best epoch
        methods=(*_COMMON, "thresholds", "sst"),
        lambdas=_seven_from("0.1"),
        ones=9,
        samples=1,
        length="5,000 steps",
        quick_length="4 steps",
        experiment="nri",
        arguments="--frames 10 --lr 5e-4 --epochs 10 --epoch_steps 500",
        quick_arguments="--preset quick --frames 10 --lr 5e-4 --epochs 1 --epoch_steps 4 "
        "--examples 40 --validation 10 --test_examples 10 --batch 10 --hidden 16",
        without_files="generated paths",
        solver=aimle.SpanningTree(10),
        # The temperature is part of the model: the forward difference gets the one of the others.
        extra={"imle": {"theta_noise_temperature": "0.1"}},
        probe=restated.trees,
    )


def _words(name: str, title: str, arguments: str, files: str, without_files: str) -> ProgramTask:
    return ProgramTask(
        name=name,
        title=title,
        metric="test_loss",
        methods=(*_COMMON, "thresholds", "sst", "softsub"),
        lambdas=_seven_from("10"),
        ones=10,
        samples=1,
        length="5 epochs",
        quick_length="1 epoch of 80 reviews",
        experiment="l2x",
        arguments=f"--k 10 --epochs 5 {arguments}",
        quick_arguments="--k 10 --epochs 1 --examples 80 --heldout 20 --annotated 10",
        files=files,
        without_files=without_files,
        solver=aimle.TopK(10),
        probe=restated.words,
    )


def _pyepo(problem: str, loss: str, ones: float) -> PythonTask:
    train = pyepo_problems.TRAINING[problem, loss]
    words, first = {"l1": ("L1 loss", "30"), "regret": ("regret as the loss", "10")}[loss]
    return PythonTask(
        name=f"{problem}-{loss}",
        title=f"PyEPO's {problem.replace('-', ' ')}, {words}",
        metric="regret_percent",
        methods=(*_COMMON, "pyepo_aimle", "pyepo_aimle_two_sided", "pyepo_imle", "identity"),
        lambdas=_seven_from(first),
        ones=ones,
        samples=pyepo_problems.SAMPLES,
        length=f"{pyepo_problems.CALLS:,} solver calls",
        quick_length=f"{pyepo_problems.QUICK_CALLS} solver calls",
        data="PyEPO's generator",
        train=train,
        probe=train.probe,
        packages=("pyepo", "ortools", "scikit-learn"),
    )


def _pixels() -> PythonTask:
    return PythonTask(
        name="digits",
        title="8 of 64 pixels",
        metric="test_accuracy",
        methods=(*_COMMON, "thresholds", "exact", "sst", "softsub"),
        lambdas=_seven_from("10"),
        ones=digits.CHOSEN,
        samples=1,
        length=f"{digits.STEPS} steps",
        quick_length=f"{digits.QUICK_STEPS} steps",
        data="scikit-learn's digits",
        train=digits.train,
        probe=digits.probe,
        packages=("scikit-learn",),
    )


_TASKS: tuple[Task, ...] = (
    _dvae(1, 1),
    _dvae(1, 10),
    _dvae(10, 1),
    _dvae(10, 10),
    _maps(12, 20),
    _maps(30, 10),
    _trees(),
    _words("l2x-planted", "Explaining planted ratings", "", "", "generated reviews"),
    _words("l2x-films", "Explaining film reviews", "--examples 25000 --heldout 10000", "films", ""),
    _pyepo("shortest-path", "l1", ones=8),
    _pyepo("shortest-path", "regret", ones=8),
    _pyepo("knapsack", "l1", ones=4),
    _pyepo("knapsack", "regret", ones=4),
    _pixels(),
)
TASKS: dict[str, Task] = {task.name: task for task in _TASKS}
