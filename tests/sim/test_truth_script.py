"""The known-truth server's scripts: offsets and bytes, without a clock or a socket."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.core.errors import ConfigError
from loadgen.sim.script import Asked, Fault, LineEnd, Script, UsageLayout, read_request, stream, unary

CHAT = Asked(
    chat=True,
    stream=True,
    max_tokens=6,
    include_usage=True,
    continuous_usage=False,
    token_ids=False,
    input_tokens=3,
    model="truth",
    request_id="r",
)
MS = 1_000_000


def body(script: Script, asked: Asked = CHAT) -> bytes:
    """The whole streamed body."""
    return b"".join(write.data for write in stream(script, asked))


def events(script: Script, asked: Asked = CHAT) -> list[dict]:
    """The stream's JSON events, without the end marker."""
    lines = body(script, asked).decode().replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


def timeline(script: Script, asked: Asked = CHAT) -> list[tuple[float, int, int]]:
    """(ms, events, tokens) of each write that completes content."""
    return [(w.offset_ns / MS, w.events, w.tokens) for w in stream(script, asked) if w.events]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (Script(ttft_ms=10, gap_ms=5, tokens=3), [(10, 1, 1), (15, 1, 1), (20, 1, 1)]),
        (Script(ttft_ms=0, gap_ms=0, tokens=2), [(0, 1, 1), (0, 1, 1)]),
        (Script(ttft_ms=10, gap_ms=5, tokens_per_event=(1, 3)), [(10, 1, 1), (15, 1, 3), (20, 1, 1), (25, 1, 1)]),
        (Script(ttft_ms=10, gap_ms=5, tokens=5, coalesce=2), [(15, 2, 2), (25, 2, 2), (30, 1, 1)]),
        (Script(ttft_ms=10, gap_ms=5, tokens=2, split=4), [(10, 1, 1), (15, 1, 1)]),
        (Script(ttft_ms=10, gap_ms=5, fault=Fault.RESET, after_events=2), [(10, 1, 1), (15, 1, 1)]),
        (Script(ttft_ms=10, gap_ms=5, fault=Fault.EMPTY), []),
    ],
)  # fmt: skip
def test_the_schedule_is_a_table(script, expected):
    """When each write is due and how much content it completes follows from the script alone."""
    assert timeline(script) == expected


def test_the_request_limits_the_tokens_and_the_script_wins():
    """`max_tokens` is met exactly; a script that stops earlier does; without either there are 64."""
    assert sum(tokens for _, _, tokens in timeline(Script())) == 6
    assert sum(tokens for _, _, tokens in timeline(Script(tokens=2))) == 2
    assert len(timeline(Script(), replace(CHAT, max_tokens=None))) == 64


@given(
    st.builds(
        Script,
        ttft_ms=st.integers(0, 50),
        gap_ms=st.integers(0, 5),
        tokens=st.integers(1, 12),
        tokens_per_event=st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple),
        role_ms=st.none() | st.integers(0, 60),
        keep_alive_ms=st.none() | st.integers(3, 30),
        coalesce=st.integers(1, 4),
        split=st.integers(1, 4),
        split_ms=st.integers(0, 20),
        usage=st.sampled_from(UsageLayout),
        line_end=st.sampled_from(LineEnd),
        reasoning_events=st.integers(0, 3),
        text=st.sampled_from([" tok", "語", '"\\\n']),
    ),
    st.booleans(),
)
def test_any_shape_carries_the_same_answer_in_order(script, chat):
    """Whatever the shape of the writes, offsets never go back and the text is whole; tokens and counts agree."""
    asked = replace(CHAT, chat=chat)
    offsets = [write.offset_ns for write in stream(script, asked)]
    assert offsets == sorted(offsets)
    assert sum(tokens for _, _, tokens in timeline(script, asked)) == script.tokens
    choices = [event["choices"][0] for event in events(script, asked) if event["choices"]]
    parts = [choice["delta"] if chat else choice for choice in choices]
    keys = ("reasoning", "content", "text")
    assert "".join(part.get(key, "") for part in parts for key in keys) == script.text * script.tokens
    assert choices[-1]["finish_reason"] == "length"
    counts = [event["usage"]["completion_tokens"] for event in events(script, asked) if event.get("usage")]
    assert counts == sorted(counts)
    assert not counts or counts[-1] == script.tokens
    assert bool(counts) == (script.usage is not UsageLayout.NONE)


@pytest.mark.parametrize(
    ("line_end", "blank"), [(LineEnd.LF, b"\n\n"), (LineEnd.CRLF, b"\r\n\r\n"), (LineEnd.CR, b"\r\r")]
)
def test_line_ends_are_as_asked(line_end, blank):
    """Every event ends as the script says, the end marker too."""
    data = body(Script(line_end=line_end))
    assert data.count(blank) == 8
    assert data.endswith(b"data: [DONE]" + blank)


def test_a_role_and_keep_alives_come_before_any_token():
    """A role-only chunk and comments have their own times and complete no content."""
    writes = list(stream(Script(ttft_ms=100, role_ms=20, keep_alive_ms=30, tokens=1), CHAT))
    assert [(w.offset_ns / MS, w.events) for w in writes[:5]] == [(20, 0), (30, 0), (60, 0), (90, 0), (100, 1)]
    assert b'"role":"assistant"' in writes[0].data
    assert writes[1].data == b": keep-alive\n\n"


