"""Opening data files: encodings, compressions, bad rows, changes, what is no data."""

import gzip
import json
import os
import threading
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import zstandard

from loadgen.adapters.trace_files import TraceSource, open_trace, save_native
from loadgen.adapters.trace_files.content import Content
from loadgen.core.errors import ConfigError, DataError, TraceFormatError
from loadgen.core.request import Messages, Text
from loadgen.core.traces.part import Part
from loadgen.core.traces.texts import InventedText

AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    "2023-11-16 18:15:46.6805900,374,44\r\n"
    "2023-11-16 18:15:50.9951690,396,109\r\n"
    "2023-11-16 18:15:51.2224670,879,55"
)


def save(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def texts_of(source: TraceSource) -> list[str]:
    return [t.prompt.text for one in source.conversations() for t in one.turns if isinstance(t.prompt, Text)]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_crlf_a_byte_order_mark_and_no_final_newline(tmp_path: Path, mark: bytes) -> None:
    """The last column has no carriage return in its name, the first no mark, the last row is there."""
    path = tmp_path / "azure.csv"
    path.write_bytes(mark + AZURE.encode())
    with open_trace(path, texts=InventedText(seed=0)) as source:
        assert (source.facts.rows, source.facts.output_tokens) == (3, 208)
        turns = [one.turns[0] for one in source.conversations()]
    assert [(turn.input_tokens, turn.source_line) for turn in turns] == [(374, 2), (396, 3), (879, 4)]
    assert [turn.offset_ns for turn in turns] == [0, 4_314_579_000, 4_541_877_000]


def compressed(kind: str, data: bytes) -> bytes:
    half = len(data) // 2
    match kind:
        case "gzip":
            return gzip.compress(data)
        case "gzip members":
            return gzip.compress(data[:half]) + gzip.compress(data[half:])
        case "zstd":
            return zstandard.compress(data)
        case "zstd frames":
            return zstandard.compress(data[:half]) + zstandard.compress(data[half:])
    return data


@pytest.mark.parametrize("kind", ["plain", "gzip", "gzip members", "zstd", "zstd frames"])
def test_compressed_files_are_read_by_their_content(tmp_path: Path, kind: str) -> None:
    """Whatever the name says; several members are one file; the digest is of the file as it lies there."""
    data = compressed(kind, "".join(json.dumps({"prompt": f"p{n}"}) + "\n" for n in range(5_000)).encode())
    path = tmp_path / "prompts.data"
    path.write_bytes(data)
    with open_trace(path) as source:
        assert source.facts.used == 5_000
        assert (source.facts.sha256, source.facts.size_bytes) == (sha256(data).hexdigest(), len(data))
        assert texts_of(source) == [f"p{n}" for n in range(5_000)]


@pytest.mark.parametrize("kind", ["gzip", "gzip members", "zstd", "zstd frames"])
@pytest.mark.parametrize("damage", ["cut", "broken"])
def test_damaged_compressed_files_are_refused(tmp_path: Path, kind: str, damage: str) -> None:
    """A download that stopped half way is not a shorter trace."""
    data = compressed(kind, os.urandom(300_000).hex().encode())
    data = data[:-50_000] if damage == "cut" else data[:-50_000] + b"x" * 40_000 + data[-10_000:]
    path = tmp_path / "trace.gz"
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"compressed data is (cut short|broken)"):
        open_trace(path)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 5\n", "Git LFS pointer"),
        (b"<!doctype html>\n<title>Redirecting</title>", "web page"),
        (b"TIMESTAMP,ContextTokens,GeneratedTokens\r\n", "no usable row in 0"),
        (b'{"input_tokens": 0}\n', "no usable row in 1 \\(zero_tokens: 1\\)"),
        (b"[]", "no complete JSON object"),
        (b"\xfd7zXZ\0\0\4", "compressed in a way"),
        (gzip.compress(b""), "is empty"),
        (gzip.compress(b"<html>"), "web page"),
    ],
)
def test_what_is_no_data_is_refused_with_its_name(tmp_path: Path, content: bytes, what: str) -> None:
    """One clear line each, with the file's name."""
    path = tmp_path / "trace.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=what) as caught:
        open_trace(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    """The message says why."""
    with pytest.raises(DataError, match="No such file"):
        open_trace(tmp_path / "none.csv")
    with pytest.raises(DataError, match="cannot be read"):
        open_trace(tmp_path)


def test_an_unknown_format_name_lists_the_known_ones(tmp_path: Path) -> None:
    """Before the file is touched."""
    with pytest.raises(ConfigError, match="auto, azure, mooncake, burstgpt, bailian, sharegpt, native"):
        open_trace(tmp_path / "none", format="csv")


BAD_ROWS = [
    ("true", "not_an_object"),
    ('"a string"', "not_an_object"),
    ('{"prompt": "x",', "not_json"),
    ('{"messages": [{"role": "user"}]}', "bad_value"),
    ('{"question_text": "x"}', "missing_field"),
]


def with_bad_rows(path: Path) -> Path:
    """Good, blank, five bad ones, good: bad rows on lines 3 to 7."""
    path.write_text("\n".join(['{"prompt": "good"}', "", *(row for row, _ in BAD_ROWS), '{"prompt": "last"}']))
    return path


def test_a_bad_row_stops_with_file_line_and_expectation(tmp_path: Path) -> None:
    """By default; the line is the physical one, blank lines counted."""
    path = with_bad_rows(tmp_path / "prompts.jsonl")
    with pytest.raises(TraceFormatError, match="expected `object`, got `bool`") as caught:
        open_trace(path)
    assert (caught.value.path, caught.value.line) == (str(path), 3)
    assert str(caught.value).startswith(f"{path}:3: ")


@pytest.mark.parametrize(("place", "row"), list(enumerate(BAD_ROWS)))
def test_each_kind_of_bad_row_stops(tmp_path: Path, place: int, row: tuple[str, str]) -> None:
    """None is taken for a prompt."""
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"prompt": "good"}\n' * (place + 1) + row[0] + "\n")
    with pytest.raises(TraceFormatError) as caught:
        open_trace(path)
    assert caught.value.line == place + 2


