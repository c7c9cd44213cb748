"""A request as bytes, made before the clock starts."""

import re
from dataclasses import dataclass

from loadgen.adapters.http.destination import Destination
from loadgen.core.errors import ConfigError

_ID = re.compile(r"[!-~]+")  # visible ASCII


@dataclass(frozen=True, slots=True)
class RequestHead:
    """The head that all requests to one path share, ready for what differs: the id, and the body with its length."""

    shared: bytes

    @classmethod
    def of(cls, destination: Destination, path: str) -> "RequestHead":
        """A POST to `path` (`/v1/…`) of a destination."""
        lines = [f"POST {destination.request_target(path)} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in destination.request_headers().items()]
        return cls("".join(line + "\r\n" for line in lines).encode("latin-1"))

    def request(self, body: bytes, request_id: str) -> bytes:
        """Head and body as one value. Raises ConfigError for an id that no header can hold."""
        checked_id(request_id)
        return b"%bX-Request-Id: %b\r\nContent-Length: %d\r\n\r\n%b" % (
            self.shared,
            request_id.encode("ascii"),
            len(body),
            body,
        )


def checked_id(request_id: str) -> str:
    """The id, if a header can hold it; raises ConfigError if not."""
    if _ID.fullmatch(request_id) is None:
        raise ConfigError(f"request id {request_id!r}: expected visible ASCII characters without spaces")
    return request_id
