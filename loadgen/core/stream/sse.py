"""Bytes to server-sent events, by the WHATWG rules, whatever pieces the bytes come in.

Works on bytes: only CR, LF and CRLF end a line, and a multi-byte character cut by a read needs no care. Rules:
https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

from msgspec import Struct

MAX_EVENT_BYTES = 16 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_LF, _SPACE = b"\n "


class SseEvent(Struct, frozen=True, gc=False):
    """One dispatched event. `data` are its data lines joined by LF, `event` its type, empty when none was given."""

    data: bytes
    event: bytes = b""
    id: bytes = b""


class SseDecoder:
    """Splits a stream into events.

    A comment, a block without a data field and `retry` (nothing here reconnects) give no event. When a line, or the
    data lines of one event, exceed `max_event_bytes`, `overflowed` is set and no event follows.
    """

    __slots__ = (
        "_after_cr",
        "_data",
        "_event",
        "_held",
        "_id",
        "_max",
        "_started",
        "_tail",
        "_tail_bytes",
        "overflowed",
    )

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.overflowed = False
        self._max = max_event_bytes
        self._started = False
        self._after_cr = False
        self._tail: list[bytes] = []  # the line that has not ended yet, in pieces so that a long one is joined once
        self._tail_bytes = 0
        self._data: list[bytes] = []  # data lines of the event that has not ended yet
        self._held = 0  # their bytes, with one line end each
        self._event = b""
        self._id = b""

    @property
    def remainder(self) -> bytes:
        """What has come of an event that has not ended. At the end of a stream it is discarded, by the rules."""
        return b"\n".join([*self._data, b"".join(self._tail)])

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that these bytes complete."""
        if self._is_one_plain_event(data):
            return [SseEvent(data[6:-2], b"", self._id)]
        if self.overflowed:
            return []
        if not self._started:
            data = b"".join(self._tail) + data
            if len(data) < len(_BOM) and _BOM.startswith(data):
                self._tail = [data]
                return []
            self._tail = []
            self._started = True
            data = data.removeprefix(_BOM)
        if self._after_cr or b"\r" in data:
            data = self._with_lf_only(data)
        if self._tail and b"\n" in data:
            data = b"".join([*self._tail, data])
            self._tail.clear()
            self._tail_bytes = 0
        events: list[SseEvent] = []
        position = 0
        find, size, limit = data.find, len(data), self._max
        while (end := find(b"\n", position)) >= 0:
            if self._held + end - position > limit:
                self._overflow()
                return events
            if data.startswith(b"data:", position):
                line = data[position + 6 if data[position + 5] == _SPACE else position + 5 : end]
                if (
                    not self._data and end + 1 < size and data[end + 1] == _LF
                ):  # the common case: one line, an empty one
                    events.append(SseEvent(line, self._event, self._id))
                    self._event = b""
                    position = end + 2
                    continue
                self._data.append(line)
                self._held += len(line) + 1
            elif end == position:
                if self._data:
                    events.append(SseEvent(b"\n".join(self._data), self._event, self._id))
                    self._data.clear()
                    self._held = 0
                self._event = b""
            else:
                self._field(data[position:end])
            position = end + 1
        if position < size:
            rest = data[position:] if position else data
            self._tail.append(rest)
            self._tail_bytes += len(rest)
            if self._held + self._tail_bytes > limit:
                self._overflow()
        return events

    def _is_one_plain_event(self, data: bytes) -> bool:
        """Whether nothing is pending and these bytes are one event of one data line: the common case, made cheap."""
        return (
            self._started
            and not (self._tail or self._data or self._event or self._after_cr or self.overflowed)
            and data.startswith(b"data: ")
            and data.find(b"\n") == len(data) - 2
            and data.endswith(b"\n\n")
            and b"\r" not in data
            and len(data) <= self._max
        )

    def _with_lf_only(self, data: bytes) -> bytes:
        """Line ends as LF. A CR ends its line at once; an LF that the next read begins with then belongs to it."""
        if not data:
            return data
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
        self._after_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            self._event = value
        elif name == b"id" and b"\0" not in value:
            self._id = value
        elif name == b"data":  # without a colon
            self._data.append(value)
            self._held += len(value) + 1

    def _overflow(self) -> None:
        self.overflowed = True
        self._tail.clear()
        self._data.clear()
