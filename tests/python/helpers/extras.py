"""Packages that the project does not need, and tests that do: `make test-extras` runs them."""

from __future__ import annotations

import importlib
import os
from types import ModuleType

import pytest


def need(name: str) -> ModuleType:
    """The module; what needs it is skipped where it is missing, but fails in `make test-extras`."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if os.environ.get("AIMLE_TEST_EXTRAS"):
            raise
        pytest.skip(f"{error}: make test-extras installs it", allow_module_level=True)
