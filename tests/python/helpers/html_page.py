"""Checks the HTML of reports."""

from html.parser import HTMLParser

VOID = {"meta", "img", "br", "use", "path", "image", "rect"}


class Checker(HTMLParser):
    """Every tag is closed, in order; nothing is loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loaded: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        self.ids += [found["id"]] if found.get("id") else []
        for name in ("src", "href", "xlink:href"):
            if found.get(name):
                self.loaded.append(found[name])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open = self.open[:-2]

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def check(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    assert checker.open == []
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in checker.loaded)
    assert len(set(checker.ids)) == len(checker.ids)
    assert "<script" not in html
    assert "@import" not in html
    return checker
