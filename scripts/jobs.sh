#!/usr/bin/env bash
# Prints the number of parallel compilations: one per core, with 2 GB of free memory for each.
set -euo pipefail
cores=$(nproc)
free_kb=$(awk '/MemAvailable/ {print $2}' /proc/meminfo)
limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
if [[ $limit != max && $((limit / 1024)) -lt $free_kb ]]; then free_kb=$((limit / 1024)); fi
by_memory=$((free_kb / 2000000))
jobs=$((cores < by_memory ? cores : by_memory))
echo $((jobs > 1 ? jobs : 1))
