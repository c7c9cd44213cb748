"""ShareGPT: one JSON array (or JSON lines) of `{"id", "conversations": [{"from", "value"}, ...]}`.

Every turn is used. Known traits of the published files are left out with a count: conversations without a turn, ones
that begin with an answer (later parts of a split conversation), and ones whose speakers do not alternate.
"""

import msgspec

from loadgen.core.request import JsonObject, Messages
from loadgen.core.traces.json_rows import decode_row
from loadgen.core.traces.row import BadRow, Reason, Row, RowTurn

_USER = frozenset({"human", "user"})
_ANSWER = frozenset({"gpt", "assistant", "chatgpt", "bing", "bard", "model"})


class _Said(msgspec.Struct):
    speaker: str = msgspec.field(name="from")
    value: str


class _Conversation(msgspec.Struct):
    conversations: list[_Said]
    id: str | int | None = None


class ShareGptParser:
    """Conversations of one file."""

    def __init__(self) -> None:
        self._decoder = msgspec.json.Decoder(_Conversation)

    def parse(self, data: bytes) -> Row | Reason:
        """One conversation: a turn for each message of the user, with the recorded answer if there is one."""
        row = decode_row(self._decoder, data)
        said = row.conversations
        for place, one in enumerate(said):
            if one.speaker not in _USER and one.speaker not in _ANSWER and not (one.speaker == "system" and place == 0):
                expected = f"expected human or gpt (or system first), got {one.speaker!r}"
                raise BadRow(Reason.BAD_VALUE, expected, field=f"conversations[{place}].from")
        system = said.pop(0).value if said and said[0].speaker == "system" else None
        if not said:
            return Reason.NO_TURNS
        if said[0].speaker in _ANSWER:
            return Reason.BEGINS_WITH_ANSWER
        if any((one.speaker in _USER) != (place % 2 == 0) for place, one in enumerate(said)):
            return Reason.NOT_ALTERNATING
        turns = []
        for place in range(0, len(said), 2):
            messages: tuple[JsonObject, ...] = ({"role": "user", "content": said[place].value},)
            if place == 0 and system:
                messages = ({"role": "system", "content": system}, *messages)
            answer = said[place + 1].value if place + 1 < len(said) else None
            turns.append(RowTurn(prompt=Messages(messages=messages), answer=answer, continues_answers=place > 0))
        return Row(turns=tuple(turns), id=None if row.id is None else str(row.id))
