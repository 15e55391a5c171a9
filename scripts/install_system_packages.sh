#!/usr/bin/env bash
# Installs the missing packages of system_packages.txt, or of the list that is named, with apt, as
# root or with a sudo that needs no password; otherwise prints what to install and stops.
set -euo pipefail
cd "$(dirname "$0")"
list=${1:-system_packages.txt}

has_header() {
  local include_flags=()
  local prefix
  for prefix in $(tr ';:' '  ' <<<"${CMAKE_PREFIX_PATH:-}"); do
    include_flags+=(-isystem "$prefix/include")
  done
  "${CXX:-c++}" -std=c++20 -fsyntax-only "${include_flags[@]}" -include "$1" -x c++ /dev/null
}

is_there() {
  case $1 in
    command) command -v "$2" ;;
    header) has_header "$2" ;;
    file) test -e "$2" ;;
    module) "${BASE_PYTHON:-python3}" -c "import $2" ;;
    *) echo "$list: unknown probe '$1'" >&2 && exit 2 ;;
  esac >/dev/null 2>&1
}

missing=()
optional=()
while read -r package probe what kind; do
  if is_there "$probe" "$what"; then continue; fi
  if [[ $kind == optional ]]; then optional+=("$package"); else missing+=("$package"); fi
done < <(grep -Ev '^(#|$)' "$list")

if ((${#missing[@]} == 0)); then
  echo "System packages: complete"
  exit
fi

as_root=()
if ((EUID != 0)); then as_root=(sudo); fi
install=("${as_root[@]}" apt-get install -y --no-install-recommends "${missing[@]}" "${optional[@]}")

if ! command -v apt-get >/dev/null ||
  { ((EUID != 0)) && ! sudo -n true 2>/dev/null; }; then
  cat >&2 <<MESSAGE
Missing on this machine: ${missing[*]}
On Debian or Ubuntu, install them with
    ${install[*]}
and run make again. Elsewhere, install what these packages hold; any prefix that CMake searches
(CMAKE_PREFIX_PATH) will do.
MESSAGE
  exit 1
fi

echo "System packages: installing ${missing[*]} ${optional[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update
"${install[@]}"