def test_skipped_bad_rows_are_counted_by_reason(tmp_path: Path) -> None:
    """rows = used + dropped; the first of each reason is told with its line; blank lines are no rows."""
    with open_trace(with_bad_rows(tmp_path / "prompts.jsonl"), on_bad_row="skip") as source:
        facts = source.facts
        assert texts_of(source) == ["good", "last"]
    assert (facts.rows, facts.used) == (7, 2)
    assert facts.dropped == {"not_an_object": 2, "not_json": 1, "bad_value": 1, "missing_field": 1}
    assert ":6: field 'messages[0].content'" in facts.first_dropped["bad_value"]
    assert "1 blank lines" in facts.notes


def test_a_file_without_one_usable_row_is_an_error_when_skipping_too(tmp_path: Path) -> None:
    """Not an endless search and not an empty run."""
    path = save(tmp_path / "x.jsonl", *[{"prompt": 5}] * 3)
    with pytest.raises(DataError, match=r"no usable row in 3 \(bad_value: 3\)"):
        open_trace(path, on_bad_row="skip")


def test_inconsistent_blocks_stop_with_their_line(tmp_path: Path) -> None:
    """3 blocks of 512 cannot hold 300 tokens."""
    good = {"timestamp": 0, "input_length": 600, "output_length": 1, "hash_ids": [7, 8]}
    path = save(tmp_path / "m.jsonl", good, {**good, "input_length": 300, "hash_ids": [7, 8, 9]})
    with pytest.raises(TraceFormatError, match=r"3 blocks of 512 tokens hold 1025 to 1536 tokens.*300") as caught:
        open_trace(path)
    assert (caught.value.line, caught.value.field) == (2, "hash_ids")


