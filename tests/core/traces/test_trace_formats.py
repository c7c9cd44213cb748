"""One row of each public format. Rows are made by hand after the formats' descriptions."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.core.request import Messages
from loadgen.core.traces.azure import AzureParser, stamp_ns
from loadgen.core.traces.bailian import BailianParser
from loadgen.core.traces.burstgpt import BurstGptParser
from loadgen.core.traces.mooncake import MooncakeParser
from loadgen.core.traces.row import BadRow, Reason, Row, RowParser
from loadgen.core.traces.sharegpt import ShareGptParser

AZURE = b"TIMESTAMP,ContextTokens,GeneratedTokens"
BURST_1 = b"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"
BURST_3 = b"Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type"


def row_of(parser: RowParser, data: bytes) -> Row:
    row = parser.parse(data)
    assert isinstance(row, Row)
    return row


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def refused(parser: RowParser, data: bytes) -> BadRow:
    with pytest.raises(BadRow) as caught:
        parser.parse(data)
    return caught.value


# Azure


@pytest.mark.parametrize(
    ("text", "fraction_ns"),
    [
        ("2024-05-10 09:41:27.0030000", 3_000_000),
        ("2024-05-10 09:41:27.0030001", 3_000_100),
        ("2024-05-10 09:41:27.003000+00:00", 3_000_000),
        ("2024-05-10 09:41:27+00:00", 0),
        ("2024-05-10T09:41:27.003Z", 3_000_000),
        ("2024-05-10 09:41:27", 0),
        ("2024-05-10 11:41:27.003+02:00", 3_000_000),
        ("2024-05-10 04:11:27.003-0530", 3_000_000),
        ("2024-05-10 09:41:27.123456789", 123_456_789),
    ],
)
def test_azure_times_in_every_form_keep_their_fraction(text: str, fraction_ns: int) -> None:
    """Six, seven or no fraction digits, T or space, Z or offset: all the same instant, to the digit given."""
    second = int(datetime(2024, 5, 10, 9, 41, 27, tzinfo=UTC).timestamp())
    assert stamp_ns(text) == second * 10**9 + fraction_ns


def test_azure_arrivals_a_few_ms_apart_stay_apart() -> None:
    """Gaps of 1, 4 and 9 ms are kept, not rounded to 10 ms."""
    stamps = [stamp_ns(f"2024-05-10 09:41:27.{digits}") for digits in ("0030000", "0040000", "0080000", "0170000")]
    assert [stamp - stamps[0] for stamp in stamps if stamp and stamps[0]] == [0, 1_000_000, 5_000_000, 14_000_000]


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1)))  # noqa: DTZ001  no zone is the case
def test_azure_times_agree_with_the_calendar(moment: datetime) -> None:
    """Any date and time gives what the standard library counts."""
    since = moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    expected = (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1_000
    assert stamp_ns(moment.isoformat(sep=" ")) == expected


@pytest.mark.parametrize(
    "text",
    ["2024-05-10", "10/05/2024 09:41:27", "2024-02-30 00:00:00", "2024-05-10 25:00:00", "12.5", "1969-01-01 00:00:00"],
)
def test_azure_what_is_no_time_is_refused_by_field(text: str) -> None:
    """The error names the column and shows what is expected."""
    bad = refused(AzureParser(AZURE), f"{text},1,2".encode())
    assert (bad.field, bad.reason) == ("TIMESTAMP", Reason.BAD_VALUE)
    assert "2023-11-16 18:15:46.6805900" in bad.message


def test_azure_columns_are_found_by_name() -> None:
    """A fourth column in the middle changes nothing."""
    row = row_of(
        AzureParser(b"TIMESTAMP,NumImages,ContextTokens,GeneratedTokens"), b"2024-10-15T12:00:05.819Z,1,949,126"
    )
    assert (row.turns[0].input_tokens, row.turns[0].output_tokens) == (949, 126)


def test_azure_a_missing_column_is_named() -> None:
    """The error says which column is missing and which are there."""
    with pytest.raises(BadRow, match="ContextTokens") as caught:
        AzureParser(b"TIMESTAMP,Context,GeneratedTokens")
    assert "TIMESTAMP, Context, GeneratedTokens" in caught.value.message


@pytest.mark.parametrize(
    ("data", "field", "reason"),
    [
        (b"2024-05-10 09:41:27,12", None, Reason.COLUMNS),
        (b"2024-05-10 09:41:27,12,13,14", None, Reason.COLUMNS),
        (b"2024-05-10 09:41:27,,13", "ContextTokens", Reason.MISSING_FIELD),
        (b"2024-05-10 09:41:27,12,x", "GeneratedTokens", Reason.BAD_VALUE),
        (b"2024-05-10 09:41:27,12.5,3", "ContextTokens", Reason.BAD_VALUE),
        (b"2024-05-10 09:41:27,-1,3", "ContextTokens", Reason.BAD_VALUE),
        (b"2024-05-10 09:41:27,nan,3", "ContextTokens", Reason.BAD_VALUE),
        (b"2024-05-10 09:41:27,1_0,3", "ContextTokens", Reason.BAD_VALUE),
        ("2024-05-10 09:41:27,\u0661,3".encode(), "ContextTokens", Reason.BAD_VALUE),
        (b"2024-05-10 09:41:27,99999999999,3", "ContextTokens", Reason.BAD_VALUE),
        (b"2024-05-10 09:41:27,\xff,3", None, Reason.COLUMNS),
        (b'2024-05-10 09:41:27,"12,3', None, Reason.COLUMNS),
        (AZURE, "TIMESTAMP", Reason.BAD_VALUE),
    ],
)
def test_azure_bad_cells_are_refused_by_field(data: bytes, field: str | None, reason: Reason) -> None:
    """Each kind of broken row has its reason; a second header is a broken row."""
    bad = refused(AzureParser(AZURE), data)
    assert (bad.field, bad.reason) == (field, reason)


def test_azure_quoted_cells_and_whole_numbers_with_a_point_are_read() -> None:
    """`"374.0"` is 374."""
    assert row_of(AzureParser(AZURE), b'"2024-05-10 09:41:27","374.0",2').turns[0].input_tokens == 374


def test_azure_an_empty_time_is_absent_not_zero() -> None:
    """A missing time stamp stays missing."""
    assert row_of(AzureParser(AZURE), b",1,2").time_ns is None


@pytest.mark.parametrize("data", [b"2024-05-10 09:41:27,0,3", b"2024-05-10 09:41:27,3,0"])
def test_azure_zero_tokens_are_left_out(data: bytes) -> None:
    """A row that cannot be sent is no bad row."""
    assert AzureParser(AZURE).parse(data) is Reason.ZERO_TOKENS


# BurstGPT


def test_burstgpt_without_sessions() -> None:
    """The first column set: whole seconds, no session, no elapsed time."""
    row = row_of(BurstGptParser(BURST_1), b"45,ChatGPT,1087,230,1317,Conversation log")
    assert (row.time_ns, row.session, row.elapsed_ns, row.category) == (45 * 10**9, None, None, "Conversation log")
    assert (row.turns[0].input_tokens, row.turns[0].output_tokens) == (1087, 230)


def test_burstgpt_with_sessions() -> None:
    """The second column set: two more columns in the middle, times with `.0`."""
    row = row_of(BurstGptParser(BURST_3), b"19440110.0,a-b,43,GPT-4,906,446,1352,Conversation log")
    assert (row.time_ns, row.session, row.elapsed_ns) == (19_440_110 * 10**9, "a-b", 43 * 10**9)


def test_burstgpt_an_empty_session_is_none() -> None:
    """API rows stand alone, not in a session named nothing."""
    assert row_of(BurstGptParser(BURST_3), b"19440110.0,,,GPT-4,906,446,1352,API log").session is None


@pytest.mark.parametrize("data", [b"5,ChatGPT,120,0,120,API log", b"5,ChatGPT,0,0,0,API log"])
def test_burstgpt_failed_requests_are_left_out(data: bytes) -> None:
    """Zero tokens mark the recorded service's failures."""
    assert BurstGptParser(BURST_1).parse(data) is Reason.ZERO_TOKENS


