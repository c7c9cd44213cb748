"""What page, tables and shape know of a ladder."""

from typing import Any

from loadgen.locustio.swarm.state import LadderState

NOTHING: dict[str, Any] = {
    "rows": [],
    "charts": [],
    "verdict": {"words": "", "kind": "invalid"},
    "doubts": [],
    "knee": "",
}


class Clock:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def progress(ended: int, tokens: int) -> dict[str, Any]:
    counts = {"outcomes": {"completed": ended}, "output_tokens": tokens}
    return {"event": "progress", "ended": ended, "planned": 20, "in_flight": 3, "counts": counts}


def test_a_ladder_from_its_beginning_to_its_end() -> None:
    """Each phase, the users that stand for a level, and the report once there is one."""
    clock = Clock()
    state = LadderState(now_s=clock)
    assert (state.phase, state.busy, state.report) == ("idle", False, None)
    state.start()
    assert (state.phase, state.busy, state.users) == ("starting", True, None)
    state.take({"event": "begun", **NOTHING})
    state.take({"event": "level", "title": "concurrency 4", "duration_s": None, "users": 4})
    assert (state.phase, state.users) == ("running", 4)
    state.take({"event": "measured", **NOTHING, "rows": [{"level": 4}]})
    assert state.rows == [{"level": 4}]
    state.take({"event": "ended", "code": 0, "interrupted": False, "path": "/runs/x", "report": "/runs/x/report.html"})
    assert (state.phase, state.busy, state.report) == ("ended", False, "/runs/x/report.html")
    shown = state.as_json()
    assert shown["ended"] == {"code": 0, "interrupted": False, "error": None, "failed_gates": None, "path": "/runs/x"}
    assert (shown["has_report"], shown["level"], shown["silent_s"]) == (True, None, None)


def test_what_a_dead_process_left_is_where_it_said() -> None:
    """Of an end that tells no folder the one that was told before; of the next ladder, none yet."""
    state = LadderState()
    state.start()
    state.take({"event": "saving", "path": "/runs/sweep-1"})
    state.take({"event": "ended", "code": 3, "interrupted": False, "error": "the process ended with status -9"})
    assert state.as_json()["ended"]["path"] == "/runs/sweep-1"
    state.start()
    state.take({"event": "ended", "code": 4, "interrupted": False, "error": "cannot be reached"})
    assert state.as_json()["ended"]["path"] is None


def test_rates_are_of_the_time_between_two_looks() -> None:
    """Not of the whole level; the first look has nothing to compare with."""
    clock = Clock()
    state = LadderState(now_s=clock)
    state.start()
    state.take({"event": "level", "title": "concurrency 3", "duration_s": None, "users": 3})
    for ended, tokens in ((0, 0), (4, 64), (2, 32)):
        clock.now_s += 0.5
        state.take(progress(ended, tokens))
    first, second = state.as_json()["series"]
    assert (first["t_s"], first["requests_per_s"], first["output_tokens_per_s"]) == (1.0, 8.0, 128.0)
    assert (second["t_s"], second["requests_per_s"], second["in_flight"]) == (1.5, 4.0, 3)
    state.take({"event": "level", "title": "concurrency 6", "duration_s": None, "users": 6})
    assert (state.as_json()["series"], state.as_json()["progress"]) == ([], {})


def test_a_silent_ladder_shows_that_it_is() -> None:
    """Seconds since anything was heard, so that a page does not look alive when nothing is."""
    clock = Clock()
    state = LadderState(now_s=clock)
    state.start()
    state.take({"event": "level", "title": "concurrency 3", "duration_s": None, "users": 3})
    clock.now_s += 7
    assert state.as_json()["silent_s"] == 7


def test_a_new_ladder_forgets_the_one_before() -> None:
    """Its rows, its report, what went wrong."""
    state = LadderState()
    state.start()
    state.take({"event": "begun", **NOTHING, "rows": [{"level": 1}]})
    state.take({"event": "note", "text": "a worker is lost"})
    state.take({"event": "ended", "code": 4, "interrupted": False, "error": "cannot be reached"})
    state.stopping()
    assert state.phase == "ended"
    state.start()
    shown = state.as_json()
    assert (shown["rows"], shown["notes"], shown["ended"]) == (None, [], None)
