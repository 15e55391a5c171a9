#!/usr/bin/env bash
# Makes build/extras, a virtual environment over the packages of $PYTHON (torch among them), and
# fills it with requirements-extras.txt. Nothing is installed into $PYTHON.
set -euo pipefail
cd "$(dirname "$0")/.."

place=build/extras
echo "Python: making $place over $PYTHON"
"$PYTHON" -m venv --clear "$place"
packages='import sysconfig; print(sysconfig.get_path("purelib"))'
"$PYTHON" -c "$packages" > "$("$place/bin/python" -c "$packages")/project.pth"
"$place/bin/python" -m pip --disable-pip-version-check install -c requirements.txt \
  -r requirements-extras.txt
