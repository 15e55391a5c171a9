#!/usr/bin/env python3
"""Collects finished runs in a CSV file, and writes tables of means and standard errors from it.

    results.py collect runs/dvae dvae.csv --settings k,method,nb_samples --metrics test_loss
    results.py table dvae.csv --rows k,method --columns nb_samples --metric test_loss
    results.py table l2x.csv --rows k,method --metric test_loss,precision

`collect` takes the metrics of the last epoch, or with `--best val_loss` of that with the smallest
`val_loss`. It replaces the rows of runs with the same settings and seed; other rows stay.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import statistics
from collections import defaultdict
from pathlib import Path

PROVENANCE = ["epochs", "commit", "device"]


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def finished_run(
    folder: Path, settings: list[str], metrics: list[str], best: str
) -> dict[str, str] | None:
    """A row of the CSV file; None if the run has not reached its last epoch."""
    config = json.loads((folder / "config.json").read_text())
    metrics_file = folder / "metrics.jsonl"
    epochs = [json.loads(line) for line in metrics_file.open()] if metrics_file.exists() else []
    given = config["settings"]
    if not epochs or epochs[-1]["epoch"] != given["epochs"]:
        return None
    shown = min(epochs, key=lambda epoch: epoch[best]) if best else epochs[-1]
    row = {name: str(given[name]) for name in settings}
    row |= {"seed": str(config["seed"])}
    row |= {name: f"{shown[name]:.6g}" if name in shown else "" for name in metrics}
    return row | {
        "epochs": str(given["epochs"]),
        "commit": config["commit"][:12],
        "device": given["device"],
    }


def collect(runs: Path, out: Path, settings: list[str], metrics: list[str], best: str) -> None:
    key = [*settings, "seed"]
    if both := set(key) & set(metrics):
        raise SystemExit(f"a column cannot be a setting and a metric: {', '.join(sorted(both))}")
    rows = {tuple(row[name] for name in key): row for row in read(out)}
    unfinished = []
    for config in sorted(runs.rglob("config.json")):
        row = finished_run(config.parent, settings, metrics, best)
        if row is None:
            unfinished.append(str(config.parent))
        else:
            rows[tuple(row[name] for name in key)] = row
    with out.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*key, *metrics, *PROVENANCE], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[name] for name in sorted(rows))
    print(f"{len(rows)} runs in {out}")
    if unfinished:
        print("left out, not finished: " + ", ".join(unfinished))


def number(text: str) -> tuple[int, float, str]:
    """Sorts numbers by value, before words."""
    try:
        return (0, float(text), "")
    except ValueError:
        return (1, 0.0, text)


def mean_and_error(values: list[float]) -> str:
    mean = statistics.fmean(values)
    if len(values) == 1:
        return f"{mean:.4g} (1 run)"
    error = statistics.stdev(values) / math.sqrt(len(values))
    digits = max(0, 3 - math.floor(math.log10(abs(mean) or 1.0)) - 1) + 1
    return f"{mean:.{digits}f} ± {error:.{digits}f}"


def table(path: Path, by: list[str], across: str, metrics: list[str]) -> str:
    """Columns are the values of the setting `across`, or if it is empty the metrics."""
    cells: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in read(path):
        for metric in metrics:
            if row[metric]:
                column = f"{across} = {row[across]}" if across else metric
                cells[tuple(row[name] for name in by)][column].append(float(row[metric]))
    columns = metrics
    if across:
        found = {column for row in cells.values() for column in row}
        columns = sorted(found, key=lambda column: number(column.removeprefix(f"{across} = ")))
    lines = [
        [*by, *columns],
        ["---"] * (len(by) + len(columns)),
    ]
    for name in sorted(cells, key=lambda names: [number(text) for text in names]):
        values = [cells[name].get(column) for column in columns]
        lines.append(
            [*(text or "–" for text in name), *(mean_and_error(v) if v else "–" for v in values)]
        )
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def names(text: str) -> list[str]:
    return text.split(",")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, dest="command")
    collecting = commands.add_parser("collect", help="add the runs below a folder to a CSV file")
    collecting.add_argument("runs", type=Path)
    collecting.add_argument("csv", type=Path)
    collecting.add_argument("--settings", type=names, required=True)
    collecting.add_argument("--metrics", type=names, required=True)
    collecting.add_argument("--best", default="", help="metric whose smallest value selects")
    showing = commands.add_parser("table", help="print means and standard errors over seeds")
    showing.add_argument("csv", type=Path)
    showing.add_argument("--rows", type=names, required=True)
    showing.add_argument("--columns", default="", help="a setting; without it, the metrics")
    showing.add_argument("--metric", type=names, required=True)
    given = parser.parse_args()
    if given.command == "table" and given.columns and len(given.metric) > 1:
        parser.error("--columns takes one --metric")
    if given.command == "collect":
        collect(given.runs, given.csv, given.settings, given.metrics, given.best)
    else:
        print(table(given.csv, given.rows, given.columns, given.metric))


if __name__ == "__main__":
    main()
