#!/usr/bin/env bash
# Prints the versions of everything used to build, test and run.
set -euo pipefail
cd "$(dirname "$0")/.."

show() { printf '%-18s %s\n' "$1" "${2:-not found}"; }
first_line() { { "$@" 2>/dev/null || true; } | head -n 1; }

# The value of a macro or of a package's version, as found by the compiler and CMake.
cmake_package() {
  local scratch
  scratch=$(mktemp -d)
  cat >"$scratch/CMakeLists.txt" <<PROJECT
cmake_minimum_required(VERSION 3.24)
project(versions LANGUAGES CXX)
find_package($1 QUIET)
file(WRITE \${CMAKE_BINARY_DIR}/version "\${$1_VERSION}")
PROJECT
  cmake -S "$scratch" -B "$scratch" -G Ninja >/dev/null 2>&1 && cat "$scratch/version"
  rm -rf "$scratch"
}

show aimle "$(sed -nE 's/^project\(aimle VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)"
show commit "$(first_line git describe --always --dirty)"
show system "$(. /etc/os-release && echo "$PRETTY_NAME"), $(uname -m)"
show compiler "$(first_line "${CXX:-c++}" --version)"
show clang "$(first_line clang++ --version)"
show "ARM64 compiler" "$(first_line aarch64-linux-gnu-g++ --version)"
show QEMU "$(first_line qemu-aarch64 --version)"
show cmake "$(first_line cmake --version)"
show ninja "$(first_line ninja --version)"
show ccache "$(first_line ccache --version)"
show GoogleTest "$(cmake_package GTest)"
show GoogleBenchmark "$(cmake_package benchmark)"
show clang-format "$(first_line clang-format --version)"
show clang-tidy "$(clang-tidy --version 2>/dev/null | sed -nE 's/ *(LLVM version .*)/\1/p')"
"$PYTHON" - <<'PYTHON'
import re
import sys
from importlib import metadata
from pathlib import Path

print(f"{'python':18} {sys.version.split()[0]} ({sys.executable})")
listed = re.findall(r"^([A-Za-z0-9_-]+)==", Path("requirements.txt").read_text(), re.MULTILINE)
for name in dict.fromkeys(listed):
    if name.startswith("clang") or name in ("cmake", "ninja"):
        continue
    try:
        print(f"{name:18} {metadata.version(name)}")
    except metadata.PackageNotFoundError:
        print(f"{name:18} not found")
PYTHON
