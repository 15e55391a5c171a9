"""Estimator settings as text, as on the command line: ``imle_central:lambda=0.1``."""

from collections.abc import Mapping
from typing import Any

_MAY_BE_NONE = ("noise", "projection")


def python_settings(settings: Mapping[str, str]) -> dict[str, Any]:
    """The settings as keyword arguments of ``aimle.estimator``."""
    return {
        "lambda_" if name == "lambda" else name: _value(name, text)
        for name, text in settings.items()
    }


def split_text(text: str) -> tuple[str, dict[str, str]]:
    """Splits ``name:setting=value:...`` into name and settings; raises ValueError otherwise."""
    name, *parts = text.split(":")
    if not all("=" in part for part in parts):
        raise ValueError(f"[aimle] expected name:setting=value but got {text!r}")
    return name, dict(part.split("=", 1) for part in parts)


def _value(name: str, text: str) -> Any:
    if name in _MAY_BE_NONE and text == "none":
        return None
    if ":" in text:
        low, high = text.split(":")
        return float(low), float(high)
    try:
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    except ValueError:
        return {"true": True, "false": False}.get(text, text)