@pytest.mark.parametrize("stamp", [b"-5", b"nan", b"inf", b"1e30", b"soon", b"1_0"])
def test_burstgpt_what_is_no_time_is_refused(stamp: bytes) -> None:
    """Seconds from zero, or an error that names the field."""
    assert refused(BurstGptParser(BURST_1), stamp + b",ChatGPT,1,1,2,API log").field == "Timestamp"


# Mooncake and Bailian


def test_mooncake_times_are_milliseconds_and_blocks_hold_512_tokens() -> None:
    """41350 is 41.35 s; the last block is partial."""
    row = row_of(MooncakeParser(), line(timestamp=41_350, input_length=1025, output_length=5, hash_ids=[0, 1, 2]))
    turn = row.turns[0]
    assert (row.time_ns, turn.input_tokens, turn.output_tokens) == (41_350_000_000, 1025, 5)
    assert (turn.blocks, turn.block_tokens) == ((0, 1, 2), 512)


def test_bailian_times_are_seconds_and_blocks_hold_16_tokens() -> None:
    """61.114 is 61.114 s; the row names its parent; -1 is none."""
    fields: dict[str, Any] = {
        "chat_id": 159,
        "timestamp": 61.114,
        "input_length": 33,
        "output_length": 132,
        "type": "text",
        "turn": 2,
        "hash_ids": [8, 9, 7],
    }
    row = row_of(BailianParser(), line(parent_chat_id=55, **fields))
    assert (row.time_ns, row.session, row.parent, row.turn) == (61_114_000_000, "159", "55", 2)
    assert (row.turns[0].blocks, row.turns[0].block_tokens, row.category) == ((8, 9, 7), 16, "text")
    assert row_of(BailianParser(), line(parent_chat_id=-1, **fields)).parent is None


