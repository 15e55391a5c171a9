"""The page of the reports: self-contained, escaped, and its tables as given."""

import re
from pathlib import Path

import pytest
from html_page import check

pytest.importorskip("matplotlib")

from aimle.program.report import Page, figures
from aimle.program.report.page import count_of

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


def a_page(folder: Path) -> Page:
    page = Page("Losses <&>", "of `aimle`")
    page.heading("Curves")
    page.paragraph("a < b, `x < y`, **now**")
    with figures.style():
        for name in ("one", "two"):
            figure, axes = figures.subplots()
            axes.plot([1, 2], [3, 4], **figures.line("aimle"))
            axes.legend()
            page.figure(figure, folder / name, "A <caption>")
    page.table(
        ["method", "loss"], [["aimle", 1.25], ["imle", 2.0], ["ste", None]], best={"loss": "min"}
    )
    page.image(PNG, "a dot")
    return page


def test_it_is_one_whole_file(tmp_path: Path):
    a_page(tmp_path).write(tmp_path / "report.html", "by `aimle`")
    html = (tmp_path / "report.html").read_text()
    check(html)
    assert "a &lt; b, <code>x &lt; y</code>, <strong>now</strong>" in html
    assert {file.name for file in tmp_path.iterdir()} == {
        "report.html", "one.png", "one.svg", "two.png", "two.svg",
    }  # fmt: skip


def test_the_best_of_a_column_stands_out(tmp_path: Path):
    html = a_page(tmp_path).html()
    assert re.findall(r'<td class="best">(.*?)</td>', html) == ["1.250"]
    assert "<td>–</td>" in html


def test_an_estimator_has_one_colour_and_its_settings_a_shade_of_it():
    assert figures.line("aimle")["color"] == figures.line("aimle")["color"]
    assert figures.line("aimle")["color"] != figures.line("imle")["color"]
    assert figures.line("aimle:target_norm=3")["color"] != figures.line("aimle")["color"]
    assert figures.name("aimle:target_norm=3") == "AIMLE, target_norm=3"
    assert figures.name("imle_central", 0.1) == "IMLE, central λ=0.1"


def test_numbers_are_aligned_and_words_are_not(tmp_path: Path):
    page = Page("title")
    page.table(
        ["runs", "mean", "plain", "words"],
        [["a", "7 ± 1.4", "60.21", "true"], ["b", "12", "60.441", "–"], ["c", "–", "61", "–"]],
    )
    html = page.html()
    check(html)
    assert '<th class="text">runs</th><th>mean</th><th>plain</th><th class="text">words' in html
    assert '<td>60.21<span class="pad" aria-hidden="true">0</span></td>' in html
    assert '<td>61<span class="pad" aria-hidden="true">.000</span></td>' in html
    assert "<td>60.441</td>" in html


def test_a_note_is_across_the_table():
    page = Page("title")
    page.table(["a", "b"], [["x", 1.0]], note="**Other** data")
    html = page.html()
    check(html)
    across = '<td colspan="2"><div><strong>Other</strong> data</div></td>'
    assert f'<tbody><tr class="note">{across}</tr><tr>' in html


def test_sections_settings_and_folds():
    page = Page("title")
    with page.section("outer"):
        page.heading("inner")
        page.settings({"seeds": 3, "n": [1, 2], "signed": False, "out": ""})
    page.heading("next")
    html = page.html()
    check(html)
    assert re.findall(r"<h(\d)>(.*?)</h", html) == [
        ("1", "title"), ("2", "outer"), ("3", "inner"), ("2", "next"),
    ]  # fmt: skip
    assert "<details><summary>Settings</summary>" in html
    assert '<td class="text">n</td><td class="text">1, 2</td>' in html
    assert '<td class="text">signed</td><td class="text">false</td>' in html
    assert ">out<" not in html


def test_counts():
    assert count_of(1, "run") == "1 run"
    assert count_of(0, "run") == "0 runs"
    assert count_of(2, "study", "studies") == "2 studies"


def test_the_page_is_light_or_dark_and_no_wider_than_the_window():
    """Wide things scroll within the page; looked at in a browser, held here."""
    html = Page("title").html()
    for rule in (
        "@media (prefers-color-scheme: dark)",
        ".scroll { overflow-x: auto; max-width: 100%; }",
        "th:first-child, td:first-child { position: sticky; left: 0;",
    ):
        assert rule in html
