"""Which format a file has, told by its content: column names and keys, never by a guess at units or block sizes."""

from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any

import msgspec

from loadgen.core.traces.azure import AzureParser
from loadgen.core.traces.bailian import BailianParser
from loadgen.core.traces.burstgpt import BurstGptParser
from loadgen.core.traces.csv_rows import column_names
from loadgen.core.traces.framing import split_array, split_lines
from loadgen.core.traces.mooncake import MooncakeParser
from loadgen.core.traces.native import KNOWN_KEYS, NativeParser
from loadgen.core.traces.row import BadRow, RowParser
from loadgen.core.traces.sharegpt import ShareGptParser


class Format(StrEnum):
    """Formats that can be read. `prompts` is the native form without times, sessions or lengths."""

    AZURE = "azure"
    MOONCAKE = "mooncake"
    BURSTGPT = "burstgpt"
    BAILIAN = "bailian"
    SHAREGPT = "sharegpt"
    NATIVE = "native"
    PROMPTS = "prompts"


CSV_FORMATS = frozenset({Format.AZURE, Format.BURSTGPT})

RESOLUTION_NS: dict[str, int] = {
    Format.AZURE: 1_000,
    Format.MOONCAKE: 1_000_000,
    Format.BURSTGPT: 1_000_000_000,
    Format.BAILIAN: 1_000_000,
    Format.SHAREGPT: 1,
    Format.NATIVE: 1,
    Format.PROMPTS: 1,
}
"""The step of each format's time stamps, ns; a file may be coarser."""

_TRACE_KEYS = frozenset({"timestamp", "body", "session_id", "input_tokens", "output_tokens", "think_s"})
_PROMPT_KEYS = frozenset({"prompt", "messages", "token_ids", "turns"})
_LOOKED_AT = 100
"""Lines in which a first object is looked for."""

_EXPECTED = (
    "expected an Azure or BurstGPT CSV header, Mooncake lines (timestamp, input_length, output_length, hash_ids), "
    "Bailian lines (these and chat_id), ShareGPT (conversations), or prompt, messages, token_ids, turns, body or "
    "input_tokens"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Detected:
    """A file's format and framing. `unused_keys` are keys of its first object that this format does not read."""

    format: Format
    is_array: bool = False
    unused_keys: tuple[str, ...] = ()


def detect(head: bytes, wanted: Format | None = None) -> Detected:
    """The format of a file that begins with `head` (byte order mark already gone), or how `wanted` is framed in it.

    Raises ValueError, with a message that fits after the file's name, for what is no data or no known format.
    """
    _refuse_what_is_no_data(head)
    is_array = head.lstrip()[:1] == b"["
    if wanted in CSV_FORMATS:
        return Detected(format=wanted)
    if is_array and wanted not in (None, Format.SHAREGPT):
        raise ValueError(f"is a JSON array; {wanted} data has one JSON object a line")
    first = _first_object(head, is_array=is_array)
    if wanted is not None:
        name = wanted
    elif first is not None:
        name = _json_format(first, is_array=is_array)
    elif is_array and b'"conversations"' in head:  # a first conversation that is longer than the head
        name = Format.SHAREGPT
    elif is_array or head.lstrip()[:1] == b"{":
        raise ValueError("has no complete JSON object on its first lines (one object a line is expected)")
    else:
        return Detected(format=_csv_format(head))
    is_ours = name in (Format.NATIVE, Format.PROMPTS)
    unused = tuple(sorted(set(first or ()) - KNOWN_KEYS)) if is_ours else ()
    return Detected(format=name, is_array=is_array, unused_keys=unused)


def parser_for(name: Format, header: bytes) -> RowParser:
    """The parser of a format; `header` is the first line of a CSV file. Raises BadRow when a column is missing."""
    match name:
        case Format.AZURE:
            return AzureParser(header)
        case Format.BURSTGPT:
            return BurstGptParser(header)
        case Format.MOONCAKE:
            return MooncakeParser()
        case Format.BAILIAN:
            return BailianParser()
        case Format.SHAREGPT:
            return ShareGptParser()
        case Format.NATIVE | Format.PROMPTS:
            return NativeParser()


def _refuse_what_is_no_data(head: bytes) -> None:
    start = head.lstrip()[:64].lower()
    if not start:
        raise ValueError("is empty")
    if start.startswith(b"version https://git-lfs"):
        raise ValueError("is a Git LFS pointer, not the data itself: fetch it with `git lfs pull` or download it again")
    if start.startswith(b"<"):
        raise ValueError("is a web page or XML, not data: the download was probably redirected or refused")
    if start.startswith(b"par1"):
        raise ValueError("is a Parquet file: convert it to JSON lines first")
    if start.startswith(b"pk\x03\x04"):
        raise ValueError("is a zip archive: unpack it first")
    if start.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in head[:64]:
        raise ValueError("is not UTF-8 text (UTF-16 or binary)")


def _csv_format(head: bytes) -> Format:
    header = next(raw.data for raw in split_lines([head]) if raw.data.strip())
    try:
        names = set(column_names(header))
    except BadRow as bad:
        raise ValueError(f"is of no known format: {bad.message}") from None
    if {"timestamp", "contexttokens", "generatedtokens"} <= names:
        return Format.AZURE
    if {"timestamp", "request tokens", "response tokens"} <= names:
        return Format.BURSTGPT
    shown = header[:120].decode(errors="replace")
    raise ValueError(f"is of no known format: it begins with {shown!r}; {_EXPECTED}")


def _json_format(first: dict[str, Any], *, is_array: bool) -> Format:
    keys = set(first)
    if "conversations" in keys:
        return Format.SHAREGPT
    if not is_array:
        if {"chat_id", "input_length", "output_length"} <= keys:
            return Format.BAILIAN
        if {"timestamp", "input_length", "output_length"} <= keys:
            return Format.MOONCAKE
        if keys & _TRACE_KEYS:
            return Format.NATIVE
        if keys & _PROMPT_KEYS:
            return Format.PROMPTS
    where = "a JSON array of objects" if is_array else "an object"
    raise ValueError(
        f"is of no known format: it begins with {where} with the keys {', '.join(sorted(keys))}; {_EXPECTED}"
    )


def _first_object(head: bytes, *, is_array: bool) -> dict[str, Any] | None:
    """The first row that is an object, so that a bad first row is named as such when the rows are checked."""
    try:
        for raw in split_array([head]) if is_array else islice(split_lines([head]), _LOOKED_AT):
            try:
                value = msgspec.json.decode(raw.data)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            if isinstance(value, dict):
                return value
    except BadRow:  # the head ends inside the array
        return None
    return None
