"""A real Chromium, which opens a page from a file as a user would."""

import re
import subprocess
from pathlib import Path

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    "--v=0",
    "--virtual-time-budget=3000",
)


class Browser:
    """One Chromium binary with a profile of its own a call."""

    def __init__(self, binary: str, scratch: Path) -> None:
        self._binary, self._scratch = binary, scratch

    def dump(self, page: str, *flags: str, width: int = 1280) -> tuple[str, list[str]]:
        """The page's DOM once its scripts have run, and what it wrote to the console."""
        file = self._scratch / "page.html"
        file.write_text(page, encoding="utf-8")
        done = self._run(f"--window-size={width},1600", "--dump-dom", *flags, file.as_uri())
        return done.stdout, re.findall(r"CONSOLE.*", done.stderr)

    def screenshot(self, page: str, *flags: str) -> bytes:
        """A PNG of the top of the page."""
        file, shot = self._scratch / "page.html", self._scratch / "shot.png"
        file.write_text(page, encoding="utf-8")
        self._run("--window-size=1280,1600", f"--screenshot={shot}", *flags, file.as_uri())
        return shot.read_bytes()

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        profile = self._scratch / "profile"
        done = subprocess.run(
            [self._binary, *FLAGS, f"--user-data-dir={profile}", *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done


def without_policy(page: str) -> str:
    """The page without its content security policy, so that a script of the test may run in it."""
    return re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
