"""TLS on both transports: verified by default, by its own kind when it fails, and stamped like plain connections."""

import socket
import ssl
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from loadgen.core.errors import TargetError
from loadgen.core.record import FailureKind
from loadgen.core.run import TimingSource
from loadgen.engine.ports import Timeouts
from tests.adapters.http.exchanges import TRANSPORTS, exchange, httpx, native, text
from tests.fakes.scripted_server import (
    CHUNKED,
    LAST_CHUNK,
    Peer,
    ScriptedServer,
    answering,
    answering_once,
    chunk,
    plain,
)


@dataclass(frozen=True)
class Authority:
    """A certificate authority with its file, and server settings for this machine."""

    ca: trustme.CA
    ca_file: str

    def server(self, *hosts: str) -> ssl.SSLContext:
        """Server-side TLS with a certificate for those hosts."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        self.ca.issue_cert(*(hosts or ("127.0.0.1", "localhost"))).configure_cert(context)
        return context


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Iterator[Authority]:
    """An authority that nobody trusts unless told to."""
    path: Path = tmp_path_factory.mktemp("ca") / "ca.pem"
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(path))
    return Authority(ca, str(path))


@pytest.fixture(params=sorted(TRANSPORTS))
def transport_to(request):
    """Both transports, one after the other."""
    return TRANSPORTS[request.param]


async def test_a_trusted_server(transport_to, authority: Authority) -> None:
    """With the CA file, a whole stream; a second request goes over the same connection."""
    served = []

    def script(peer: Peer) -> None:
        while peer.read_request() is not None:
            served.append(peer.number)
            peer.send(CHUNKED, chunk(b"one"), chunk(b"two"), LAST_CHUNK)

    with ScriptedServer(script, tls=authority.server()) as server:
        async with transport_to(server.url, ca_file=authority.ca_file) as transport:
            await transport.open(1)
            for _ in range(2):
                ending, inbox = await exchange(transport)
                assert (ending.kind, text(inbox)) == (None, b"onetwo")
    assert len(set(served)) == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="receive stamps are Linux's")
async def test_kernel_stamps_hold_under_tls(authority: Authority) -> None:
    """Encrypted bytes are stamped by the kernel too: the lag of each read is known."""
    with ScriptedServer(answering(plain(b"ok")), tls=authority.server()) as server:
        async with native(server.url, ca_file=authority.ca_file) as transport:
            await transport.open(1)
            _, inbox = await exchange(transport)
            assert transport.timing_source is TimingSource.KERNEL
    assert inbox.lag_max_ns is not None


async def test_an_unknown_authority_is_refused_by_default(transport_to, authority: Authority) -> None:
    """No CA file: kind tls with the reason, and `open` raises TargetError."""
    with ScriptedServer(answering(plain(b"ok")), tls=authority.server()) as server:
        async with transport_to(server.url) as transport:
            ending, _ = await exchange(transport)
            with pytest.raises(TargetError, match="certificate"):
                await transport.open(1)
    assert ending.kind is FailureKind.TLS
    assert "certificate" in ending.message


async def test_a_certificate_for_another_host_is_refused(transport_to, authority: Authority) -> None:
    """A trusted certificate that names another host: kind tls."""
    with ScriptedServer(answering(plain(b"ok")), tls=authority.server("elsewhere.example")) as server:
        async with transport_to(server.url, ca_file=authority.ca_file) as transport:
            ending, _ = await exchange(transport)
    assert ending.kind is FailureKind.TLS


async def test_verification_can_be_switched_off(transport_to, authority: Authority) -> None:
    """`insecure` takes any certificate."""
    with ScriptedServer(answering(plain(b"ok")), tls=authority.server("elsewhere.example")) as server:
        async with transport_to(server.url, insecure=True) as transport:
            ending, inbox = await exchange(transport)
    assert (ending.kind, text(inbox)) == (None, b"ok")


async def test_server_name_is_sent(authority: Authority) -> None:
    """A host name goes out as SNI, so that a shared front end can choose its certificate."""
    names = []
    context = authority.server("localhost")
    context.sni_callback = lambda _, name, __: names.append(name)
    with ScriptedServer(answering(plain(b"ok")), tls=context) as server:
        async with native(f"https://localhost:{server.port}", ca_file=authority.ca_file) as transport:
            ending, _ = await exchange(transport)
    assert ending.kind is None
    assert names == ["localhost"]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_client_certificates(transport_to, authority: Authority, tmp_path: Path, version: ssl.TLSVersion) -> None:
    """A server that wants a certificate serves who has one and fails who has none as tls, in either version.

    In TLS 1.3 the refusal comes after the client's side of the handshake, so it is met while reading, and httpx2 may
    see only the reset behind it.
    """
    context = authority.server()
    context.minimum_version = context.maximum_version = version
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.ca_file)
    certificate = authority.ca.issue_cert("client@example")
    cert_file, key_file = tmp_path / "cert.pem", tmp_path / "key.pem"
    certificate.cert_chain_pems[0].write_to_path(str(cert_file))
    certificate.private_key_pem.write_to_path(str(key_file))

    def script(peer: Peer) -> None:
        while peer.read_request() is not None:
            peer.send(plain(b"ok"))

    with ScriptedServer(script, tls=context) as server:
        options = {"client_cert": str(cert_file), "client_key": str(key_file)}
        async with transport_to(server.url, ca_file=authority.ca_file, **options) as transport:
            ending, inbox = await exchange(transport)
            assert (ending.kind, text(inbox)) == (None, b"ok")
        async with transport_to(server.url, ca_file=authority.ca_file) as transport:
            ending, _ = await exchange(transport)
            late = transport_to is httpx and version is ssl.TLSVersion.TLSv1_3
            assert ending.kind is FailureKind.TLS or (late and ending.kind is FailureKind.READ)


async def test_a_plain_server_behind_https(transport_to) -> None:
    """TLS spoken to a server that speaks plain HTTP: kind tls, not a hang."""

    def script(peer: Peer) -> None:
        peer.sock.recv(4096)
        peer.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    with ScriptedServer(script) as server:
        async with transport_to(server.url.replace("http:", "https:")) as transport:
            ending, _ = await exchange(transport)
    assert ending.kind is FailureKind.TLS


async def test_plain_http_to_a_tls_server(authority: Authority) -> None:
    """The other way round, the TLS alert is no HTTP: kind protocol or a lost connection, with a message."""
    with ScriptedServer(answering(plain(b"ok")), tls=authority.server()) as server:
        async with native(f"http://127.0.0.1:{server.port}") as transport:
            ending, _ = await exchange(transport)
    assert ending.kind in (FailureKind.PROTOCOL, FailureKind.READ)
    assert ending.message


async def test_an_unframed_body_needs_the_tls_end(authority: Authority) -> None:
    """A body that lasts until the close is whole if TLS says so, and truncated if the connection is merely cut."""

    def closing_in_order(peer: Peer) -> None:
        peer.read_request()
        peer.send(b"HTTP/1.1 200 OK\r\n\r\n", b"all")
        peer.sock.unwrap()

    head_and_part = answering_once(b"HTTP/1.1 200 OK\r\n\r\n", b"al")
    for script, kind in ((closing_in_order, None), (head_and_part, FailureKind.TRUNCATED)):
        with ScriptedServer(script, tls=authority.server()) as server:
            async with native(server.url, ca_file=authority.ca_file) as transport:
                ending, _ = await exchange(transport)
        assert ending.kind is kind


async def test_large_bodies_both_ways(authority: Authority) -> None:
    """Four megabytes up and down: many TLS records, partial writes, nothing lost."""
    body = bytes(range(256)) * (4 << 12)

    def script(peer: Peer) -> None:
        request = peer.read_request(piece_bytes=1 << 17)
        peer.send(plain(request.body))

    with ScriptedServer(script, tls=authority.server()) as server:
        async with native(server.url, ca_file=authority.ca_file) as transport:
            ending, inbox = await exchange(transport, body=body)
    assert ending.kind is None
    assert text(inbox) == body


async def test_a_handshake_that_never_ends_is_a_connect_timeout(transport_to) -> None:
    """A server that accepts and says nothing: the connect limit covers the handshake."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        async with transport_to(url, timeouts=Timeouts(connect_s=0.2)) as transport:
            ending, _ = await exchange(transport)
    assert ending.kind is FailureKind.CONNECT_TIMEOUT
