"""What is known of the ladder under way, or of the last one: all that page, tables and shape show."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Literal

Phase = Literal["idle", "starting", "running", "stopping", "ended"]

_MOST_POINTS = 1200
_MEASURED = ("rows", "charts", "verdict", "doubts", "knee")


class LadderState:
    """Follows the events of the conductor. It is kept here, not in a browser, so that a reload loses nothing."""

    def __init__(self, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self.phase: Phase = "idle"
        self._clear()

    def _clear(self) -> None:
        self.level: dict[str, Any] | None = None
        self.progress: dict[str, Any] = {}
        self.ended: dict[str, Any] | None = None
        self._path: str | None = None
        self._heard_s = self._level_began_s = self._now_s()
        self._measured: dict[str, Any] = {}
        self._notes: list[str] = []
        self._points: deque[dict[str, Any]] = deque(maxlen=_MOST_POINTS)

    @property
    def busy(self) -> bool:
        """Whether a ladder is under way."""
        return self.phase in ("starting", "running", "stopping")

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row a level that is measured."""
        return list(self._measured.get("rows", ()))

    @property
    def report(self) -> str | None:
        """The file of the report, once there is one."""
        return None if self.ended is None else self.ended.get("report")

    @property
    def users(self) -> int | None:
        """Users that stand for the level under way: the requests kept in flight; None where no number is kept."""
        return None if self.level is None else self.level.get("users")

    def start(self) -> None:
        """A ladder was asked for."""
        self._clear()
        self.phase = "starting"

    def stopping(self) -> None:
        """It was asked to stop."""
        if self.busy:
            self.phase = "stopping"

    def take(self, event: Mapping[str, Any]) -> None:
        """The next event."""
        self._heard_s = self._now_s()
        match event["event"]:
            case "begun":
                self._measured = {name: event[name] for name in _MEASURED}
            case "saving":
                self._path = event["path"]
            case "starting":
                self.level = {"title": "starting the server", "said": event["line"], "users": None}
            case "level":
                self._level(event)
            case "progress":
                self._progress(event)
            case "measured":
                self._measured = {name: event[name] for name in _MEASURED}
            case "note":
                self._notes.append(str(event["text"]))
            case "ended":
                self.phase, self.level = "ended", None
                self.ended = {"path": self._path} | {name: value for name, value in event.items() if name != "event"}
                if "charts" in event:
                    self._measured["charts"] = event["charts"]

    def as_json(self) -> dict[str, Any]:
        """All of it, for the page and for scripts; times are seconds."""
        ended = None if self.ended is None else {key: self.ended.get(key) for key in _ENDED}
        return {
            "phase": self.phase,
            "silent_s": max(0.0, self._now_s() - self._heard_s) if self.busy else None,
            "level": self.level,
            "progress": {name: value for name, value in self.progress.items() if name not in ("event", "counts")},
            "series": list(self._points),
            "notes": self._notes,
            **{name: self._measured.get(name) for name in _MEASURED},
            "ended": ended,
            "has_report": self.report is not None,
        }

    def _level(self, event: Mapping[str, Any]) -> None:
        if self.phase == "starting":
            self.phase = "running"
        self.level = {name: value for name, value in event.items() if name != "event"}
        self.progress = {}
        self._points.clear()
        self._level_began_s = self._heard_s

    def _progress(self, event: Mapping[str, Any]) -> None:
        before_s = self.progress.get("at_s")
        self.progress = {**event, "at_s": self._heard_s}
        step_s = None if before_s is None else self._heard_s - before_s
        if not step_s:
            return
        counts = event["counts"]
        self._points.append(
            {
                "t_s": self._heard_s - self._level_began_s,
                "requests_per_s": counts.get("outcomes", {}).get("completed", 0) / step_s,
                "output_tokens_per_s": counts.get("output_tokens", 0) / step_s,
                "in_flight": event["in_flight"],
            }
        )


_ENDED = ("code", "interrupted", "error", "failed_gates", "path")