def test_a_bailian_file_named_mooncake_does_not_pass(tmp_path: Path) -> None:
    """Blocks of 16 read as blocks of 512 do not hold the input."""
    row = {"chat_id": 1, "parent_chat_id": -1, "timestamp": 0.5, "input_length": 33, "output_length": 1}
    path = save(tmp_path / "b.jsonl", {**row, "hash_ids": [1, 2, 3], "type": "text", "turn": 1})
    with open_trace(path) as source:
        assert source.facts.format == "bailian"
    with pytest.raises(TraceFormatError, match="3 blocks of 512"):
        open_trace(path, format="mooncake")


def test_bailian_chats_are_conversations_with_shared_blocks(tmp_path: Path) -> None:
    """Made rows: a chat of three turns between others; each turn's prompt begins with the one before."""

    def row(chat: int, parent: int, at: float, turn: int, blocks: list[int]) -> dict[str, Any]:
        fields = {"chat_id": chat, "parent_chat_id": parent, "timestamp": at, "type": "text", "turn": turn}
        return {**fields, "input_length": 16 * len(blocks), "output_length": 9, "hash_ids": blocks}

    path = save(
        tmp_path / "b.jsonl",
        row(1, -1, 0.25, 1, [1, 2]),
        row(2, -1, 0.5, 1, [9]),
        row(3, 1, 61.114, 2, [1, 2, 3]),
        row(4, 3, 80.0, 3, [1, 2, 3, 4]),
    )
    with open_trace(path, texts=InventedText(seed=1)) as source:
        chat, other = source.conversations()
    assert (chat.session_id, chat.category, other.session_id) == ("1", "text", "2")
    assert [turn.offset_ns for turn in chat.turns] == [0, 60_864_000_000, 79_750_000_000]
    prompts = [turn.prompt.text for turn in chat.turns if isinstance(turn.prompt, Text)]
    assert prompts[2].startswith(prompts[1] + " ")
    assert prompts[1].startswith(prompts[0] + " ")


@pytest.mark.parametrize(
    "rows", [({"prompt": "a"}, {"prompt": "b"}), ({"prompt": "a", "timestamp": 1}, {"prompt": "b"})]
)
def test_a_missing_time_is_an_error_when_times_are_needed(tmp_path: Path, rows: tuple[dict[str, Any], ...]) -> None:
    """The first row without one is named; without a need for times it is no fault, and never 0."""
    path = save(tmp_path / "x.jsonl", *rows)
    with pytest.raises(TraceFormatError, match="replay needs it in every row") as caught:
        open_trace(path, need_times=True)
    assert (caught.value.field, caught.value.line) == ("timestamp", 1 if "timestamp" not in rows[0] else 2)
    with open_trace(path) as source:
        assert source.facts.span_s is None
        assert [one.turns[0].offset_ns for one in source.conversations()] == [None, None]


def test_skipping_rows_without_a_time(tmp_path: Path) -> None:
    """Counted as such."""
    path = save(tmp_path / "x.jsonl", {"prompt": "a", "timestamp": 1}, {"prompt": "b"}, {"prompt": "c", "timestamp": 3})
    with open_trace(path, need_times=True, on_bad_row="skip") as source:
        assert (source.facts.dropped, source.facts.span_s) == ({"no_time": 1}, 2.0)


SHAREGPT = [
    {"id": "a", "conversations": [{"from": "human", "value": "1"}, {"from": "gpt", "value": "2"}] * 3},
    {"id": "b", "conversations": []},
    {"id": "c", "conversations": [{"from": "gpt", "value": "x"}, {"from": "human", "value": "y"}]},
    {"id": "d", "conversations": [{"from": "human", "value": "}],[{"}]},
]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_sharegpt_array_is_read_element_by_element(tmp_path: Path, indent: int | None) -> None:
    """Pretty-printed or not: every turn of every usable conversation, and the line where each begins."""
    path = tmp_path / "sharegpt.json"
    path.write_text(json.dumps(SHAREGPT, indent=indent))
    with open_trace(path) as source:
        facts, conversations = source.facts, list(source.conversations())
    assert (facts.format, facts.rows, facts.used, facts.requests) == ("sharegpt", 4, 2, 4)
    assert facts.dropped == {"no_turns": 1, "begins_with_answer": 1}
    assert [len(one.turns) for one in conversations] == [3, 1]
    text = path.read_text()
    where = text.index('"d"')
    assert conversations[1].turns[0].source_line == text.count("\n", 0, text.rindex("{", 0, where)) + 1


