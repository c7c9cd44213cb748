"""Where requests go: a base URL taken apart, with the credentials, headers and TLS settings that travel with it.

Accepted base URLs, each with or without a version segment such as `/v1` at the end:

    http://host[:port][/prefix]        https://host[:port][/prefix]        http://[::1]:8000
    unix:///path/to.sock               unix:///path/to.sock:/prefix
"""

import base64
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from loadgen import __version__
from loadgen.core.errors import ConfigError

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VERSION_SEGMENT = re.compile(r"/v\d+[a-z0-9]*")
_URL_CHARACTERS = re.compile(r"[!-~]+")
_OWN_HEADERS = frozenset(
    {"connection", "content-length", "expect", "te", "transfer-encoding", "upgrade", "x-request-id"}
)
_SECRET_HEADER = re.compile(r"auth|cookie|key|password|secret|token", re.IGNORECASE)
_SECRET_CHARACTERS = 4  # to blot out anything shorter would blot out words that happen to contain it
_ROUTES = ("/chat/completions", "/completions", "/responses")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_EXPECTED = "expected http://host[:port], https://host[:port] or unix:///path/to.sock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """A server as given by the user. `repr` shows no secret.

    `url` is the base URL without user info, safe to store. `host` is as the resolver wants it (no brackets),
    `authority` as the Host header wants it. `prefix` is the path before the version segment, `api_root` the path with
    it (`/v1` when the URL names none). `headers` are the user's and the credential's, in order, the last of a name
    winning. `secrets` are texts to be kept out of anything stored; `notices` are sentences for the user.
    """

    url: str
    scheme: str
    host: str
    port: int
    authority: str
    prefix: str
    api_root: str
    unix_path: str | None = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    ca_file: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    insecure: bool = False
    secrets: tuple[str, ...] = field(default=(), repr=False)
    notices: tuple[str, ...] = ()

    @classmethod
    def from_url(
        cls,
        url: str,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        ca_file: str | None = None,
        insecure: bool = False,
        client_cert: str | None = None,
        client_key: str | None = None,
    ) -> "Destination":
        """Takes a base URL apart. Raises ConfigError, naming the part and what was expected but never a secret.

        User info in the URL becomes Basic authorization unless an API key is given, and a key gives way to an
        `Authorization` among `headers`; each that is passed over leaves a notice.
        """
        parts, port = _split(url)
        if parts.scheme == "unix":
            unix_path, path = _unix_paths(parts)
            host, authority, shown = "localhost", "localhost", f"unix://{unix_path}" + (f":{path}" if path else "")
        else:
            unix_path, path = None, parts.path.rstrip("/")
            host, authority = _host(parts, port)
            shown = f"{parts.scheme}://{authority}{path}"
        head, _, last = path.rpartition("/")
        versioned = _VERSION_SEGMENT.fullmatch("/" + last) is not None
        credential, secrets, notices = _credential(parts, api_key, headers or {})
        if insecure and parts.scheme == "https":
            notices = (*notices, "The server's certificate is not verified.")
        return cls(
            url=shown,
            scheme=parts.scheme,
            host=host,
            port=port,
            authority=authority,
            prefix=head if versioned else path,
            api_root=path if versioned else path + "/v1",
            unix_path=unix_path,
            headers=(*credential, *_checked_headers(headers or {})),
            ca_file=ca_file,
            client_cert=client_cert,
            client_key=client_key,
            insecure=insecure,
            secrets=secrets,
            notices=notices,
        )

    @property
    def secure(self) -> bool:
        """Whether the connection is encrypted."""
        return self.scheme == "https"

    @property
    def origin(self) -> str:
        """Scheme and authority as HTTP sees them; for a unix socket `http://localhost`."""
        return f"{'https' if self.secure else 'http'}://{self.authority}"

    def request_target(self, path: str) -> str:
        """What stands in the request line for `path`: below the API's root for `/v1/…`, else below the prefix."""
        return self.api_root + path.removeprefix("/v1") if path.startswith("/v1/") else self.prefix + path

    def request_headers(self) -> dict[str, str]:
        """The headers of every request but its own id and length; the user's replace ours, whatever their case."""
        ours = (
            ("Host", self.authority),
            ("User-Agent", f"loadgen/{__version__}"),
            ("Accept", "text/event-stream, application/json"),
            ("Accept-Encoding", "identity"),
            ("Content-Type", "application/json"),
        )
        by_name = {name.lower(): (name, value) for name, value in (*ours, *self.headers)}
        return dict(by_name.values())

    def encoded_headers(self) -> dict[bytes, bytes]:
        """The same as the bytes that are sent: a value may hold any character of Latin-1."""
        return {name.encode("ascii"): value.encode("latin-1") for name, value in self.request_headers().items()}

    def ssl_context(self) -> ssl.SSLContext | None:
        """TLS as configured, None for a plain destination. Raises ConfigError, naming a file that cannot be used."""
        if not self.secure:
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"CA file {self.ca_file}: expected certificates in PEM form ({error})") from error
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.client_cert is not None:
            try:
                context.load_cert_chain(self.client_cert, self.client_key)
            except (OSError, ssl.SSLError) as error:
                files = self.client_cert + (f" and {self.client_key}" if self.client_key else "")
                raise ConfigError(
                    f"client certificate {files}: expected a certificate and its key in PEM form ({error})"
                ) from error
        return context


