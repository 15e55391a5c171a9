"""The result of a diagnosis: rows of measurements, a table, diagnosis.json and a report."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aimle import _library
from aimle._files import write_json
from aimle.diagnosis.recommendation import best_steps, name_of, recommend


@dataclass
class Diagnosis:
    """The result of ``diagnose``; ``rows`` are dicts with the keys of diagnosis.json."""

    structure: str
    shape: list[int]
    truth: str
    truth_relative_se: float
    repeats: int
    rows: list[dict[str, Any]] = field(default_factory=list)
    long_step: float | None = None  # of imle, if that is recommended (aimle.diagnosis.long_step)
    saturated: bool = False  # the reason for it; otherwise the loss is linear in z

    @property
    def recommendations(self) -> list[dict[str, Any]]:
        """For each S what to train with: see ``aimle.diagnosis.recommendation`` for the rule."""
        return [
            recommend(group, self.structure, self._with_long_step(samples), self.saturated)
            for samples, group in self._ranked()
        ]

    def document(self) -> dict[str, Any]:
        """The contents of diagnosis.json."""
        return {
            "version": _library.version,
            "structure": self.structure,
            "shape": self.shape,
            "loss": "given",
            "truth": self.truth,
            "truth_relative_se": self.truth_relative_se,
            "repeats": self.repeats,
            "long_step": self.long_step,
            "saturated": self.saturated,
            "results": [{name: _finite(value) for name, value in row.items()} for row in self.rows],
            "recommendations": self.recommendations,
        }

    def save(self, folder: str | Path) -> Path:
        """Writes diagnosis.json and, with matplotlib, report.html; returns the path."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "diagnosis.json", self.document())
        try:
            from aimle.program.report.diagnose import draw
        except ImportError:
            return folder / "diagnosis.json"
        return draw(folder)

    def __str__(self) -> str:
        lines = [f"truth: {self.truth}"]
        if self.truth_relative_se:
            lines[0] += f", known to {100 * self.truth_relative_se:.1f} %"
        clips = any(row["clipped"] is not None for row in self.rows)
        for samples, group in self._ranked():
            lines.append(
                f"\nS = {samples}\n{'estimator':34} {'cosine':>8} {'norm':>7} {'bias':>8} "
                f"{'variance':>9} {'zeros':>6} {'us/call':>9}{' clipped' if clips else ''}"
            )
            lines += [
                f"{name_of(row):34} {row['cosine']:8.3f} {row['norm_ratio']:7.2f} "
                f"{row['bias']:8.3f} {row['variance']:9.3g} {row['zeros']:6.2f} "
                f"{row['microseconds']:9.0f}{_clipped(row) if clips else ''}"
                for row in group
            ]
        lines.append("")
        lines += [
            f"S = {advice['samples']}: {name_of(advice)} ({advice['reason']})"
            for advice in self.recommendations
        ]
        return "\n".join(lines)

    def _with_long_step(self, samples: int) -> dict[str, Any] | None:
        own = ("imle", self.long_step, samples)
        found = (r for r in self.rows if (r["estimator"], r["lambda"], r["samples"]) == own)
        return next(found, None)

    def _ranked(self) -> list[tuple[int, list[dict[str, Any]]]]:
        """Rows grouped by S, each estimator at its best lambda, by decreasing cosine."""
        ranked = best_steps(self.rows)
        counts = sorted({row["samples"] for row in ranked})
        return [(count, [r for r in ranked if r["samples"] == count]) for count in counts]


def _finite(value: Any) -> Any:
    """JSON has no NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _clipped(row: dict[str, Any]) -> str:
    """The share of costs that were below zero in backward; empty if not counted."""
    return "" if row["clipped"] is None else f" {row['clipped']:7.3f}"
