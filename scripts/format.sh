#!/usr/bin/env bash
# Formats all C++ and Python files as `make lint` requires.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/sources.sh

clang-format -i "${cpp_files[@]}"
ruff check --fix .
ruff format .