def _split(url: str) -> tuple[SplitResult, int]:
    if not url.isprintable() or " " in url:
        raise ConfigError(f"base URL: {_EXPECTED}, without spaces or control characters")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # not chained: its text may hold the password
        raise ConfigError(f"base URL: {_EXPECTED}, with a port of 1 to 65535 if any") from None
    if parts.scheme not in (*_DEFAULT_PORTS, "unix"):
        raise ConfigError(f"base URL: {_EXPECTED}, got the scheme {parts.scheme!r}")
    if parts.query or parts.fragment:
        raise ConfigError(f"base URL: {_EXPECTED}, without a query or fragment")
    route = next((route for route in _ROUTES if parts.path.rstrip("/").endswith(route)), None)
    if route is not None:
        raise ConfigError(f"base URL: expected the address without {route}, which --endpoint chooses")
    if parts.scheme != "unix" and (not parts.hostname or port == 0):
        raise ConfigError(f"base URL: {_EXPECTED}, with a host and a port of 1 to 65535")
    if _URL_CHARACTERS.fullmatch(parts.path or "/") is None and parts.scheme != "unix":
        raise ConfigError("base URL: expected a path of ASCII characters, others percent-encoded")
    return parts, port if port is not None else _DEFAULT_PORTS.get(parts.scheme, 0)


def _unix_paths(parts: SplitResult) -> tuple[str, str]:
    """The socket's file and the path on the server, from `/run/x.sock` or `/run/x.sock:/prefix`."""
    socket_path, _, path = parts.path.partition(":")
    if parts.netloc or not socket_path.startswith("/"):
        raise ConfigError(
            "base URL: a unix socket is written unix:///absolute/path.sock, a path on the server after a colon"
        )
    if path and (not path.startswith("/") or _URL_CHARACTERS.fullmatch(path) is None):
        raise ConfigError(
            "base URL: the path on the server starts with / and is ASCII: unix:///absolute/path.sock:/prefix"
        )
    return unquote(socket_path), path.rstrip("/")


def _host(parts: SplitResult, port: int) -> tuple[str, str]:
    """The host for the resolver and for the Host header; an IPv6 zone (`%25eth0`) belongs to the first alone."""
    host = unquote(parts.hostname or "")
    if ":" in host:
        named = f"[{host.partition('%')[0]}]"
    else:
        try:
            host = named = host.encode("idna").decode("ascii") if not host.isascii() else host
        except UnicodeError as error:
            raise ConfigError(f"base URL: {_EXPECTED}, got a host that is no domain name ({error})") from error
    return host, named if port == _DEFAULT_PORTS[parts.scheme] else f"{named}:{port}"


def _credential(
    parts: SplitResult, api_key: str | None, headers: Mapping[str, str]
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...], tuple[str, ...]]:
    """The Authorization header if there is one, all secrets, and notices about what was passed over."""
    password = None if parts.password is None else unquote(parts.password)
    user = None if parts.username is None else unquote(parts.username)
    given = any(name.lower() == "authorization" for name in headers)
    secrets = [value for name, value in headers.items() if _SECRET_HEADER.search(name)]
    secrets += [value.partition(" ")[2] for value in secrets]  # `Bearer KEY`: the key alone is a secret too
    notices = []
    value = None
    if user is not None:
        plain = f"{user}:{password or ''}"
        encoded = base64.b64encode(plain.encode()).decode("ascii")
        secrets += [encoded, password or user]
        value = f"Basic {encoded}"
    if api_key is not None:
        if not api_key.isascii() or not api_key.isprintable() or not api_key.strip():
            raise ConfigError("API key: expected printable ASCII characters on one line, and at least one")
        if value is not None:
            notices.append("The API key is used; the user info in the URL is not.")
        secrets.append(api_key)
        value = f"Bearer {api_key}"
    if given and value is not None:
        notices.append("The Authorization header is used; the API key or the user info in the URL is not.")
        value = None
    credential = () if value is None else (("Authorization", value),)
    known = tuple(secret for secret in dict.fromkeys(secrets) if len(secret) >= _SECRET_CHARACTERS)
    return credential, known, tuple(notices)


def _checked_headers(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    for name, value in headers.items():
        if _TOKEN.fullmatch(name) is None:
            raise ConfigError(f"header {name!r}: expected a name of letters, digits and -")
        if name.lower() in _OWN_HEADERS:
            raise ConfigError(f"header {name}: is set by loadgen itself and cannot be given")
        if any(character in value for character in "\r\n\0"):
            raise ConfigError(f"header {name}: expected one line, got a value with a line break or NUL")
        try:
            value.encode("latin-1")
        except UnicodeEncodeError as error:
            raise ConfigError(f"header {name}: expected characters of Latin-1") from error
    return tuple((name, value.strip()) for name, value in headers.items())
