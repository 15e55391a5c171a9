"""The scripts behind `make`: what they install, what they require, how they count tests."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


def run(*command: object, **options: object) -> subprocess.CompletedProcess:
    command = [str(part) for part in command]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def junit(tests: int, failures: int = 0, errors: int = 0, skipped: int = 0) -> str:
    counts = f'tests="{tests}" failures="{failures}" errors="{errors}" skipped="{skipped}"'
    return f'<testsuites><testsuite name="s" {counts}/></testsuites>'


class TestCountTests:
    def count(self, tmp_path: Path, *contents: str | None) -> subprocess.CompletedProcess:
        files = [tmp_path / f"{i}.xml" for i in range(len(contents))]
        for file, content in zip(files, contents, strict=True):
            if content is not None:
                file.write_text(content)
        return run(sys.executable, SCRIPTS / "count_tests.py", *files)

    def test_sums_over_runners(self, tmp_path: Path):
        result = self.count(tmp_path, junit(10, skipped=1), junit(5))
        assert result.stdout == "14 passed, 0 failed, 1 skipped\n"
        assert result.returncode == 0

    def test_failures_and_errors_fail(self, tmp_path: Path):
        result = self.count(tmp_path, junit(10, failures=2, errors=1), junit(5))
        assert result.stdout == "12 passed, 3 failed, 0 skipped\n"
        assert result.returncode == 1

    @pytest.mark.parametrize("content", [None, junit(0)], ids=["missing", "empty"])
    def test_a_runner_without_tests_fails(self, tmp_path: Path, content: str | None):
        result = self.count(tmp_path, junit(10), content)
        assert result.stdout == "10 passed, 1 failed, 0 skipped\n"
        assert result.returncode == 1


class TestInstallSystemPackages:
    TOOLS = ("bash", "cat", "dirname", "grep", "tr")

    @pytest.fixture
    def machine(self, tmp_path: Path) -> Path:
        """A PATH with next to nothing on it, beside a copy of the scripts."""
        (tmp_path / "bin").mkdir()
        for tool in self.TOOLS:
            (tmp_path / "bin" / tool).symlink_to(shutil.which(tool))
        shutil.copytree(SCRIPTS, tmp_path / "scripts")
        return tmp_path

    def add(self, machine: Path, name: str, script: str):
        tool = machine / "bin" / name
        tool.write_text(f"#!/bin/bash\n{script}\n")
        tool.chmod(0o755)

    def install(self, machine: Path, *packages: str) -> subprocess.CompletedProcess:
        (machine / "scripts/system_packages.txt").write_text("\n".join(["# list", *packages, ""]))
        environment = {"PATH": os.fspath(machine / "bin")}
        return run(machine / "scripts/install_system_packages.sh", env=environment)

    def test_nothing_is_installed_twice(self, machine: Path):
        self.add(machine, "apt-get", "echo apt-get was called; exit 1")
        result = self.install(machine, "bash command bash", "rare command rare optional")
        assert result.returncode == 0
        assert "apt-get was called" not in result.stdout

    def test_only_what_is_missing_is_installed(self, machine: Path):
        self.add(machine, "apt-get", 'echo "apt-get $*"')
        self.add(machine, "sudo", '[[ $1 == -n ]] && shift; "$@"')
        self.add(machine, "true", "exit 0")
        result = self.install(
            machine, "bash command bash", "libx-dev header x.h", "cache command cache optional"
        )
        assert result.returncode == 0, result.stderr
        assert "install -y --no-install-recommends libx-dev cache\n" in result.stdout

    def test_another_list_can_be_named(self, machine: Path):
        (machine / "scripts/others.txt").write_text("doxygen command doxygen\n")
        environment = {"PATH": os.fspath(machine / "bin")}
        script = machine / "scripts/install_system_packages.sh"
        result = run(script, "others.txt", env=environment)
        assert result.returncode == 1
        assert "Missing on this machine: doxygen\n" in result.stderr

    def test_a_file_can_be_asked_for(self, machine: Path):
        assert self.install(machine, f"sources file {machine}/scripts").returncode == 0
        result = self.install(machine, f"sources file {machine}/nothing")
        assert "Missing on this machine: sources\n" in result.stderr

    def test_without_apt_the_packages_are_named(self, machine: Path):
        result = self.install(machine, "bash command bash", "libx-dev header x.h")
        assert result.returncode == 1
        assert "Missing on this machine: libx-dev\n" in result.stderr
        assert "apt-get install -y --no-install-recommends libx-dev\n" in result.stderr


class TestCheckPython:
    def test_this_python_will_do(self):
        result = run(sys.executable, SCRIPTS / "check_python.py")
        assert result.returncode == 0, result.stderr

    def test_what_is_missing_is_named(self, tmp_path: Path):
        run(sys.executable, "-m", "venv", "--without-pip", tmp_path)
        python = tmp_path / "bin/python"
        result = run(python, SCRIPTS / "check_python.py", env={"PATH": ""})
        assert result.returncode == 1
        assert "it has no torch; aimle needs 2.11 or newer" in result.stderr
        assert f"{python} -m pip install numpy cmake ninja" in result.stderr

    def test_an_old_torch_is_named(self, tmp_path: Path):
        (tmp_path / "torch-2.10.1.dist-info").mkdir()
        (tmp_path / "torch-2.10.1.dist-info/METADATA").write_text("Name: torch\nVersion: 2.10.1\n")
        environment = os.environ | {"PYTHONPATH": os.fspath(tmp_path)}
        result = run(sys.executable, SCRIPTS / "check_python.py", env=environment)
        assert result.returncode == 1
        assert "its torch is 2.10.1; aimle needs 2.11 or newer" in result.stderr


class TestCompiler:
    """A compiler whose C++ library is static is not used beside Torch."""

    MODULE = SCRIPTS.parent / "cmake" / "AimleCompiler.cmake"

    def cmake(self, tmp_path: Path, code: str, **environment: str) -> subprocess.CompletedProcess:
        script = tmp_path / "ask.cmake"
        script.write_text(f"include({self.MODULE})\n{code}\n")
        return run("cmake", "-P", script, env={**os.environ, **environment})

    @pytest.fixture
    def static(self, tmp_path: Path) -> Path:
        compiler = tmp_path / "static-g++"
        compiler.write_text('#!/bin/sh\nexec g++ -static-libstdc++ "$@"\n')
        compiler.chmod(0o755)
        return compiler

    def test_tells_static_from_shared(self, tmp_path: Path, static: Path):
        ask = "aimle_shares_cxx_library({} shares)\nmessage(STATUS ${{shares}})"
        assert self.cmake(tmp_path, ask.format("g++")).stdout == "-- TRUE\n"
        assert self.cmake(tmp_path, ask.format(static)).stdout == "-- FALSE\n"

    def test_replaces_a_static_one_of_the_environment(self, tmp_path: Path, static: Path):
        code = "aimle_choose_compiler()\nmessage(STATUS $CACHE{CMAKE_CXX_COMPILER})"
        replaced = self.cmake(tmp_path, code, CXX=str(static)).stdout.splitlines()
        assert f"CXX={static} links the C++ library statically" in replaced[0]
        assert replaced[1] != "-- "
        assert str(static) not in replaced[1]
        assert self.cmake(tmp_path, code, CXX="g++").stdout == "-- \n"

    def test_stops_if_it_was_chosen_by_hand(self, tmp_path: Path, static: Path):
        code = f"set(UNIX TRUE)\nset(CMAKE_CXX_COMPILER {static})\naimle_check_compiler()"
        result = self.cmake(tmp_path, code)
        assert result.returncode != 0
        assert "-DCMAKE_CXX_COMPILER=/usr/bin/g++" in result.stderr


class TestCheckCompiles:
    """scripts/check_compiles.py: the commands of a build, without objects."""

    SOURCE = SCRIPTS.parent / "aimle" / "map" / "status.cpp"

    def check(self, build: Path, target: str, *options: str) -> subprocess.CompletedProcess:
        made = "CMakeFiles/aimle_core.dir/status.cpp.o"
        words = ["c++", "-std=c++20", *options, "-I", SCRIPTS.parent, "-o", made, "-c"]
        command = shlex.join(map(str, [*words, self.SOURCE]))
        entry = {"directory": str(build), "command": command, "file": str(self.SOURCE)}
        (build / "compile_commands.json").write_text(json.dumps([entry]))
        return run(sys.executable, SCRIPTS / "check_compiles.py", build, target)

    def test_writes_nothing(self, tmp_path: Path):
        result = self.check(tmp_path, "aimle_core")
        assert result.returncode == 0, result.stderr
        assert result.stdout == "aimle/map/status.cpp: compiles\n1 of 1 files compile\n"
        assert [file.name for file in tmp_path.iterdir()] == ["compile_commands.json"]

    def test_an_error_is_printed(self, tmp_path: Path):
        result = self.check(tmp_path, "aimle_core", "-include", "no_such_header.h")
        assert result.returncode == 1
        assert "no_such_header.h" in result.stderr
        assert result.stdout.endswith("0 of 1 files compile\n")

    def test_a_target_without_sources_is_an_error(self, tmp_path: Path):
        result = self.check(tmp_path, "aimle_torch")
        assert result.returncode == 1
        assert "compiles no file of aimle_torch" in result.stderr


def test_an_unknown_platform_is_named(tmp_path: Path):
    shutil.copytree(SCRIPTS, tmp_path / "scripts")
    (tmp_path / "scripts/system_packages_platforms.txt").write_text("bash command bash\n")
    result = run(tmp_path / "scripts/test_platforms.sh", "sparc")
    assert result.returncode == 2
    assert "unknown platform 'sparc': expected clang or arm64" in result.stderr


class TestResults:
    """scripts/results.py: from run folders to a table."""

    @staticmethod
    def write_run(folder: Path, method: str, seed: int, losses: list[float]) -> None:
        folder.mkdir(parents=True)
        settings = {"epochs": 2, "device": "cpu", "method": method, "nb_samples": "10"}
        config = {"seed": seed, "commit": "0123456789abcdef", "settings": settings}
        (folder / "config.json").write_text(json.dumps(config))
        lines = [{"epoch": i + 1, "test_loss": loss} for i, loss in enumerate(losses)]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    @staticmethod
    def results(*arguments: object) -> str:
        done = run(sys.executable, SCRIPTS / "results.py", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def test_means_and_standard_errors_of_finished_runs(self, tmp_path):
        out = tmp_path / "dvae.csv"
        options = ["--settings", "method,nb_samples", "--metrics", "test_loss"]
        self.write_run(tmp_path / "runs/a-0", "aimle", 0, [90.0, 70.0])
        self.write_run(tmp_path / "runs/a-1", "aimle", 1, [90.0, 72.0])
        self.write_run(tmp_path / "runs/i-0", "imle", 0, [99.0])
        printed = self.results("collect", tmp_path / "runs", out, *options)
        assert "2 runs" in printed
        assert "i-0" in printed.split("not finished:")[1]
        self.write_run(tmp_path / "more/i-0", "imle", 0, [99.0, 80.0])
        self.results("collect", tmp_path / "more", out, *options)
        show = ["--rows", "method", "--columns", "nb_samples", "--metric", "test_loss"]
        assert self.results("table", out, *show).splitlines() == [
            "| method | nb_samples = 10 |",
            "| --- | --- |",
            "| aimle | 71.00 ± 1.00 |",
            "| imle | 80 (1 run) |",
        ]

    def test_the_epoch_of_the_best_validation(self, tmp_path):
        out = tmp_path / "l2x.csv"
        folder = tmp_path / "runs/a"
        self.write_run(folder, "aimle", 0, [])
        epochs = [
            {"epoch": 1, "val_loss": 3.0, "test_loss": 3.5, "precision": 60.0},
            {"epoch": 2, "val_loss": 4.0, "test_loss": 2.5, "precision": 70.0},
        ]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(e) + "\n" for e in epochs))
        metrics = ["--metrics", "test_loss,precision", "--best", "val_loss"]
        self.results("collect", tmp_path / "runs", out, "--settings", "method", *metrics)
        show = ["--rows", "method", "--metric", "test_loss,precision"]
        assert self.results("table", out, *show).splitlines() == [
            "| method | test_loss | precision |",
            "| --- | --- | --- |",
            "| aimle | 3.5 (1 run) | 60 (1 run) |",
        ]


def test_the_page_on_gradients_has_the_tables_of_its_files():
    done = run(sys.executable, SCRIPTS / "gradient_tables.py")
    assert done.returncode == 0, done.stderr
    page = (SCRIPTS.parent / "docs/results/gradients.md").read_text()
    tables = done.stdout.strip().split("\n\n")
    assert len(tables) == 3
    assert all(table in page for table in tables)
