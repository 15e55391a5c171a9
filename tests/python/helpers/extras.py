"""Skips tests whose optional packages are missing; `make test-extras` installs them."""

from __future__ import annotations

import importlib
import os
from types import ModuleType
from typing import Any

import pytest


def need(name: str) -> ModuleType:
    """The module; what needs it is skipped where it is missing, but fails in `make test-extras`."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if os.environ.get("AIMLE_TEST_EXTRAS"):
            raise
        pytest.skip(f"{error}: make test-extras installs it", allow_module_level=True)


def start_ray(**settings: Any) -> None:
    """A Ray cluster on this machine. Ray gives up after 30 s, which a busy machine may need."""
    ray = need("ray")
    for attempt in range(3):
        try:
            ray.init(num_cpus=2, include_dashboard=False, **settings)
            return
        except Exception as error:
            ray.shutdown()
            if attempt == 2 or "timed out during startup" not in str(error):
                raise
