"""Watching sockets, with a nested epoll and with the loop's own watchers: the same promises."""

import asyncio
import select
import socket

import pytest

from loadgen.adapters.http.readiness import Readiness


@pytest.fixture(params=[True, False], ids=["nested", "loop"])
def nested(request) -> bool:
    """Both ways, where the system has both."""
    if request.param and not hasattr(select, "epoll"):
        pytest.skip("no epoll here")
    return request.param


class Watched:
    """A socket pair whose near end is watched; `seen` collects (readable, writable)."""

    def __init__(self, watch: Readiness) -> None:
        self.near, self.far = socket.socketpair()
        self.near.setblocking(False)
        self.seen: list[tuple[bool, bool]] = []
        self.watch = watch
        watch.watch(self.near.fileno(), self.ready)

    def ready(self, readable: bool, writable: bool) -> None:
        """Takes what can be read and notes the call."""
        self.seen.append((readable, writable))
        if readable:
            self.near.recv(100)

    def close(self) -> None:
        """Both ends."""
        self.watch.forget(self.near.fileno())
        self.near.close()
        self.far.close()


async def test_reading_and_writing_are_told_apart(nested: bool) -> None:
    """Room to write is reported only while it is wanted; what can be read always is; each turn is announced first."""
    turns = []
    watch = Readiness(lambda: turns.append(1), nested=nested)
    pair = Watched(watch)
    await asyncio.sleep(0.01)
    assert pair.seen == []
    pair.far.send(b"x")
    await asyncio.sleep(0.01)
    assert pair.seen == [(True, False)]
    watch.watch_writing(pair.near.fileno(), True)
    await asyncio.sleep(0.01)
    watch.watch_writing(pair.near.fileno(), False)
    assert (False, True) in pair.seen
    settled = len(pair.seen)
    await asyncio.sleep(0.01)
    assert len(pair.seen) == settled
    assert turns
    pair.close()
    watch.close()


async def test_a_peer_that_closes_makes_its_socket_readable(nested: bool) -> None:
    """The end of the stream is something to read."""
    watch = Readiness(lambda: None, nested=nested)
    pair = Watched(watch)
    pair.far.close()
    await asyncio.sleep(0.01)
    assert pair.seen
    assert all(readable for readable, _ in pair.seen)
    pair.close()
    watch.close()


async def test_a_socket_closed_by_another_handler_of_the_turn_is_left_alone(nested: bool) -> None:
    """Two are ready at once and each closes the other: one handler runs, the other does not, and nothing breaks."""
    watch = Readiness(lambda: None, nested=nested)
    pairs = [Watched(watch), Watched(watch)]
    calls = []

    def closing(other: Watched):
        def ready(readable: bool, writable: bool) -> None:
            calls.append(1)
            for pair in (other, *(pair for pair in pairs if pair is not other)):
                pair.close()

        return ready

    for index, pair in enumerate(pairs):
        watch.forget(pair.near.fileno())
        watch.watch(pair.near.fileno(), closing(pairs[1 - index]))
        pair.far.send(b"x")
    await asyncio.sleep(0.02)
    assert calls == [1]
    watch.close()
