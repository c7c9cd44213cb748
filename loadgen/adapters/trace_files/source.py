"""Data files as sources of conversations: all rows are checked before anything is sent, texts are read when due."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import numpy as np

from loadgen.adapters.trace_files.content import Content
from loadgen.core.errors import ConfigError, DataError, TraceFormatError
from loadgen.core.request import Conversation
from loadgen.core.traces.csv_rows import column_names
from loadgen.core.traces.detect import CSV_FORMATS, RESOLUTION_NS, Format, detect, parser_for
from loadgen.core.traces.facts import TraceFacts, facts_of
from loadgen.core.traces.framing import RawRow, split_array, split_lines
from loadgen.core.traces.native import native_line
from loadgen.core.traces.part import Part, cut, resolution_ns
from loadgen.core.traces.row import BadRow, Reason, Row, RowParser
from loadgen.core.traces.source import History, PlacedRow, conversation_of, session_name, think_after
from loadgen.core.traces.table import UNKNOWN, Table, TableBuilder
from loadgen.core.traces.texts import BorrowedText, Texts

OnBadRow = Literal["stop", "skip"]
Progress = Callable[[int, int], None]
"""Called now and then with how much is done and how much there is: bytes while reading, lines while writing."""

_ROWS_BETWEEN_REPORTS = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scan:
    """What the first pass over a file found, apart from the table."""

    format: Format
    rows: int
    dropped: dict[str, int]
    first_dropped: dict[str, str]
    notes: tuple[str, ...]


def open_trace(
    path: str | Path,
    *,
    format: str = "auto",  # noqa: A002  the option's name
    on_bad_row: OnBadRow = "stop",
    need_times: bool = False,
    texts: Texts | None = None,
    history: History = "answers",
    progress: Progress | None = None,
) -> "TraceSource":
    """A data file with every row checked.

    `texts` makes prompts for rows without text; without it such rows can be described and converted, not sent.
    `history`: whether turns go on from this run's answers or from the recorded ones.

    Raises DataError for a file that is unusable as a whole, TraceFormatError for a bad row unless these are skipped
    (with `need_times` also one without a time stamp), ConfigError for an unknown format.
    """
    wanted = _format(format)
    content = Content(Path(path))
    try:
        parser, table, scan = _scan(content, wanted, on_bad_row, need_times, progress)
        return TraceSource(content, parser, table, scan, texts=texts, history=history)
    except BaseException:
        content.close()
        raise


class TraceSource:
    """A data file, or a part of one. Parts share the open file: closing one closes all."""

    def __init__(
        self,
        content: Content,
        parser: RowParser,
        table: Table,
        scan: _Scan,
        *,
        texts: Texts | None,
        history: History,
        taken: Part | None = None,
    ) -> None:
        self._content, self._parser, self._table, self._scan = content, parser, table, scan
        self._texts, self._history = texts, history
        self._facts = facts_of(
            table,
            name=content.path.name,
            format=scan.format,
            rows=scan.rows,
            dropped=scan.dropped,
            first_dropped=scan.first_dropped,
            borrows=texts is not None and texts.kind == "borrowed",
            sha256=content.sha256(),
            size_bytes=content.disk_bytes,
            part=None if taken is None else asdict(taken),
            notes=(*scan.notes, *_text_notes(table, texts)),
        )

    @property
    def facts(self) -> TraceFacts:
        """What the file, or this part of it, holds."""
        return self._facts

    def part(self, part: Part) -> "TraceSource":
        """That part of it. Raises ConfigError when it needs times that the file lacks, DataError when it is empty."""
        time_ns = self._table.time_ns
        unit_ns = RESOLUTION_NS[self._scan.format]
        step_ns = unit_ns if time_ns is None else resolution_ns(np.sort(time_ns[self._table.order]), unit_ns)
        table, lost = cut(self._table, part, resolution_ns=step_ns)
        dropped = dict(self._scan.dropped)
        for reason, rows in lost.items():
            dropped[reason.value] = dropped.get(reason.value, 0) + rows
        if not len(table.order):
            raise DataError(f"{self._content.path}: the chosen part holds no row ({_counts(dropped)})")
        spread = (f"rows with equal time stamps are spread over {step_ns / 1e9:g} s",) if part.spread else ()
        scan = replace(self._scan, dropped=dropped, notes=self._scan.notes + spread)
        return TraceSource(
            self._content, self._parser, table, scan, texts=self._texts, history=self._history, taken=part
        )

    def conversations(self, *, pass_number: int = 0, unique_repeats: bool = False) -> Iterator[Conversation]:
        """All conversations by first arrival, the same each time; see `core.traces.source.Source`.

        Raises DataError when the file has changed, ConfigError for rows without text when there are no `texts`.
        """
        self._content.check_unchanged()
        for index in range(self._table.conversations):
            yield conversation_of(
                [self._placed(number) for number in self._table.conversation(index)],
                texts=self._texts,
                history=self._history,
                speed=self._table.speed,
                pass_number=pass_number,
                unique_repeats=unique_repeats,
            )

    def native_lines(self) -> Iterator[bytes]:
        """Each request as a line of the native form, by arrival. Reading them gives the same conversations."""
        table = self._table
        self._content.check_unchanged()
        lengths = np.diff(table.starts)
        places = np.arange(len(table.order)) - np.repeat(table.starts[:-1], lengths)
        first_rows = np.repeat(table.order[table.starts[:-1]], lengths)
        requests = table.requests[table.order].astype(np.int64)
        turns_before = np.cumsum(requests) - requests
        turns_before -= np.repeat(turns_before[table.starts[:-1]], lengths)
        sequence = np.arange(len(table.order))
        if table.time_ns is not None:
            sequence = np.argsort(table.time_ns[table.order], kind="stable")
        for at in sequence.tolist():
            placed = self._placed(int(table.order[at]))
            row, waited_s, session_id = placed.row, None, None
            if places[at]:
                waited_s = think_after(self._placed(int(table.order[at - 1])).row, row)
            if table.is_session[table.order[at]]:
                first = self._placed(int(first_rows[at])) if places[at] else placed
                session_id = session_name(first, len(first.row.turns))
            for place, turn in enumerate(row.turns):
                think_s = waited_s if turn.think_s is None and place == 0 else turn.think_s
                yield native_line(
                    turn,
                    offset_ns=placed.offset_ns,
                    session_id=session_id,
                    turn_index=None if session_id is None else int(turns_before[at]) + place,
                    think_s=None if think_s is None else think_s / table.speed,
                    category=row.category,
                    id=row.id,
                )

    def _placed(self, number: int) -> PlacedRow:
        table = self._table
        line = int(table.line[number])
        try:
            row = self._parser.parse(self._content.at(int(table.position[number]), int(table.size_bytes[number])))
        except BadRow:
            row = Reason.BAD_VALUE
        if not isinstance(row, Row):
            raise DataError(f"{self._content.path}:{line}: was changed while it was in use")
        offset_ns = None if table.time_ns is None else int(table.time_ns[number])
        return PlacedRow(row=row, number=number, line=line, offset_ns=offset_ns)

    def close(self) -> None:
        """Closes the file."""
        self._content.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def save_native(source: TraceSource, path: str | Path, *, progress: Progress | None = None) -> int:
    """Writes the source as native JSON lines and returns how many; the file appears when it is whole.

    `progress` is called with the lines written and the lines there are. Raises DataError when it cannot be written.
    """
    path = Path(path)
    written = 0
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            partial = Path(file.name)
            try:
                for line in source.native_lines():
                    file.write(line)
                    written += 1
                    if progress is not None and written % _ROWS_BETWEEN_REPORTS == 0:
                        progress(written, source.facts.requests)
                file.flush()
                partial.chmod(0o644)
                partial.replace(path)
            except BaseException:
                partial.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror}") from None
    return written


def _format(name: str) -> Format | None:
    if name == "auto":
        return None
    try:
        return Format(name)
    except ValueError:
        raise ConfigError(f"trace format: expected auto, {', '.join(Format)}, got {name!r}") from None


def _scan(
    content: Content, wanted: Format | None, on_bad_row: OnBadRow, need_times: bool, progress: Progress | None
) -> tuple[RowParser, Table, _Scan]:
    """Reads every row once."""
    path = content.path
    try:
        detected = detect(content.head(), wanted)
    except ValueError as error:
        raise DataError(f"{path}: {error}") from None
    builder = TableBuilder()
    dropped: dict[str, int] = {}
    first_dropped: dict[str, str] = {}
    rows = blank = 0
    notes: list[str] = []
    if detected.unused_keys:
        notes.append(f"keys that are not used: {', '.join(detected.unused_keys)}")
    raw_rows = _framed(content, is_array=detected.is_array)
    header = b""
    if detected.format in CSV_FORMATS:
        header = next((raw.data for raw in raw_rows if raw.data.strip()), b"")
    try:
        parser = parser_for(detected.format, header)
    except BadRow as bad:
        raise TraceFormatError(str(path), 1, bad.message, field=bad.field) from None
    if header and "numimages" in column_names(header):
        notes.append("images are not sent: each request is text of the same number of tokens")
    for raw in raw_rows:
        if not raw.data.strip():
            blank += 1
            continue
        if progress is not None and rows % _ROWS_BETWEEN_REPORTS == 0:
            progress(raw.position, content.size_bytes)
        rows += 1
        try:
            row = parser.parse(raw.data)
            if need_times and isinstance(row, Row) and row.time_ns is None:
                raise BadRow(Reason.NO_TIME, "is missing, and a replay needs it in every row", field="timestamp")
        except BadRow as bad:
            fault = TraceFormatError(str(path), raw.line, bad.message, field=bad.field)
            if on_bad_row == "stop":
                raise fault from None
            row = bad.reason
            first_dropped.setdefault(row.value, str(fault))
        if isinstance(row, Reason):
            dropped[row.value] = dropped.get(row.value, 0) + 1
        else:
            position = raw.position + content.start
            builder.add(row, line=raw.line, position=position, size_bytes=len(raw.data))
    content.check_unchanged()
    if progress is not None:
        progress(content.size_bytes, content.size_bytes)
    if not len(builder):
        raise DataError(f"{path}: no usable row in {rows} ({_counts(dropped) or 'there is none'})")
    if blank:
        notes.append(f"{blank} blank lines")
    scan = _Scan(format=detected.format, rows=rows, dropped=dropped, first_dropped=first_dropped, notes=tuple(notes))
    return parser, builder.build(), scan


def _framed(content: Content, *, is_array: bool) -> Iterator[RawRow]:
    rows = split_array(content.chunks()) if is_array else split_lines(content.chunks())
    try:
        yield from rows
    except BadRow as bad:
        raise TraceFormatError(str(content.path), bad.line or 1, bad.message) from None


def _text_notes(table: Table, texts: Texts | None) -> tuple[str, ...]:
    """What must be known about prompts that the file does not hold."""
    without = table.order[~table.has_text[table.order]]
    if texts is None or not len(without):
        return ()
    if not isinstance(texts, BorrowedText):
        return (texts.note,)
    asked = table.input_tokens[without]
    share = texts.fit_ratio(asked[asked != UNKNOWN])
    return (texts.note, f"the borrowed prompts hold about {share:.0%} of the input tokens that the rows ask for")


def _counts(dropped: dict[str, int]) -> str:
    return ", ".join(f"{reason}: {rows}" for reason, rows in dropped.items())
