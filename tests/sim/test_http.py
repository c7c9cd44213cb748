"""The HTTP side of the simulated servers, over real sockets."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count

import pytest

from loadgen.sim.http import LAST_CHUNK, Connection, Exchange, chunk

GET = b"GET /%b HTTP/1.1\r\nHost: x\r\n\r\n"

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def connected(answer: Callable[[Exchange], None]) -> AsyncIterator[Streams]:
    """A client of a server that answers so. Its clock counts the reads."""
    ticks = count(1)
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(lambda: next(ticks), answer), "127.0.0.1", 0
    )
    async with server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
        try:
            yield reader, writer
        finally:
            writer.close()


def echo(exchange: Exchange) -> None:
    """Says what was asked."""
    exchange.respond(200, "text/plain", f"{exchange.method} {exchange.target} {exchange.body!r}".encode())


async def response(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Head and body of one whole answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.partition(b"Content-Length: ")[2].split(b"\r\n")[0])
    return head, await reader.readexactly(length)


async def test_requests_of_one_connection_are_answered_one_after_the_other():
    """Keep-alive holds, with and without a body, and a request is understood in any pieces."""
    seen: list[Exchange] = []

    def answer(exchange: Exchange) -> None:
        seen.append(exchange)
        echo(exchange)

    async with connected(answer) as (reader, writer):
        writer.write(GET % b"a?b=c")
        assert (await response(reader))[1] == b"GET /a?b=c b''"
        for byte in b"POST /d HTTP/1.1\r\nX-Request-ID: r\r\nContent-Length: 3\r\n\r\nabc":
            writer.write(bytes((byte,)))
            await writer.drain()
        head, body = await response(reader)
    assert head.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n")
    assert body == b"POST /d b'abc'"
    assert [exchange.path for exchange in seen] == ["/a", "/d"]
    assert seen[1].headers["x-request-id"] == "r"
    assert seen[0].received_ns == 1, "the instant of the read that completed the request"
    assert not any(exchange.open for exchange in seen)


async def test_pipelined_requests_keep_their_order():
    """A request that comes before the answer to the one before waits for it, however many there are."""
    waiting: asyncio.Queue[Exchange] = asyncio.Queue()

    def answer(exchange: Exchange) -> None:
        if exchange.path == "/slow":
            waiting.put_nowait(exchange)
        else:
            echo(exchange)

    async with connected(answer) as (reader, writer):
        writer.write(GET % b"slow" + b"".join(GET % b"%d" % number for number in range(2000)) + GET % b"slow")
        exchange = await waiting.get()
        echo(exchange)
        assert (await response(reader))[1] == b"GET /slow b''"
        for number in range(2000):
            assert (await response(reader))[1] == b"GET /%d b''" % number
        echo(await waiting.get())
        assert (await response(reader))[1] == b"GET /slow b''"


async def test_requests_that_wait_have_a_limit():
    """A client that sends many large requests ahead of the first answer is no longer read from."""
    waiting: asyncio.Queue[Exchange] = asyncio.Queue()
    async with connected(waiting.put_nowait) as (_, writer):
        writer.write((b"POST /a HTTP/1.1\r\nContent-Length: 1048576\r\n\r\n" + bytes(2**20)) * 48)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(writer.drain(), 0.4)
        assert waiting.qsize() == 1
        waiting.get_nowait().reset()
        writer.transport.abort()
        await asyncio.sleep(0)


async def test_a_stream_is_chunked_and_the_next_request_follows_it():
    """`begin`, chunks and the last chunk are a body of HTTP/1.1; the connection carries on."""

    def answer(exchange: Exchange) -> None:
        exchange.begin("text/event-stream")
        exchange.send(chunk(b"data: a\n\n"))
        exchange.send(chunk(b"data: [DONE]\n\n") + LAST_CHUNK)
        exchange.end()

    async with connected(answer) as (reader, writer):
        for _ in range(2):
            writer.write(GET % b"s")
            head = await reader.readuntil(b"\r\n\r\n")
            assert b"Transfer-Encoding: chunked" in head
            assert await reader.readuntil(b"0\r\n\r\n") == b"9\r\ndata: a\n\n\r\ne\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


async def test_head_has_no_body():
    """The answer to HEAD ends with its head, which tells the length that a body would have."""
    async with connected(echo) as (reader, writer):
        writer.write(b"HEAD /a HTTP/1.1\r\n\r\n" + GET % b"b")
        assert b"Content-Length: 11" in await reader.readuntil(b"\r\n\r\n")
        head, body = await response(reader)
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert body == b"GET /b b''"


@pytest.mark.parametrize("request_head", [b"GET /a HTTP/1.0\r\n", b"GET /a HTTP/1.1\r\nConnection: close\r\n"])
async def test_a_client_that_wants_no_further_answer_gets_none(request_head):
    """The connection closes behind the answer, which says so."""
    async with connected(echo) as (reader, writer):
        writer.write(request_head + b"\r\n" + GET % b"ignored")
        head, _ = await response(reader)
        assert b"\r\nConnection: close\r\n" in head
        assert await reader.read() == b""


async def test_what_is_no_http_is_closed_without_a_word():
    """A TLS client gets no answer that it could not read."""
    async with connected(echo) as (reader, writer):
        writer.write(b"\x16\x03\x01 hello\r\n\r\n")
        assert await reader.read() == b""


@pytest.mark.parametrize("broken", [b"GET /a NONSENSE\r\n\r\n", b"POST /a HTTP/1.1\r\nContent-Length: z\r\n\r\n"])
async def test_a_broken_request_is_refused(broken):
    """A request that begins like one gets a 400, and the connection closes."""
    async with connected(echo) as (reader, writer):
        writer.write(broken)
        assert (await response(reader))[0].startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert await reader.read() == b""


async def test_what_was_asked_before_a_broken_request_is_answered():
    """The answer under way is finished; then the connection closes."""
    waiting: asyncio.Queue[Exchange] = asyncio.Queue()
    async with connected(waiting.put_nowait) as (reader, writer):
        writer.write(GET % b"a" + b"nonsense\r\n\r\n")
        exchange = await waiting.get()
        echo(exchange)
        assert (await response(reader))[1] == b"GET /a b''"
        assert await reader.read() == b""


async def test_a_body_has_a_limit():
    """More than 64 MiB get a 413, which a client that still sends can read."""
    async with connected(echo) as (reader, writer):
        writer.write(b"POST /a HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n" + bytes(64 * 2**20 + 1))
        assert (await response(reader))[0].startswith(b"HTTP/1.1 413 ")


async def test_a_client_may_ask_first_whether_to_send():
    """`Expect: 100-continue` is told to go on."""
    async with connected(echo) as (reader, writer):
        writer.write(b"POST /a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"abc")
        assert (await response(reader))[1] == b"POST /a b'abc'"


async def test_an_upgrade_is_not_taken_up():
    """A client that offers another protocol gets its answer in this one, and no further one."""
    async with connected(echo) as (reader, writer):
        writer.write(b"GET /a HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        assert (await response(reader))[1] == b"GET /a b''"
        assert await reader.read() == b""


async def test_a_client_that_leaves_is_noticed():
    """`on_gone` is called when the client leaves before the end, once, and what is sent then goes nowhere."""
    left = asyncio.Event()
    waiting: asyncio.Queue[Exchange] = asyncio.Queue()

    def answer(exchange: Exchange) -> None:
        exchange.on_gone = left.set
        waiting.put_nowait(exchange)

    async with connected(answer) as (_, writer):
        writer.write(GET % b"a")
        exchange = await waiting.get()
        assert exchange.open
        writer.close()
        await left.wait()
    assert not exchange.open
    echo(exchange)


async def test_a_client_that_leaves_after_its_answer_is_not_missed():
    """`on_gone` is about answers, not connections."""

    def answer(exchange: Exchange) -> None:
        exchange.on_gone = lambda: pytest.fail("the answer was complete")
        echo(exchange)

    async with connected(answer) as (reader, writer):
        writer.write(GET % b"a")
        await response(reader)
        writer.close()
        await writer.wait_closed()
        await asyncio.sleep(0.01)


async def test_what_an_answer_holds_is_free_when_it_ends():
    """An exchange's functions go with its end, not with the next collection of garbage."""

    class Held:
        def gone(self) -> None:
            """What an exchange holds on to."""

    held: list[weakref.ref[Held]] = []

    def answer(exchange: Exchange) -> None:
        holder = Held()
        holder.exchange = exchange
        exchange.on_gone = exchange.on_writable = holder.gone
        held.append(weakref.ref(holder))
        echo(exchange)

    gc.disable()
    try:
        async with connected(answer) as (reader, writer):
            writer.write(GET % b"a")
            await response(reader)
            assert held[0]() is None
    finally:
        gc.enable()


