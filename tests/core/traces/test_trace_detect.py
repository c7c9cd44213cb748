"""A file's format by its content, and what is no data at all."""

import json
from typing import Any

import pytest

from loadgen.core.traces.detect import Format, detect


def lines(*rows: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


MOONCAKE = {"timestamp": 0, "input_length": 3, "output_length": 1, "hash_ids": [0]}
BAILIAN = {**MOONCAKE, "chat_id": 1, "parent_chat_id": -1, "type": "text", "turn": 1}


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"TIMESTAMP,ContextTokens,GeneratedTokens\r\n", Format.AZURE),
        (b"TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n", Format.AZURE),
        (b'"TIMESTAMP","ContextTokens","GeneratedTokens"', Format.AZURE),
        (b"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,", Format.BURSTGPT),
        (b"Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens\n", Format.BURSTGPT),
        (lines(MOONCAKE), Format.MOONCAKE),
        (lines(BAILIAN), Format.BAILIAN),
        (b'[\n  {"id": "a", "conversations": []}', Format.SHAREGPT),
        (b'[{"id": "a", "conversations": []}, {"id": "cut', Format.SHAREGPT),
        (lines({"id": "a", "conversations": []}), Format.SHAREGPT),
        (lines({"prompt": "x"}), Format.PROMPTS),
        (lines({"messages": []}), Format.PROMPTS),
        (lines({"question_id": 1, "turns": ["a", "b"]}), Format.PROMPTS),
        (lines({"prompt": "x", "timestamp": 1}), Format.NATIVE),
        (lines({"body": {}}), Format.NATIVE),
        (lines({"input_tokens": 3}), Format.NATIVE),
        (b'\n\ntrue\n{"cut": \n' + lines(MOONCAKE), Format.MOONCAKE),
    ],
)
def test_each_format_is_told_by_its_columns_and_keys(head: bytes, expected: Format) -> None:
    """Header names or the keys of the first object decide; a bad first row does not hide the format."""
    assert detect(head).format is expected


def test_blocks_of_512_and_16_tokens_are_told_by_the_other_fields() -> None:
    """The same lengths, times and hash ids: only the chat's own fields make it Bailian."""
    assert detect(lines(MOONCAKE)).format is Format.MOONCAKE
    assert detect(lines(BAILIAN)).format is Format.BAILIAN


def test_hash_ids_of_unknown_block_size_are_no_format() -> None:
    """Without fields that tell, the block size is not guessed."""
    with pytest.raises(ValueError, match=r"no known format.*hash_ids, input_length, request_id"):
        detect(lines({"request_id": 0, "input_length": 17, "hash_ids": [0, 1]}))


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:41ac\nsize 27901454\n", "Git LFS pointer"),
        (b"<!doctype html><html>", "web page"),
        (b"\n <html>", "web page"),
        (b"<?xml version='1.0'?>", "web page or XML"),
        (b"PAR1\x15\x04", "Parquet"),
        (b"PK\x03\x04", "zip"),
        ("TIMESTAMP".encode("utf-16"), "not UTF-8"),
        (b"\0\1\2\3", "not UTF-8"),
        (b"a,b,c\n1,2,3\n", "begins with 'a,b,c'"),
        (b"\xff\xfa,b\n", "expected UTF-8"),
        (b'{\n  "prompt": "x"\n}\n', "one object a line"),
        (b"[1, 2]", "no complete JSON object"),
        (b'[{"prompt": "x"}]', "JSON array"),
        (lines({"question_text": "x"}), "keys question_text"),
    ],
)
def test_what_is_no_data_is_named(head: bytes, what: str) -> None:
    """A redirect page, an LFS pointer, an empty or foreign file gets a message of its own."""
    with pytest.raises(ValueError, match=what):
        detect(head)


def test_a_named_format_is_taken_at_its_word() -> None:
    """Naming it decides; rows that do not fit are found when they are parsed. What is no data stays refused."""
    assert detect(lines(BAILIAN), Format.MOONCAKE).format is Format.MOONCAKE
    assert detect(b'[{"conversations"', Format.SHAREGPT).is_array
    with pytest.raises(ValueError, match="web page"):
        detect(b"<html>", Format.AZURE)
    with pytest.raises(ValueError, match="one JSON object a line"):
        detect(b"[{}]", Format.NATIVE)


def test_keys_that_are_not_read_are_told() -> None:
    """A misspelt key shows up."""
    assert detect(lines({"prompt": "x", "max_token": 5, "zone": 1})).unused_keys == ("max_token", "zone")
    assert detect(lines(MOONCAKE)).unused_keys == ()
