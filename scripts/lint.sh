#!/usr/bin/env bash
# Checks everything under version control with clang-format, clang-tidy (the core) and ruff, and the
# types of the Python package with mypy.
# `make format` fixes what clang-format and ruff can fix.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/sources.sh

for tool in clang-format clang-tidy ruff; do
  if ! command -v $tool >/dev/null; then
    echo "make lint needs $tool: $(grep "^$tool==" requirements.txt)" >&2
    exit 1
  fi
done

status=0
echo "clang-format: ${#cpp_files[@]} files"
clang-format --dry-run -Werror "${cpp_files[@]}" || status=1

echo "clang-tidy: ${#core_sources[@]} files"
cmake -S . -B build/lint -G Ninja -DAIMLE_TORCH=OFF -DAIMLE_TESTS=OFF >/dev/null
printf '%s\0' "${core_sources[@]}" |
  xargs -0 -n 1 -P "${JOBS:-1}" clang-tidy -p build/lint --quiet 2>&1 |
  sed -E "/^[0-9]+ warnings? generated\.$/d" || status=1

echo "ruff"
ruff check . || status=1
ruff format --check . || status=1

echo "mypy"
python=${PYTHON:-$PWD/.venv/bin/python}
has_mypy() { "$python" -m mypy --version >/dev/null 2>&1; }
if ! has_mypy && [[ $python == "$PWD/.venv/bin/python" ]]; then  # no other Python is changed
  "$python" -m pip install --quiet -r requirements-lint.txt >/dev/null 2>&1 || true
fi
if has_mypy; then
  "$python" -m mypy || status=1
  "$python" -m mypy --strict --follow-imports=silent tests/python/package/typing/usage.py || status=1
else
  echo "make lint needs mypy: $python -m pip install -r requirements-lint.txt" >&2
  status=1
fi

exit $status
