"""The short form of `make soak`: every command is killed while it writes, and continued."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from aimle_program import need_program
from soak import CASES, TrialError, check_same, contents, finish, flip_a_bit, kill_at_write


@pytest.mark.parametrize("name", CASES)
def test_a_killed_command_ends_as_if_it_had_not_been(name: str, tmp_path: Path) -> None:
    need_program()
    case, out = CASES[name], tmp_path / "killed"
    chance = random.Random(name)
    assert kill_at_write(case, out, chance.randint(1, case.moments))
    kill_at_write(case, out, chance.randint(1, case.moments // 2))
    finish(case, out)
    finish(case, tmp_path / "whole")
    check_same(contents(out), contents(tmp_path / "whole"))


def test_two_intact_checkpoints_exist_at_any_moment(tmp_path: Path) -> None:
    """Killed while it writes its last checkpoint, a run has lost neither of the two before it."""
    need_program()
    case = CASES["warcraft"]
    finish(case, tmp_path / "whole")
    for moment in range(case.moments - 3, case.moments + 1):
        out = tmp_path / str(moment)
        assert kill_at_write(case, out, moment)
        assert flip_a_bit(out, random.Random(moment))
        finish(case, out)
        check_same(contents(out), contents(tmp_path / "whole"))


def test_a_difference_is_seen(tmp_path: Path) -> None:
    """Otherwise the trials would show nothing."""
    need_program()
    case, whole, other = CASES["warcraft"], tmp_path / "whole", tmp_path / "other"
    assert kill_at_write(case, other, case.moments)  # the last file is there, not all were
    assert not kill_at_write(case, whole, case.moments + 1)
    with pytest.raises(TrialError, match=r"one of the folders only: .aimle.lock"):
        check_same(contents(other), contents(whole))
    finish(case, other)
    check_same(contents(other), contents(whole))
    lines = (other / "metrics.jsonl").read_text()
    (other / "metrics.jsonl").write_text(lines.replace('"epoch":2', '"epoch":3'))
    with pytest.raises(TrialError, match=r"other contents: metrics.jsonl"):
        check_same(contents(other), contents(whole))
