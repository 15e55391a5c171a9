#!/usr/bin/env python3
"""Collects finished runs in a CSV file, and writes tables of means and standard errors from it.

    results.py collect runs/dvae dvae.csv --settings k,method,nb_samples --metrics test_loss
    results.py table dvae.csv --rows k,method --columns nb_samples --metric test_loss

`collect` replaces the rows of runs with the same settings and seed; other rows stay.
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


def finished_run(folder: Path, settings: list[str], metrics: list[str]) -> dict[str, str] | None:
    """A row of the CSV file; None if the run has not reached its last epoch."""
    config = json.loads((folder / "config.json").read_text())
    metrics_file = folder / "metrics.jsonl"
    lines = metrics_file.read_text().splitlines() if metrics_file.exists() else []
    last = json.loads(lines[-1]) if lines else {"epoch": 0}
    given = config["settings"]
    if last["epoch"] != given["epochs"]:
        return None
    row = {name: str(given[name]) for name in settings}
    row |= {"seed": str(config["seed"])}
    row |= {name: f"{last[name]:.6g}" if name in last else "" for name in metrics}
    return row | {
        "epochs": str(given["epochs"]),
        "commit": config["commit"][:12],
        "device": given["device"],
    }


def collect(runs: Path, out: Path, settings: list[str], metrics: list[str]) -> None:
    key = [*settings, "seed"]
    if both := set(key) & set(metrics):
        raise SystemExit(f"a column cannot be a setting and a metric: {', '.join(sorted(both))}")
    rows = {tuple(row[name] for name in key): row for row in read(out)}
    unfinished = []
    for config in sorted(runs.rglob("config.json")):
        row = finished_run(config.parent, settings, metrics)
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


def table(path: Path, by: list[str], across: str, metric: str) -> str:
    cells: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in read(path):
        if row[metric]:
            cells[tuple(row[name] for name in by)][row[across]].append(float(row[metric]))
    columns = sorted({column for row in cells.values() for column in row}, key=number)
    lines = [
        [*by, *(f"{across} = {column}" for column in columns)],
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
    showing = commands.add_parser("table", help="print means and standard errors over seeds")
    showing.add_argument("csv", type=Path)
    showing.add_argument("--rows", type=names, required=True)
    showing.add_argument("--columns", required=True)
    showing.add_argument("--metric", required=True)
    given = parser.parse_args()
    if given.command == "collect":
        collect(given.runs, given.csv, given.settings, given.metrics)
    else:
        print(table(given.csv, given.rows, given.columns, given.metric))


if __name__ == "__main__":
    main()
