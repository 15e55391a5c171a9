"""A reduced gradient study with the program `aimle`, and the page of the whole tour."""

import subprocess
from pathlib import Path

from aimle.program import launch


def study(folder: Path, seeds: int, force: bool = False) -> bool:
    """A smaller `aimle synth samples`; False if the program was not built. Raises if it fails."""
    program = launch.find()
    if program is None:
        return False
    options = ["--n", "10,50", "--samples", "1,10,100,1000,10000", "--seeds", str(seeds)]
    options += ["--out", str(folder), *(["--force"] if force else [])]
    command = [str(program), "synth", "samples", *options]
    subprocess.run(command, env=launch.environment(), check=True, stdout=subprocess.DEVNULL)
    return True


def page(out: Path, with_study: bool) -> Path:
    """report.html: pictures of the structures, of learning, and the gradient study."""
    from aimle.program.report import Page, figures, synth

    report = Page("aimle: a tour", "Structures, learning through them, and gradient quality")
    report.heading("Every structure, solved")
    report.image(out / "structures.png", "An instance of each solver and its best structure.")
    report.heading("Learning through a shortest path")
    report.image(
        out / "learning.png",
        "A network learns the costs of 12 × 12 maps from their shortest paths alone.",
    )
    if with_study:
        with figures.style():
            synth.fill_samples(report, out / "gradients")
    return report.write(out / "report.html", "Made by `make demo`.")
