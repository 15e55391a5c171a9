"""Reads the folder of a gradient study (`aimle synth`): results.jsonl, summary.csv, study.json."""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aimle.program.report import figures
from aimle.program.report.files import (
    number,
    number_or_nan,
    read_csv,
    read_json,
    read_json_lines,
)

Key = tuple[str, float | None]  # estimator, fixed lambda


@dataclass(frozen=True)
class Cell:
    """One line of summary.csv, with further statistics over the seeds."""

    estimator: str
    fixed_lambda: float | None
    n: int
    k: int
    samples: int
    seeds: int
    cosine: float
    cosine_error: float  # standard error; NaN of one seed
    zeros: float
    alpha: float | None
    step: float | None  # lambda, given or adapted
    squared_error: float  # mean of ||g - true||^2 / ||true||^2

    @property
    def key(self) -> Key:
        return self.estimator, self.fixed_lambda

    @property
    def name(self) -> str:
        return figures.name(*self.key)


class Study:
    """The contents of a folder of `aimle synth`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.about = read_json(folder / "study.json")
        self.settings: dict[str, Any] = self.about["settings"]
        self.rows = read_json_lines(folder / "results.jsonl")
        self.cells = self._cells()
        self.expected = read_json(Path(__file__).with_name("expected_gradient_study.json"))

    def _cells(self) -> list[Cell]:
        errors: dict[tuple, list[float]] = defaultdict(list)
        fixed: dict[str, bool] = {}
        for row in self.rows:
            spelled = f"{row['lambda']:.6g}" if row["fixed_lambda"] else None
            key = (row["estimator"], row["n"], row["samples"], spelled)
            errors[key].append(row["relative_error"] ** 2)
            fixed[row["estimator"]] = row["fixed_lambda"]
        cells = []
        for line in read_csv(self.folder / "summary.csv"):
            is_fixed = fixed[line["estimator"]]
            step = number(line["lambda"])
            key = (
                line["estimator"],
                int(line["n"]),
                int(line["samples"]),
                f"{step:.6g}" if is_fixed and step is not None else None,
            )
            squares = errors[key]
            cells.append(
                Cell(
                    estimator=line["estimator"],
                    fixed_lambda=step if is_fixed else None,
                    n=int(line["n"]),
                    k=int(line["k"]),
                    samples=int(line["samples"]),
                    seeds=int(line["seeds"]),
                    cosine=float(line["cosine_mean"]),
                    cosine_error=number_or_nan(line["cosine_se"]),
                    zeros=float(line["zeros_mean"]),
                    alpha=number(line["alpha_mean"]),
                    step=step,
                    squared_error=sum(squares) / len(squares),
                )
            )
        return cells

    @property
    def sizes(self) -> list[int]:
        return sorted({cell.n for cell in self.cells})

    @property
    def keys(self) -> list[Key]:
        """Estimators in the order of the study."""
        return list(dict.fromkeys(cell.key for cell in self.cells))

    def curve(self, key: Key, n: int) -> list[Cell]:
        """The cells of an estimator by increasing S."""
        found = [cell for cell in self.cells if cell.key == key and cell.n == n]
        return sorted(found, key=lambda cell: cell.samples)

    def expected_cosine(self, cell: Cell) -> float | None:
        """The expected number for a cell, if the study is comparable and there is one."""
        if self.settings["signed"] or cell.k != 1:
            return None
        wanted = (cell.estimator, cell.n, cell.samples, cell.fixed_lambda)
        for fact in self._expected_numbers():
            found = (fact["estimator"], fact["n"], fact["samples"], fact["lambda"])
            if found == wanted and self._same_warmup(fact):
                return fact["cosine"]
        return None

    def _expected_numbers(self) -> Iterator[dict[str, Any]]:
        """The points of all expected curves, those over the axis of this study first."""
        axes = ["samples", "lambda"]
        for axis in axes[::-1] if self.about["study"] == "lambda" else axes:
            for curve in self.expected[f"by_{axis}"]:
                for x, cosine in curve["cosines"].items():
                    yield {**curve, axis: float(x), "cosine": cosine}

    def _same_warmup(self, fact: dict[str, Any]) -> bool:
        wanted = fact.get("warmup")
        steps = self.settings["warmup"]
        return wanted is None or (steps >= 1000 if wanted == "converged" else steps == wanted)


def deviation(cell: Cell, expected: float) -> float:
    """Difference in standard errors; the expected number has an error of the same size.

    NaN for a single seed, which has no standard error.
    """
    error = math.sqrt(2 * cell.cosine_error**2 + 0.0005**2)
    return (cell.cosine - expected) / error
