#!/usr/bin/env bash
# Creates .venv and installs what is missing from requirements.txt.
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
  echo "Python: creating .venv from $("$base_python" --version)"
  "$base_python" -m venv --clear .venv
fi

# The default torch on PyPI includes several GB of CUDA. If the index of CPU builds cannot be
# reached, pip's own configuration is used.
torch_index=(--extra-index-url "$cpu_index")
if ! .venv/bin/python - "$cpu_index" <<'PROBE' 2>/dev/null; then
import sys, urllib.request

urllib.request.urlopen(urllib.request.Request(sys.argv[1] + "/torch/", method="HEAD"), timeout=10)
PROBE
  echo "Python: $cpu_index cannot be reached; using pip's own sources for torch"
  torch_index=()
fi

pip=(.venv/bin/python -m pip --disable-pip-version-check)
"${pip[@]}" install "${torch_index[@]}" "$(grep '^torch==' requirements.txt)"
"${pip[@]}" install -r requirements.txt