@pytest.mark.parametrize(
    ("blocks", "tokens", "fits"),
    [(1, 1, True), (1, 512, True), (1, 513, False), (2, 512, False), (2, 513, True), (2, 1024, True), (3, 300, False)],
)
def test_mooncake_blocks_must_hold_the_input(blocks: int, tokens: int, fits: bool) -> None:
    """(k - 1) 512 < input <= k 512, or the row is refused by field with what the blocks would hold."""
    data = line(timestamp=0, input_length=tokens, output_length=1, hash_ids=list(range(blocks)))
    if fits:
        assert row_of(MooncakeParser(), data).turns[0].blocks == tuple(range(blocks))
    else:
        bad = refused(MooncakeParser(), data)
        assert (bad.field, bad.reason) == ("hash_ids", Reason.BLOCKS)
        assert f"{blocks} blocks of 512" in bad.message
        assert str(tokens) in bad.message


@pytest.mark.parametrize(
    ("data", "reason", "field"),
    [
        (b"true", Reason.NOT_AN_OBJECT, None),
        (b'"a string"', Reason.NOT_AN_OBJECT, None),
        (b"[1]", Reason.NOT_AN_OBJECT, None),
        (b"null", Reason.NOT_AN_OBJECT, None),
        (b'{"timestamp": 1,', Reason.NOT_JSON, None),
        (b'{"input_length": 1, "output_length": 1} x', Reason.NOT_JSON, None),
        (b'{"timestamp": NaN, "input_length": 1, "output_length": 1}', Reason.NOT_JSON, None),
        (line(timestamp=1, input_length=1), Reason.MISSING_FIELD, "output_length"),
        (line(timestamp=1, input_length="1", output_length=1), Reason.BAD_VALUE, "input_length"),
        (line(timestamp=1, input_length=True, output_length=1), Reason.BAD_VALUE, "input_length"),
        (line(timestamp=1, input_length=1.5, output_length=1), Reason.BAD_VALUE, "input_length"),
        (line(timestamp=1, input_length=-1, output_length=1), Reason.BAD_VALUE, "input_length"),
        (line(timestamp="1", input_length=1, output_length=1), Reason.BAD_VALUE, "timestamp"),
        (line(timestamp=-1, input_length=1, output_length=1), Reason.BAD_VALUE, "timestamp"),
        (line(timestamp=1e300, input_length=1, output_length=1), Reason.BAD_VALUE, "timestamp"),
        (line(timestamp=1, input_length=1, output_length=1, hash_ids=["a"]), Reason.BAD_VALUE, "hash_ids[0]"),
    ],
)
def test_broken_json_rows_are_refused_by_field(data: bytes, reason: Reason, field: str | None) -> None:
    """Each kind of broken row has its reason and, where there is one, its field."""
    bad = refused(MooncakeParser(), data)
    assert (bad.reason, bad.field) == (reason, field)


