"""The tables of docs/results/learning_to_explain.md are those of the runs in its CSV files."""

import csv
import math
import re
import statistics
from collections import defaultdict

import pytest
from repository import ROOT

RESULTS = ROOT / "docs/results"
PAGE = (RESULTS / "learning_to_explain.md").read_text()

# A file, the words before the table, and the metrics of a cell.
TABLES = [
    ("l2x.csv", "Which method finds planted words?", ("test_loss", "precision")),
    ("l2x_k.csv", "With fewer and more words", ("test_loss", "precision")),
    ("l2x_films.csv", "Test loss (MSE × 100):", ("test_loss",)),
    ("l2x_films.csv", "Subset precision (%):", ("precision",)),
]

Runs = dict[tuple[str, str, str, str], dict[str, list[float]]]


def runs_of(name: str) -> Runs:
    """Metrics over seeds by method, rule, lambda and k ("10" if the file has no k)."""
    runs: Runs = defaultdict(lambda: defaultdict(list))
    with (RESULTS / name).open(newline="") as file:
        for row in csv.DictReader(file):
            place = (row["method"], row["rule"], row["lambda"], row.get("k", "10"))
            for metric in ("test_loss", "precision"):
                runs[place][metric].append(float(row[metric]))
    return runs


def table_below(words: str) -> list[list[str]]:
    """The first table after these words, its header first."""
    lines = PAGE.split(words, 1)[1].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return [rows[0], *rows[2:]]


def metrics_of(runs: Runs, label: str, k: str) -> dict[str, list[float]]:
    """Those of a row's label, such as "`imle`, λ = 1000" or "`aimle`, paper"."""
    method = re.match(r"`(\w+)`", label)[1]
    step = re.search(r"λ = ([\d,]+)", label)
    found = {
        place: metrics
        for place, metrics in runs.items()
        if place[0] == method
        and place[3] == k
        and (step is None or place[2] == step[1].replace(",", ""))
    }
    if len(found) > 1:  # the paper's rule is named, the default may be
        rule = "additive" if ", paper" in label else ""
        found = {place: metrics for place, metrics in found.items() if place[1] == rule}
    assert len(found) == 1, f"{label}, k = {k}: {list(found)}"
    return next(iter(found.values()))


def shown(number: str, value: float) -> bool:
    """Whether the number is the value, rounded to its digits."""
    digits = len(number.partition(".")[2])
    return abs(float(number) - value) <= 0.5 * 10**-digits + 1e-9


@pytest.mark.parametrize(("name", "words", "metrics"), TABLES)
def test_tables_are_those_of_the_runs(name: str, words: str, metrics: tuple[str, ...]) -> None:
    runs = runs_of(name)
    header, *rows = table_below(words)
    checked = 0
    for label, *cells in rows:
        for column, cell in zip(header[1:], cells, strict=True):
            numbers = re.findall(r"(\d+\.\d+) ± (\d+\.\d+)", cell)
            if not numbers:
                continue
            k = column.removeprefix("k = ") if column.startswith("k = ") else "10"
            found = metrics_of(runs, label, k)
            own = metrics if len(numbers) == len(metrics) else (column_metric(column),)
            for (mean, error), metric in zip(numbers, own, strict=True):
                values = found[metric]
                expected = statistics.stdev(values) / math.sqrt(len(values))
                assert shown(mean, statistics.fmean(values)), (label, column, metric)
                assert shown(error, expected), (label, column, metric)
                checked += 1
    assert checked >= 20


def column_metric(column: str) -> str:
    return "test_loss" if "loss" in column else "precision"
