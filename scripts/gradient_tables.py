#!/usr/bin/env python3
"""Prints the tables of docs/results/gradients.md from the CSV files in docs/results/gradients."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs" / "results" / "gradients"

Row = dict[str, str]


def read(name: str) -> list[Row]:
    with (FOLDER / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def label(row: Row) -> str:
    name, _, settings = row["estimator"].partition(":")
    details = [settings.replace("_", " ").replace("=", " ")] if settings else []
    details += [f"λ = {row['lambda']}"] if row["lambda"] else []
    details += ["paper's rule"] if row["rule"] else []
    return ", ".join([f"`{name}`", *details])


def short(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{digits}f}"


def lines(header: list[str], body: Iterable[list[str]]) -> str:
    return "\n".join(
        "| " + " | ".join(cells) + " |" for cells in [header, ["---"] * len(header), *body]
    )


def cosines(name: str, samples: list[str], errors: list[str]) -> str:
    """Cosines for each S, then relative errors for some; best cosine at S = 100 first."""
    found: dict[str, dict[str, Row]] = {}
    for row in read(name):
        found.setdefault(label(row), {})[row["samples"]] = row
    order = sorted(found, key=lambda each: -float(found[each]["100"]["cosine"]))

    def body() -> Iterable[list[str]]:
        for each in order:
            by_samples = found[each]
            cells = [
                short(float(by_samples[s]["cosine"])) if s in by_samples else "–" for s in samples
            ]
            cells += [
                f"{float(by_samples[s]['relative_error']):.2g}" if s in by_samples else "–"
                for s in errors
            ]
            yield [each, *cells]

    power = {"100000": "10⁵"}
    header = ["estimator", *(f"S = {power.get(s, s)}" for s in samples)]
    return lines([*header, *(f"error, S = {power.get(s, s)}" for s in errors)], body())


def descents() -> str:
    """The best learning rate of each estimator and S."""
    best: dict[str, dict[str, Row]] = {}
    for row in read("descent"):
        if row["estimator"] == "gradient":
            continue
        at = best.setdefault(label(row), {})
        if float(row["average_gap"]) < float(
            at.get(row["samples"], {"average_gap": "inf"})["average_gap"]
        ):
            at[row["samples"]] = row

    def cell(row: Row | None) -> str:
        if row is None:
            return "–"
        return f"{short(float(row['average_gap']), 3)} ± {short(float(row['average_gap_se']), 3)}"

    order = sorted(best, key=lambda each: min(float(r["average_gap"]) for r in best[each].values()))
    return lines(
        ["estimator", "S = 1", "S = 10"],
        ([each, cell(best[each].get("1")), cell(best[each].get("10"))] for each in order),
    )


def tables() -> list[str]:
    return [
        cosines("one_of_50", ["1", "10", "100", "100000"], ["1", "100000"]),
        cosines("five_of_20", ["1", "10", "100", "1000"], []),
        descents(),
    ]


if __name__ == "__main__":
    print("\n\n".join(tables()))
