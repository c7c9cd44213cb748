"""Strict JSON files that are either whole or absent, never hold a known secret, and say which schema they are."""

import os
import secrets as _secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from loadgen.core.errors import InternalError, StoreError
from loadgen.core.redaction import REDACTED

Value = TypeVar("Value")

SHORTEST_SECRET = 8

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding JSON ends with that is none, is no text, or is nested without end."""


class Scrubber:
    """The last guard before a disk: replaces known secrets in whatever is stored.

    Secrets shorter than SHORTEST_SECRET characters are dummies such as `EMPTY`, which would also match ordinary words,
    and are left alone.
    """

    def __init__(self, secrets: tuple[str, ...] = ()) -> None:
        self._secrets = tuple(sorted({s for s in secrets if len(s) >= SHORTEST_SECRET}, key=len, reverse=True))
        self._needles = tuple(msgspec.json.encode(s)[1:-1] for s in self._secrets)

    def text(self, text: str) -> str:
        """The text without secrets, in plain, JSON-escaped or HTML-escaped form."""
        for secret in self._secrets:
            for form in (secret, msgspec.json.encode(secret)[1:-1].decode(), escape(secret)):
                text = text.replace(form, REDACTED)
        return text

    def encode(self, value: Any) -> bytes:
        """The value as one line of strict JSON without secrets. A float that JSON cannot hold becomes null.

        Raises InternalError for a value that JSON has no form for.
        """
        try:
            line = msgspec.json.encode(value)
        except UnicodeEncodeError:  # half of a surrogate pair, out of a server's escapes
            line = msgspec.json.encode(self._clean(msgspec.to_builtins(value)))
        except (TypeError, ValueError) as fault:
            raise InternalError(f"{type(value).__name__} holds something that JSON cannot: {fault}") from fault
        if any(needle in line for needle in self._needles):
            line = msgspec.json.encode(self._clean(msgspec.to_builtins(value)))
        return line

    def _clean(self, value: Any) -> Any:
        match value:
            case str():
                return self.text(value.encode("utf-8", "replace").decode())
            case dict():
                return {self._clean(key): self._clean(item) for key, item in value.items()}
            case list() | tuple():
                return [self._clean(item) for item in value]
            case _:
                return value


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write that is put in place when the block ends well; until then, and if it does not, the old one stays.

    After a crash at any instant the old content or the new one is there. A link is followed; what is no regular file
    (`/dev/null`, a pipe) is written to as it is. Raises StoreError naming the file and the reason.
    """
    place = Path(os.path.realpath(path))
    draft = place.with_name(f".{place.name}.{_secrets.token_hex(4)}")
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
            return
        with draft.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(place)
        sync_folder(place.parent)
    except OSError as fault:
        raise StoreError(f"{path}: cannot be written: {reason(fault)}") from fault
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def replace_file(path: Path, content: bytes) -> None:
    """Puts a file in place whole, as `whole_file` does. Raises StoreError naming the file and the reason."""
    with whole_file(path) as file:
        file.write(content)


def sync_folder(folder: Path) -> None:
    """Makes a new or renamed entry of the folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def document(value: Any, scrubber: Scrubber) -> bytes:
    """The value as a file of indented strict JSON."""
    return msgspec.json.format(scrubber.encode(value), indent=2) + b"\n"


def save_json(path: Path, value: Any, scrubber: Scrubber) -> None:
    """Writes the value as indented strict JSON, whole or not at all."""
    replace_file(path, document(value, scrubber))


def load_json(path: Path, of: type[Value], schema: str) -> Value:
    """Reads a file of that schema or an older version of it. Unknown keys are skipped.

    Raises StoreError saying what was expected.
    """
    try:
        content = path.read_bytes()
    except OSError as fault:
        raise StoreError(f"{path}: cannot be read: {reason(fault)}") from fault
    return decode(content, msgspec.json.Decoder(of), schema, str(path))


def decode(content: bytes, decoder: "msgspec.json.Decoder[Value]", schema: str, where: str) -> Value:
    """One JSON value of that schema. Raises StoreError that begins with `where`."""
    try:
        value = decoder.decode(content)
    except UNREADABLE as fault:
        check_schema(content, schema, where)
        raise StoreError(f"{where}: expected {schema}: {fault}") from fault
    if getattr(value, "schema", schema) != schema:
        check_schema(content, schema, where)
    return value


def check_schema(content: bytes, schema: str, where: str) -> None:
    """Raises StoreError unless the JSON says that it is of this schema and of no later major version."""
    try:
        found = msgspec.json.decode(content)
    except UNREADABLE as fault:
        raise StoreError(f"{where}: expected a JSON object of schema {schema}: {fault}") from fault
    said = found.get("schema") if isinstance(found, dict) else None
    if not isinstance(said, str):
        raise StoreError(f"{where}: expected a JSON object of schema {schema}, found one without a schema")
    name, _, version = said.partition("/")
    known_name, _, known_version = schema.partition("/")
    major = version.partition(".")[0]
    if name != known_name or not major.isdigit():
        raise StoreError(f"{where}: expected schema {schema}, found {said}")
    if int(major) > int(known_version):
        raise StoreError(f"{where}: schema {said} is newer than this version of Loadgen reads ({schema})")


def is_file(path: Path) -> bool:
    """Whether a file is there. Raises StoreError where the system does not say, such as in a folder closed to us."""
    try:
        return path.is_file()
    except OSError as fault:
        raise StoreError(f"{path}: cannot be read: {reason(fault)}") from fault


def reason(fault: OSError) -> str:
    """What the system said, without the path, which the message names already."""
    return fault.strerror or str(fault)
