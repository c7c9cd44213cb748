"""llama.cpp as the simulator speaks it: its streams, timings, counters and slots."""

import json
from typing import Any

import pytest

from loadgen.sim.server.exchange import Answer, Part, Route
from loadgen.sim.server.llamacpp import LlamacppDialect
from tests.sim.server.driven import STEP_S, Driven, asked, decoded, events, facts, output


def test_llamacpp_sends_a_steps_tokens_one_by_one() -> None:
    """Ten tokens are ten events, of which a step's come together."""
    (stream,) = Driven.of(LlamacppDialect).serve((asked(), [output(10)]))
    answer = decoded(stream)
    assert answer.event_ns == (10, 20, 20, 20, 30, 30, 30, 40, 40, 40)


def test_llamacpp_tells_timings_on_its_last_event() -> None:
    """Drafted and accepted tokens, prompt and output times; no number of steps."""
    (stream,) = Driven.of(LlamacppDialect).serve((asked(), [output(10)]))
    told = decoded(stream).speculation
    assert told is not None
    assert (told.steps, told.drafted_tokens, told.accepted_tokens) == (None, 9, 6)
    timings = events(b"".join(stream))[-1]["timings"]
    assert (timings["prompt_n"], timings["cache_n"], timings["predicted_n"]) == (20, 0, 10)
    assert timings["prompt_ms"] == pytest.approx(1000 * STEP_S)
    assert timings["predicted_ms"] == pytest.approx(3000 * STEP_S)
    assert timings["predicted_per_second"] == pytest.approx(10 / (3 * STEP_S))
    assert b"timings" not in b"".join(stream[:-2])


def test_llamacpp_tells_what_came_from_its_cache() -> None:
    """Tokens of the prompt found and computed, in the timings and in the usage that completions always have."""
    driven = Driven.of(LlamacppDialect)
    request = asked(Route.COMPLETIONS, prompt_ids=tuple(range(50)))
    driven.serve((request, [output(4)]))
    (stream,) = driven.serve((request, [output(4)]))
    last = events(b"".join(stream))[-1]
    assert (last["timings"]["cache_n"], last["timings"]["prompt_n"]) == (32, 18)
    assert last["usage"]["prompt_tokens_details"] == {"cached_tokens": 32}
    assert (last["usage"]["prompt_tokens"], last["usage"]["completion_tokens"]) == (50, 4)
    assert driven.metrics()["llamacpp:prompt_tokens_total"] == 50 + 18


def test_llamacpp_without_drafts_tells_none() -> None:
    """A baseline's timings have no draft counts, and one token still has a rate."""
    (stream,) = Driven.of(LlamacppDialect, None).serve((asked(), [output(1)]))
    timings = events(b"".join(stream))[-1]["timings"]
    assert "draft_n" not in timings
    assert timings["predicted_per_second"] > 0


def test_llamacpp_counters_have_vllms_shape() -> None:
    """Drafts, drafted, accepted and accepted by position of finished requests: acceptance length 1 + 6/3."""
    driven = Driven.of(LlamacppDialect)
    driven.serve((asked(), [output(10)]))
    metrics, prefix = driven.metrics(), "llamacpp:spec_decode_num_"
    assert (metrics[f"{prefix}drafts_total"], metrics[f"{prefix}draft_tokens_total"]) == (3, 9)
    assert metrics[f"{prefix}accepted_tokens_total"] == metrics[f"{prefix}accepted_tokens_per_pos_total"] == 6
    positions = driven.labels(f"{prefix}accepted_tokens_per_pos_total")
    assert positions == [{"position": "0"}, {"position": "1"}, {"position": "2"}]
    assert (metrics["llamacpp:tokens_predicted_total"], metrics["llamacpp:prompt_tokens_total"]) == (10, 20)
    assert metrics["llamacpp:tokens_predicted_seconds_total"] == pytest.approx(3 * STEP_S)
    assert (metrics["llamacpp:n_decode_total"], metrics["llamacpp:n_busy_slots_per_decode"]) == (4, 1)
    assert b"\nllamacpp:n_tokens_max 30\n" in driven.page("/metrics")


def test_llamacpp_has_its_speculation_counters_without_speculation() -> None:
    """At zero, and none by position."""
    driven = Driven.of(LlamacppDialect, None)
    driven.serve((asked(), [output(10)]))
    metrics = driven.metrics()
    assert metrics["llamacpp:spec_decode_num_drafts_total"] == 0
    assert "llamacpp:spec_decode_num_accepted_tokens_per_pos_total" not in metrics


def test_llamacpp_shows_its_slots() -> None:
    """Two of eight slots are busy while two requests run, and free again once their clients have left."""
    driven = Driven.of(LlamacppDialect)
    seen: list[list[dict[str, Any]]] = []

    class Watching(LlamacppDialect):
        def part(self, answer: Answer, part: Part) -> bytes:
            seen.append(driven.json("/slots"))
            return super().part(answer, part)

    driven.dialect = Watching(facts())
    driven.serve((asked(), [output(10)]), (asked(), [output(10)]), stop_after=3)
    busy = [slot for slot in seen[-1] if slot["is_processing"]]
    assert [slot["id"] for slot in busy] == [0, 1]
    assert all(slot["speculative"] for slot in seen[-1])
    assert len(seen[-1]) == 8
    assert not any(slot["is_processing"] for slot in driven.json("/slots"))
    assert driven.metrics()["llamacpp:tokens_predicted_total"] == 0


def test_llamacpp_describes_itself() -> None:
    """Slots, context and build; `/props` knows nothing of speculation; health is JSON."""
    props = Driven.of(LlamacppDialect).json("/props")
    assert (props["total_slots"], props["default_generation_settings"]["n_ctx"]) == (8, 4096)
    assert props["default_generation_settings"]["speculative"] is False
    assert props["build_info"]
    assert json.loads(LlamacppDialect.health) == {"status": "ok"}
