"""A visitor of the page, who notes what a visitor should never meet."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from playwright.sync_api import Browser, Page, Request, expect

PATIENCE_MS = 30_000


@dataclass(slots=True, kw_only=True)
class Visitor:
    """A page in a browser. `complaints` are what its console and its scripts said, `strangers` other hosts asked."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    expected: set[str] = field(default_factory=set)

    @classmethod
    @contextmanager
    def of(
        cls,
        browser: Browser,
        url: str,
        *,
        scheme: Literal["light", "dark"] = "light",
        width: int = 1280,
    ) -> Iterator["Visitor"]:
        """One in a browser session of its own; in the end nothing was to be complained of."""
        context = browser.new_context(
            color_scheme=scheme,
            viewport={"width": width, "height": 900},
            timezone_id="Europe/Berlin",
            locale="en-GB",
            accept_downloads=True,
        )
        context.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        found = cls(page=context.new_page(), url=url)
        context.on("console", lambda said: found.complaints.append(f"{said.type}: {said.text}"))
        context.on("weberror", lambda fault: found.complaints.append(str(fault.error)))
        context.on("request", lambda request: found._note(request))
        try:
            yield found
            unexpected = [each for each in found.complaints if not any(known in each for known in found.expected)]
            assert unexpected == [], unexpected
            assert found.strangers == [], found.strangers
        finally:
            context.close()

    def _note(self, request: Request) -> None:
        if not request.url.startswith((self.url + "/", "data:", "blob:")):
            self.strangers.append(request.url)

    def goto(self, path: str, heading: str | None = None) -> Page:
        """Opens an address and waits for its heading."""
        self.page.goto(self.url + path)
        if heading is not None:
            self.sees(heading)
        return self.page

    def sees(self, heading: str) -> None:
        """Waits until a page with that heading is there."""
        expect(self.page.get_by_role("heading", level=1)).to_contain_text(heading)
