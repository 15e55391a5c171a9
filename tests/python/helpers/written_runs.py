"""Folders of training runs, written by hand."""

from __future__ import annotations

import json
from pathlib import Path


def write_run(folder: Path, method: str, seed: int, losses: list[float]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"method": method, "seed": seed, "epochs": len(losses), "k": 10, "data": ""}
    settings |= {"nb_samples": "10", "batch": 50, "validation": 0, "examples": 1500}
    config = {
        "experiment": "dvae",
        "seed": seed,
        "settings": settings,
        "select": "val_loss",
        "command": f"aimle train dvae --method {method}",
    }
    (folder / "config.json").write_text(json.dumps(config))
    lines = [
        {"epoch": i + 1, "train_loss": x, "val_loss": x, "test_loss": x + 1, "alpha": 0.5}
        | {"lambda": 2.0, "seconds": 30.0}
        for i, x in enumerate(losses)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
