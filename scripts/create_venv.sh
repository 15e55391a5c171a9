#!/usr/bin/env bash
# Makes .venv and fills it with requirements.txt; what is there already stays.
set -euo pipefail
cd "$(dirname "$0")/.."

cpu_index=https://download.pytorch.org/whl/cpu
base_python=${BASE_PYTHON:-python3}

if ! "$base_python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
  echo "$base_python is $("$base_python" --version 2>&1); aimle needs Python 3.10 or newer." \
    "Name one with BASE_PYTHON=/path/to/python3." >&2
  exit 1
fi

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
  echo "Python: making .venv from $("$base_python" --version)"
  "$base_python" -m venv --clear .venv
fi

# The plain torch on PyPI brings several GB of CUDA along. Where the index of CPU builds cannot be
# reached, pip's own configuration decides.
torch_index=(--extra-index-url "$cpu_index")
if ! .venv/bin/python - "$cpu_index" <<'PROBE' 2>/dev/null; then
import sys, urllib.request

urllib.request.urlopen(urllib.request.Request(sys.argv[1] + "/torch/", method="HEAD"), timeout=10)
PROBE
  echo "Python: $cpu_index cannot be reached; taking torch from pip's own sources"
  torch_index=()
fi

pip=(.venv/bin/python -m pip --disable-pip-version-check)
"${pip[@]}" install "${torch_index[@]}" "$(grep '^torch==' requirements.txt)"
"${pip[@]}" install -r requirements.txt