def test_a_cut_sharegpt_array_is_refused(tmp_path: Path) -> None:
    """Also when bad rows are skipped: the rest of the file is unknown."""
    path = tmp_path / "sharegpt.json"
    path.write_text(json.dumps(SHAREGPT, indent=1)[:-40])
    with pytest.raises(TraceFormatError, match="cut short"):
        open_trace(path, on_bad_row="skip")


def test_recorded_answers_as_history(tmp_path: Path) -> None:
    """The third turn carries the two exchanges before it."""
    path = tmp_path / "sharegpt.json"
    path.write_text(json.dumps(SHAREGPT))
    with open_trace(path, history="recorded") as source:
        last = next(source.conversations()).turns[2].prompt
    assert isinstance(last, Messages)
    assert [m["content"] for m in last.messages] == ["1", "2", "1", "2", "1"]


def test_a_file_that_changes_is_noticed(tmp_path: Path) -> None:
    """Rows are read again when they are due: a file written to meanwhile is an error, not other prompts."""
    path = save(tmp_path / "x.jsonl", {"prompt": "a"}, {"prompt": "b"})
    source = open_trace(path)
    assert texts_of(source) == ["a", "b"]
    with path.open("a") as file:
        file.write("more\n")
    with pytest.raises(DataError, match="was changed while it was in use"):
        next(source.conversations())
    source.close()


def test_a_file_that_is_replaced_stays_what_it_was(tmp_path: Path) -> None:
    """The open file is read, whatever takes its name."""
    path = save(tmp_path / "x.jsonl", {"prompt": "a"})
    with open_trace(path) as source:
        save(tmp_path / "y.jsonl", {"prompt": "b"}).replace(path)
        assert texts_of(source) == ["a"]


def test_a_pipe_is_read_too(tmp_path: Path) -> None:
    """`<(zcat …)` has no size and no way back."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=('{"prompt": "a"}\n{"prompt": "b"}\n',))
    writer.start()
    with open_trace(pipe) as source:
        assert texts_of(source) == ["a", "b"]
        assert source.facts.size_bytes == 32
    writer.join(10)


def open_files() -> int:
    """Descriptors of this process; 0 where the system does not tell."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


def test_nothing_stays_open(tmp_path: Path) -> None:
    """Fifty files opened, also broken ones, leave no descriptor and no temporary file."""
    good = save(tmp_path / "x.jsonl", {"prompt": "a"})
    packed = tmp_path / "x.jsonl.gz"
    packed.write_bytes(gzip.compress(good.read_bytes()))
    bad = save(tmp_path / "bad.jsonl", {"prompt": 1})
    before = open_files()
    for _ in range(50):
        for path in (good, packed):
            open_trace(path).close()
        with pytest.raises(DataError):
            open_trace(bad)
    assert open_files() == before


def test_a_part_of_a_file_is_a_source(tmp_path: Path) -> None:
    """Facts are of the part; what was asked for is recorded; the whole stays as it was."""
    path = save(tmp_path / "x.jsonl", *({"prompt": f"p{n}", "timestamp": 300 + n} for n in range(10)))
    with open_trace(path) as source:
        part = source.part(Part(from_s=2, to_s=6, speed=2))
        assert texts_of(part) == ["p2", "p3", "p4", "p5"]
        assert [one.turns[0].offset_ns for one in part.conversations()] == [0, 500_000_000, 10**9, 1_500_000_000]
        assert (part.facts.rows, part.facts.used, part.facts.dropped) == (10, 4, {"outside_window": 6})
        assert part.facts.part is not None
        assert (part.facts.part["from_s"], part.facts.part["speed"]) == (2, 2)
        assert (source.facts.used, source.facts.part) == (10, None)
        with pytest.raises(DataError, match="chosen part holds no row"):
            source.part(Part(from_s=100))


