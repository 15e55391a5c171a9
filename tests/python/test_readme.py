"""The README's example runs and prints what the README says."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def block(language: str) -> str:
    return re.search(rf"```{language}\n(.*?)```", README, re.DOTALL).group(1)


def test_the_example_prints_what_it_says():
    command = [sys.executable, "-c", block("python")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout == block("text")


def test_links_lead_somewhere():
    links = re.findall(r"\]\((?!https?://)([^)#]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
