"""pyproject.toml: the requirement on torch, the extras and the supported Pythons."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from scikit_build_core.build.metadata import get_standard_metadata
from scikit_build_core.settings.skbuild_read_settings import SettingsReader

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

ROOT = Path(__file__).parents[2]


def load_script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / f"scripts/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


wheel_metadata = load_script("wheel_metadata")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT: dict[str, Any] = PYPROJECT["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]


def names_in(file: str) -> set[str]:
    """The packages that a file of requirements names."""
    lines = (ROOT / file).read_text().splitlines()
    return {found[0] for line in lines if (found := re.match(r"[A-Za-z0-9_-]+", line))}


class TestTorch:
    @pytest.mark.parametrize("version", ["2.13.0", "2.13.1+cpu", "2.13.0a0+gitabcdef"])
    def test_is_the_minor_release(self, version: str):
        assert wheel_metadata.requirement(version) == "torch==2.13.*"

    def test_finds_the_installed_torch(self):
        assert wheel_metadata.installed_torch() == torch.__version__

    def test_without_torch_it_says_to_install_it_first(self, tmp_path: Path):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path], check=True)
        assert wheel_metadata.installed_torch(str(tmp_path / "bin/python")) is None
        with pytest.raises(SystemExit, match=r"pip install torch\n\nfirst \(2\.11 or newer\)"):
            wheel_metadata.requirement(None)

    def test_an_old_torch_is_named(self):
        with pytest.raises(SystemExit, match=r"torch 2\.10\.1 is installed.*needs 2\.11 or newer"):
            wheel_metadata.requirement("2.10.1")

    @pytest.mark.parametrize(
        ("state", "requirement", "dynamic"),
        [
            ("wheel", f"torch=={'.'.join(torch.__version__.split('.')[:2])}.*", []),
            ("sdist", "torch>=2.11", ["requires-dist"]),
        ],
    )
    def test_of_wheel_and_source(
        self, state: str, requirement: str, dynamic: list[str], monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.chdir(ROOT)
        settings = SettingsReader.from_file("pyproject.toml").settings
        metadata = get_standard_metadata(PYPROJECT, settings, state)
        dependencies = [requirement, "numpy", "typing_extensions"]
        assert list(map(str, metadata.dependencies)) == dependencies
        assert [field.lower() for field in metadata.dynamic_metadata] == dynamic

    def test_a_label_distinguishes_wheels(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv(wheel_metadata.LABEL, "torch2.13.cpu")
        versions = {}
        for state in ("wheel", "sdist"):
            provider = wheel_metadata.Provider()
            provider.build_state(state)
            found = provider.dynamic_metadata({"others": []}, {"version": "0.2.0"})
            versions[state] = found["version"]
        assert versions == {"wheel": "0.2.0+torch2.13.cpu", "sdist": "0.2.0"}

    def test_the_oldest_torch_is_the_same_everywhere(self):
        oldest = wheel_metadata.spell(wheel_metadata.OLDEST)
        assert (
            f"Torch_VERSION VERSION_LESS {oldest})"
            in (ROOT / "cmake/FindTorchFromPython.cmake").read_text()
        )
        assert (
            f"OLDEST_TORCH = ({oldest.replace('.', ', ')})"
            in (ROOT / "scripts/check_python.py").read_text()
        )


class TestPublicWheels:
    WORKFLOW = (ROOT / ".github/workflows/wheels.yml").read_text()

    def test_are_built_for_every_supported_torch(self):
        (listed,) = re.findall(r"^ +torch: \[(.*)\]$", self.WORKFLOW, re.MULTILINE)
        releases = [wheel_metadata.minor_release(word.strip('" ')) for word in listed.split(",")]
        (newest,) = re.findall(r"^torch==([0-9.]+)", (ROOT / "requirements.txt").read_text(), re.M)
        assert releases[0] == wheel_metadata.OLDEST
        assert releases[-1] == wheel_metadata.minor_release(newest)
        assert releases == [(2, minor) for minor in range(releases[0][1], releases[-1][1] + 1)]

    def test_contain_no_library_of_torch(self):
        script = (ROOT / "scripts/repair_wheel.sh").read_text()
        for library in ("libtorch.so", "libtorch_cpu.so", "libtorch_cuda.so", "libc10.so"):
            assert library in script

    def test_the_recipe_names_files_that_exist(self):
        recipe = PYPROJECT["tool"]["cibuildwheel"]
        commands = recipe["repair-wheel-command"] + " " + recipe["test-command"]
        scripts = re.findall(r"\{project\}/(\S+)", commands)
        assert scripts == ["scripts/repair_wheel.sh", "scripts/try_wheel.py"]
        assert all((ROOT / script).is_file() for script in scripts)


class TestBuildWheels:
    """scripts/build_wheels.py: the commands that it runs; nothing is built or installed."""

    @pytest.fixture
    def commands(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
        script = load_script("build_wheels")
        ran: list[list[str]] = []

        def run(*command: object, **environment: str) -> None:
            words = [str(word) for word in command]
            ran.append([f"{name}={environment[name]}" for name in sorted(environment)] + words)
            made = {"wheel": "plain.whl", "repair_wheel.sh": "repaired.whl"}
            for marker, name in made.items():
                if any(word == marker or word.endswith(f"/{marker}") for word in words):
                    Path(words[-1]).mkdir()
                    (Path(words[-1]) / name).touch()

        monkeypatch.setattr(script, "run", run)
        monkeypatch.setenv("PATH", "/bin")
        chosen = ["--torch", "2.12", "2.13", "--device", "cu130", "--try", "python3.12"]
        assert script.main([*chosen, "--out", str(tmp_path / "dist")]) == 0
        assert (tmp_path / "dist/repaired.whl").is_file()
        return ran

    def test_builds_for_the_torch_and_device(self, commands: list[list[str]]):
        builds = [command for command in commands if "wheel" in command]
        labels = [f"AIMLE_WHEEL_LABEL=torch{torch}.cu130" for torch in ("2.12", "2.13")]
        assert [command[0] for command in builds] == labels
        assert all("cmake.define.AIMLE_CUDA=ON" in command for command in builds)

    def test_tries_every_wheel_with_its_torch_in_clean_environments(
        self, commands: list[list[str]], tmp_path: Path
    ):
        installed = [c for c in commands if str(tmp_path / "dist/repaired.whl") in c]
        torches = [next(word for word in c if word.startswith("torch==")) for c in installed]
        assert torches == ["torch==2.12.*"] * 2 + ["torch==2.13.*"] * 2
        index = "https://download.pytorch.org/whl/cu130"
        assert all(index in command for command in installed)
        assert sum(c[-1].endswith("try_wheel.py") for c in commands) == 4
        assert sum(c[:2] == ["python3.12", "-m"] for c in commands) == 2


class TestExtras:
    def test_docs_is_what_the_documentation_is_built_with(self):
        assert set(EXTRAS["docs"]) == names_in("requirements-docs.txt")

    def test_the_others_are_tested_with_pinned_versions(self):
        pinned = names_in("requirements-extras.txt") | names_in("requirements.txt")
        named = {name for extra, names in EXTRAS.items() if extra != "docs" for name in names}
        assert named <= pinned

    def test_every_optional_package_that_is_tested_has_an_extra(self):
        named = {name for names in EXTRAS.values() for name in names}
        assert names_in("requirements-extras.txt") - named == {"cloudpickle"}  # Ray brings it

    def test_every_extra_that_is_recommended_exists(self):
        files = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("python/**/*.py"), *ROOT.glob("examples/*")]
        text = "\n".join(file.read_text() for file in files if file.is_file())
        recommended = set(re.findall(r"pip install '?aimle\[([a-z]+)\]", text))
        assert recommended
        assert recommended <= set(EXTRAS)

    def test_every_extra_is_on_the_page_about_installing(self):
        page = (ROOT / "docs/start/install.md").read_text()
        table = page.split("| extra | for |")[1].split("\n\n")[0]
        cells = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
        assert sorted(re.findall(r"`(\w+)`", " ".join(cells))) == sorted(EXTRAS)


def test_an_index_of_packages_can_describe_it():
    assert all(PROJECT[field] for field in ("description", "authors", "keywords", "urls"))
    assert (ROOT / PROJECT["readme"]).is_file()
    assert all((ROOT / file).is_file() for file in PROJECT["license-files"])
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert (ROOT / "python/aimle/py.typed").is_file()


def test_every_supported_python_has_a_classifier():
    prefix = "Programming Language :: Python :: 3."
    minors = [int(c.removeprefix(prefix)) for c in PROJECT["classifiers"] if c.startswith(prefix)]
    assert minors == list(range(minors[0], minors[-1] + 1))
    assert PROJECT["requires-python"] == f">=3.{minors[0]}"
    assert PROJECT["license"] == "MIT"  # an SPDX expression, which replaces the classifier