def test_progress_is_told_from_start_to_end(tmp_path: Path) -> None:
    """Bytes done never go back and end at the size."""
    path = save(tmp_path / "x.jsonl", *[{"prompt": "p"}] * 10_000)
    seen: list[tuple[int, int]] = []
    with open_trace(path, progress=lambda done, total: seen.append((done, total))):
        pass
    size = path.stat().st_size
    assert seen == sorted(seen)
    assert len(seen) > 3
    assert seen[-1] == (size, size)
    assert {total for _, total in seen} == {size}


def test_a_native_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    """A conversion that fails leaves nothing behind, and what was there before stays."""
    source_path = save(tmp_path / "x.jsonl", {"prompt": "a"}, {"prompt": "b"})
    target = tmp_path / "out.jsonl"
    target.write_text("before")
    with open_trace(source_path) as source:
        with source_path.open("a") as file:
            file.write("more")
        with pytest.raises(DataError, match="changed"):
            save_native(source, target)
    assert target.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.jsonl", "x.jsonl"]


def test_an_unwritable_target_is_an_error(tmp_path: Path) -> None:
    """With its name and the reason."""
    with (
        open_trace(save(tmp_path / "x.jsonl", {"prompt": "a"})) as source,
        pytest.raises(DataError, match="cannot be written: No such file"),
    ):
        save_native(source, tmp_path / "no" / "out.jsonl")


def test_native_lines_are_in_order_of_arrival(tmp_path: Path) -> None:
    """Sessions that overlap are written as they arrived, and read back as they were."""
    rows = [
        {"prompt": "a1", "session_id": "a", "timestamp": 0},
        {"prompt": "b1", "session_id": "b", "timestamp": 1},
        {"prompt": "a2", "session_id": "a", "timestamp": 2, "think_s": 0.5},
        {"prompt": "c", "timestamp": 3},
        {"prompt": "b2", "session_id": "b", "timestamp": 4},
    ]
    with open_trace(save(tmp_path / "x.jsonl", *rows)) as source:
        save_native(source, tmp_path / "out.jsonl")
        written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
        assert [row["timestamp"] for row in written] == [0, 1, 2, 3, 4]
        assert [row.get("turn") for row in written] == [0, 0, 1, None, 1]
        with open_trace(tmp_path / "out.jsonl") as again:
            strip = [
                [(t.prompt, t.offset_ns, t.think_s, t.continues_answers) for t in one.turns]
                for one in again.conversations()
            ]
        assert strip == [
            [(t.prompt, t.offset_ns, t.think_s, t.continues_answers) for t in one.turns]
            for one in source.conversations()
        ]


def test_content_at_a_place_is_what_was_read(tmp_path: Path) -> None:
    """Positions are those of the decompressed content."""
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(b"0123456789"))
    content = Content(path)
    assert (content.at(3, 4), b"".join(content.chunks())) == (b"3456", b"0123456789")
    content.close()


@pytest.mark.parametrize("ending", ["\n", "", '\n{"prompt": "short"}\n'])
def test_one_prompt_longer_than_what_is_looked_at_for_the_format(tmp_path: Path, ending: str) -> None:
    """A first prompt of a megabyte, as for a long context, is a prompt and not a broken file."""
    path = tmp_path / "long.jsonl"
    prompt = "a long document " * 65_536
    path.write_text(json.dumps({"prompt": prompt}) + ending)
    with open_trace(path) as source:
        assert texts_of(source) == [prompt, "short"][: source.facts.rows]


def test_a_first_row_that_never_ends_is_named(tmp_path: Path) -> None:
    """Nothing to tell the format by: said, whatever the length of the file."""
    path = tmp_path / "cut.jsonl"
    for length in (10, 3_000_000):
        path.write_text('{"prompt": "' + "x" * length)
        with pytest.raises(DataError, match="no complete JSON object on its first lines"):
            open_trace(path)
