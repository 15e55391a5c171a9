#!/usr/bin/env bash
# Runs the C++ and the Python tests of the release build and prints the total counts:
#     N passed, M failed, K skipped
set -uo pipefail
cd "$(dirname "$0")/.."

results=$PWD/build/release/test_results
rm -rf "$results" && mkdir -p "$results"

ctest --preset release -j "$JOBS" --progress --output-junit "$results/ctest.xml"
# With pytest-xdist the test files are shared among processes.
processes=()
if "$PYTHON" -c 'import xdist' 2> /dev/null; then
  processes=(-n "$((JOBS < 4 ? JOBS : 4))" --dist loadscope --no-loadscope-reorder)
fi
"$PYTHON" -m pytest tests "${processes[@]}" --junitxml "$results/pytest.xml"

"$PYTHON" scripts/count_tests.py "$results/ctest.xml" "$results/pytest.xml"