def test_a_missing_or_null_time_is_absent_not_zero() -> None:
    """Without a time stamp the row has no time."""
    for fields in ({}, {"timestamp": None}):
        assert row_of(MooncakeParser(), line(input_length=1, output_length=1, **fields)).time_ns is None


# ShareGPT


def said(*speakers: str) -> bytes:
    return line(id="x", conversations=[{"from": who, "value": f"{who} {i}"} for i, who in enumerate(speakers)])


def test_sharegpt_every_turn_is_used() -> None:
    """Six messages are three turns, each with its answer; later ones go on from it."""
    row = row_of(ShareGptParser(), said("human", "gpt", "human", "gpt", "human", "gpt"))
    assert [turn.prompt for turn in row.turns] == [
        Messages(messages=({"role": "user", "content": f"human {place}"},)) for place in (0, 2, 4)
    ]
    assert [turn.answer for turn in row.turns] == ["gpt 1", "gpt 3", "gpt 5"]
    assert [turn.continues_answers for turn in row.turns] == [False, True, True]


def test_sharegpt_a_system_message_goes_before_the_first_turn() -> None:
    """It is part of the first prompt; an open question at the end has no answer."""
    row = row_of(ShareGptParser(), said("system", "user", "assistant", "user"))
    first = row.turns[0].prompt
    assert isinstance(first, Messages)
    assert [message["role"] for message in first.messages] == ["system", "user"]
    assert row.turns[-1].answer is None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (said(), Reason.NO_TURNS),
        (said("system"), Reason.NO_TURNS),
        (said("gpt", "human"), Reason.BEGINS_WITH_ANSWER),
        (said("human", "human"), Reason.NOT_ALTERNATING),
        (said("human", "gpt", "gpt"), Reason.NOT_ALTERNATING),
    ],
)
def test_sharegpt_known_traits_are_left_out(data: bytes, reason: Reason) -> None:
    """Empty, split and non-alternating conversations are counted, not sent."""
    assert ShareGptParser().parse(data) is reason


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (said("human", "robot"), "conversations[1].from"),
        (said("human", "system"), "conversations[1].from"),
        (line(conversations=[{"from": "human"}]), "conversations[0].value"),
        (line(conversations=[{"from": "human", "value": 1}]), "conversations[0].value"),
        (line(id="x"), "conversations"),
        (b'{"conversations": [{"from": "human", "value": "\xff"}]}', None),
        (b'{"conversations": [{"from": "human", "value": "\\ud800"}]}', None),
    ],
)
def test_sharegpt_bad_messages_are_refused_by_field(data: bytes, field: str | None) -> None:
    """The place in the conversation is named; text that is no Unicode makes the row no JSON."""
    assert refused(ShareGptParser(), data).field == field
