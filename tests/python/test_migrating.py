"""The Python of docs/migrating.md runs, and what it asserts holds."""

import re
from pathlib import Path

import torch

PAGE = Path(__file__).resolve().parents[2] / "docs" / "migrating.md"


def test_the_page_runs():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 4
    torch.manual_seed(0)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert names["z"].shape == (32, 50)
    assert names["checkpoint"]["target"]["updates"] == 1
    assert torch.count_nonzero(names["new"]) > 0
