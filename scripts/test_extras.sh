#!/usr/bin/env bash
# Runs the files of tests that use optional packages, in build/extras, and ends with the counts:
#     N passed, M failed, K skipped
set -uo pipefail
cd "$(dirname "$0")/.."

results=$PWD/build/release/test_extras_results
rm -rf "$results" && mkdir -p "$results"

mapfile -t files < <(grep -rl --include='test_*.py' 'from extras import' tests/python | sort)
AIMLE_TEST_EXTRAS=1 build/extras/bin/python -m pytest "${files[@]}" --junitxml "$results/pytest.xml"

"$PYTHON" scripts/count_tests.py "$results/pytest.xml"