async def test_a_connection_is_free_when_its_client_has_left():
    """Nor does a connection wait for a collection of garbage, of which a server makes as few as it can."""
    held: list[weakref.ref[Connection]] = []
    left = asyncio.Event()

    def connection() -> Connection:
        made = Connection(lambda: 0, echo)
        held.append(weakref.ref(made, lambda _: left.set()))
        return made

    gc.disable()
    try:
        async with await asyncio.get_running_loop().create_server(connection, "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
            writer.write(GET % b"a")
            await response(reader)
            writer.close()
            async with asyncio.timeout(5):
                await left.wait()
    finally:
        gc.enable()


async def test_a_client_that_does_not_read_is_noticed():
    """`paused` while the buffers are full, `on_writable` when they no longer are."""
    writable = asyncio.Event()
    waiting: asyncio.Queue[Exchange] = asyncio.Queue()

    def answer(exchange: Exchange) -> None:
        exchange.on_writable = writable.set
        waiting.put_nowait(exchange)

    async with connected(answer) as (reader, writer):
        writer.write(GET % b"a")
        exchange = await waiting.get()
        exchange.begin("text/plain")
        assert not exchange.paused
        sent = 0
        while not exchange.paused:
            exchange.send(chunk(bytes(2**20)))
            sent += 1
        assert not writable.is_set()
        reading = asyncio.create_task(reader.readexactly(sent * 2**20))
        await writable.wait()
        assert not exchange.paused
        await reading


@pytest.mark.parametrize("ending", ["cut", "reset"])
async def test_an_answer_can_end_in_the_middle(ending):
    """`cut` closes behind what was sent, `reset` resets; neither is the client's leaving."""
    waiting: asyncio.Queue[Exchange] = asyncio.Queue()

    def answer(exchange: Exchange) -> None:
        exchange.on_gone = lambda: pytest.fail("the client did not leave")
        exchange.begin("text/plain")
        exchange.send(chunk(b"abc"))
        waiting.put_nowait(exchange)

    async with connected(answer) as (reader, writer):
        writer.write(GET % b"a")
        received = await reader.readuntil(b"abc\r\n")
        exchange = await waiting.get()
        getattr(exchange, ending)()
        if ending == "cut":
            assert await reader.read() == b""
        else:
            with pytest.raises(ConnectionResetError):
                await reader.read()
        assert not exchange.open
    assert not received.endswith(LAST_CHUNK)
