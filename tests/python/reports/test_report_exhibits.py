"""Single examples in reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from aimle.program.report import Page
from aimle.program.report.exhibits import draw_exhibits


def test_reviews_with_chosen_and_annotated_words(tmp_path: Path) -> None:
    review = {
        "words": ["a", "<b>", "fine", "beer"],
        "chosen": [1, 2],
        "annotated": [2, 3],
        "rating": 0.75,
        "predicted": 0.5,
    }
    (tmp_path / "exhibits.json").write_text(json.dumps([review]))
    page = Page("reviews")
    draw_exhibits(page, "l2x", tmp_path, "aimle")
    text = page.html()
    assert '<span class="chosen">&lt;b&gt;</span>' in text
    assert '<span class="chosen annotated">fine</span>' in text
    assert '<span class="annotated">beer</span>' in text
    assert "Rating 0.75, predicted 0.50; 1 of 2 chosen words are annotated." in text


def test_trees_and_paths(tmp_path: Path) -> None:
    path = [[[0.0, 0.0], [0.1, 0.2]], [[0.5, 0.5], [0.4, 0.5]], [[1.0, 0.0], [0.9, 0.1]]]
    graph = {
        "path": path,
        "predicted": [p[1:] for p in path],
        "true_tree": [[0, 1], [1, 2]],
        "tree": [[0, 1], [0, 2]],
    }
    (tmp_path / "exhibits.json").write_text(json.dumps([graph, graph]))
    page = Page("trees")
    draw_exhibits(page, "nri", tmp_path, "aimle")
    text = page.html()
    assert text.count("<svg ") == 1
    assert "links found correctly" in text


def test_nothing_to_show(tmp_path: Path) -> None:
    page = Page("nothing")
    before = page.html()
    draw_exhibits(page, "nri", tmp_path, "aimle")
    (tmp_path / "exhibits.json").write_text("[]")
    draw_exhibits(page, "dvae", tmp_path, "aimle")
    assert page.html() == before
