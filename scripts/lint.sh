#!/usr/bin/env bash
# Format and style of everything under version control: clang-format, clang-tidy on the core, ruff.
# `make format` mends what clang-format and ruff can mend.
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

exit $status
