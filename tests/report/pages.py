"""A page of a report taken apart."""

import json
import re
from html.parser import HTMLParser

from loadgen import __version__

VOID = {"meta", "link", "br"}


class Page(HTMLParser):
    """The elements of a page, with their attributes and text; fails on a page whose tags do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        """Attributes of every element of that name."""
        return [attributes for name, attributes in self.elements if name == tag]

    def script(self, name: str) -> object:
        """The data in a script element."""
        kinds = [attributes.get("id") for attributes in self.named("script")]
        return json.loads(self.texts["script"][kinds.index(name)])


def structure(page: str) -> str:
    """A page without its styles, its code and the data that the JSON goldens cover."""
    page = re.sub(r"<style>.*?</style>", "<style>…</style>", page, flags=re.DOTALL)
    page = re.sub(r"<script>.*?</script>", "<script>…</script>", page, flags=re.DOTALL)
    page = re.sub(r'(<script type="application/json" id="\w+">).*?</script>', r"\1…</script>", page, flags=re.DOTALL)
    page = re.sub(r"'sha256-[^']*'", "'sha256-…'", page)
    return page.replace(f"loadgen {__version__}", "loadgen VERSION").replace("><", ">\n<")
