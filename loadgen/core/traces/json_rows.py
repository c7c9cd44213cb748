"""What the formats of JSON rows share: decoding with errors that name the field, times, and prefix blocks."""

import re
from typing import Annotated, TypeVar

import msgspec

from loadgen.core.traces.row import LARGEST_COUNT, LARGEST_TIME_NS, BadRow, Reason
from loadgen.core.units import NS_PER_S

T = TypeVar("T")

Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]

_AT_PATH = re.compile(r"(?s)(?P<what>.*?) - at `\$\.?(?P<path>.*)`")
_MISSING = re.compile(r"Object missing required field `(?P<field>[^`]+)`")


def decode_row(decoder: msgspec.json.Decoder[T], data: bytes) -> T:
    """The row as the decoder's type. Raises BadRow with field and expectation."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        raise _bad_row(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRow(Reason.NOT_JSON, f"expected one JSON object ({error})") from None


def _bad_row(text: str) -> BadRow:
    located = _AT_PATH.fullmatch(text)
    what, path = (located["what"], located["path"]) if located else (text, "")
    if missing := _MISSING.fullmatch(what):
        field = f"{path}.{missing['field']}" if path else missing["field"]
        return BadRow(Reason.MISSING_FIELD, "is missing", field=field)
    message = what[:1].lower() + what[1:]
    return BadRow(Reason.BAD_VALUE, message, field=path) if path else BadRow(Reason.NOT_AN_OBJECT, message)


def time_ns(value: float | None, *, per_second: int, field: str = "timestamp") -> int | None:
    """A time in units of 1/`per_second` s as ns. Raises BadRow when it is negative or beyond the year 2262."""
    if value is None:
        return None
    ns = value * (NS_PER_S // per_second) if isinstance(value, int) else round(value * (NS_PER_S / per_second))
    if not 0 <= ns <= LARGEST_TIME_NS:
        unit = {1: "seconds", 1000: "milliseconds"}[per_second]
        raise BadRow(Reason.BAD_VALUE, f"expected {unit} from 0 to the year 2262, got {value!r}", field=field)
    return ns


def check_blocks(blocks: tuple[int, ...], block_tokens: int, input_tokens: int) -> None:
    """Raises BadRow unless (k - 1) B < input length <= k B for k blocks of B tokens."""
    k = len(blocks)
    if (k - 1) * block_tokens < input_tokens <= k * block_tokens:
        return
    held = f"{(k - 1) * block_tokens + 1} to {k * block_tokens} tokens" if k else "no tokens"
    raise BadRow(
        Reason.BLOCKS,
        f"{k} blocks of {block_tokens} tokens hold {held}, but the input has {input_tokens}",
        field="hash_ids",
    )