def test_reasoning_comes_first_under_its_own_name():
    """The first events are reasoning, the others content."""
    deltas = [event["choices"][0]["delta"] for event in events(Script(reasoning_events=2)) if event["choices"]]
    assert [next(iter(delta)) for delta in deltas] == ["reasoning"] * 2 + ["content"] * 4


@pytest.mark.parametrize(
    ("layout", "where"),
    [
        (UsageLayout.NONE, []),
        (UsageLayout.FINAL, [6]),
        (UsageLayout.WITH_LAST, [5]),
        (UsageLayout.CONTINUOUS, [0, 1, 2, 3, 4, 5, 6]),
        (UsageLayout.ASKED, [6]),
    ],
)
def test_usage_stands_where_the_layout_says(layout, where):
    """Which events carry counts is the layout's choice."""
    assert [i for i, event in enumerate(events(Script(usage=layout))) if event.get("usage")] == where


def test_token_ids_number_the_tokens_when_asked_for():
    """`return_token_ids` gives each event the numbers of its tokens, and only then."""
    asked = replace(CHAT, token_ids=True)
    found = [e["choices"][0]["token_ids"] for e in events(Script(tokens_per_event=(1, 2)), asked) if e["choices"]]
    assert found == [[0], [1, 2], [3], [4, 5]]
    assert all("token_ids" not in event["choices"][0] for event in events(Script()) if event["choices"])


def test_faults_end_the_stream_as_named():
    """Each fault leaves its own last words after the events that it lets through."""
    for fault in (Fault.TRUNCATED, Fault.RESET, Fault.STALL, Fault.NO_FINISH):
        found = events(Script(fault=fault, after_events=2))
        assert [event["choices"][0]["finish_reason"] for event in found] == [None, None]
        assert b"[DONE]" not in body(Script(fault=fault))
    found = events(Script(fault=Fault.ERROR_EVENT, after_events=1))
    assert [list(event)[0] for event in found] == ["id", "error"]  # noqa: RUF015
    empty = events(Script(fault=Fault.EMPTY))
    assert empty[0]["choices"][0]["finish_reason"] == "stop"
    assert empty[1]["usage"]["completion_tokens"] == 0


def test_a_body_that_is_not_streamed_is_due_with_the_last_token():
    """One JSON body comes at the time at which the stream would have ended, with the whole text and its counts."""
    due_ns, data = unary(Script(ttft_ms=10, gap_ms=5, tokens_per_event=(2,)), CHAT)
    answer = json.loads(data)
    assert due_ns == 20 * MS
    assert answer["choices"][0]["message"]["content"] == " tok" * 6
    assert answer["usage"] == {"prompt_tokens": 3, "total_tokens": 9, "completion_tokens": 6}


def test_a_request_is_read_with_its_own_script():
    """Limits, usage and token ids come from OpenAI's fields; `truth` changes the script for this request alone."""
    request = {
        "messages": [{"role": "user", "content": "one two"}, {"role": "user", "content": [{"text": "three"}]}],
        "stream": True,
        "max_completion_tokens": 9,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "return_token_ids": True,
        "truth": {"ttft_ms": 1, "fault": "stall", "tokens_per_event": [1, 4]},
    }
    asked, script = read_request(
        json.dumps(request).encode(), chat=True, model="m", request_id="r", script=Script(gap_ms=3)
    )
    assert (asked.max_tokens, asked.input_tokens) == (9, 3)
    assert asked.include_usage
    assert asked.continuous_usage
    assert asked.token_ids
    assert script == Script(gap_ms=3, ttft_ms=1, fault=Fault.STALL, tokens_per_event=(1, 4))


def test_a_prompt_of_token_ids_counts_its_ids():
    """An array of numbers as a prompt is that many tokens; explicit nulls are absent."""
    request = b'{"prompt": [5, 6, 7, 8], "max_tokens": null, "stream_options": null, "truth": null}'
    asked, script = read_request(request, chat=False, model="m", request_id="r", script=Script())
    assert asked.input_tokens == 4
    assert asked.max_tokens is None
    assert script == Script()


@pytest.mark.parametrize(
    ("request_body", "expected"),
    [
        (b"[]", "expected a JSON object"),
        (b"{", "expected a JSON object"),
        (b'{"max_tokens": 0.5}', "max_tokens"),
        (b'{"truth": {"ttft": 5}}', "unknown field 'ttft'; expected one of .*ttft_ms"),
        (b'{"truth": {"ttft_ms": "soon"}}', "ttft_ms"),
        (b'{"truth": {"ttft_ms": -1}}', "ttft_ms: expected 0 or more"),
        (b'{"truth": {"tokens_per_event": []}}', "tokens_per_event"),
        (b'{"truth": {"fault": "explode"}}', "explode"),
        (b'{"truth": {"keep_alive_ms": 0}}', "keep_alive_ms"),
        (b'{"truth": {"tokens": 0}}', "tokens: expected 1 or more"),
    ],
)
def test_a_wrong_script_is_named(request_body, expected):
    """A request that cannot be followed is refused with the field and what was expected."""
    with pytest.raises(ConfigError, match=expected):
        read_request(request_body, chat=True, model="m", request_id="r", script=Script())
