"""Keeps planned requests ready ahead of the clock, so that no prompt is built when its request is due."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from loadgen.core.request import PlannedConversation, PlannedRequest

MAX_REQUESTS = 4096
MAX_BYTES = 48 * 1024 * 1024


class ReadyConversation:
    """A planned conversation with each request's prepared form; None where it depends on answers."""

    __slots__ = ("planned", "prepared")

    def __init__(self, planned: PlannedConversation, prepared: list[Any]) -> None:
        self.planned = planned
        self.prepared = prepared


class Lookahead:
    """A bounded queue of prepared conversations over a plan. `late` counts those that were not ready when wanted."""

    def __init__(
        self,
        plan: Iterator[PlannedConversation],
        prepare: Callable[[bytes, str], Any],
        *,
        max_requests: int = MAX_REQUESTS,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._plan = plan
        self._prepare = prepare
        self._max_requests, self._max_bytes = max_requests, max_bytes
        self._ready: deque[tuple[ReadyConversation, int, int]] = deque()
        self._requests = self._bytes = 0
        self._exhausted = False
        self.late = 0

    @property
    def size(self) -> int:
        """Conversations that are ready."""
        return len(self._ready)

    def top_up(self) -> bool:
        """Prepares one more conversation; False when the queue is full or the plan is at its end."""
        if self._exhausted or self._requests >= self._max_requests or self._bytes >= self._max_bytes:
            return False
        conversation = next(self._plan, None)
        if conversation is None:
            self._exhausted = True
            return False
        size = sum(len(request.body) for request in conversation.requests if request.body is not None)
        ready = ReadyConversation(conversation, [self._prepared(request) for request in conversation.requests])
        self._ready.append((ready, len(conversation.requests), size))
        self._requests += len(conversation.requests)
        self._bytes += size
        return True

    def next(self) -> ReadyConversation | None:
        """The next conversation of the plan, None at its end."""
        if not self._ready:
            if not self.top_up():
                return None
            self.late += 1
        ready, requests, size = self._ready.popleft()
        self._requests -= requests
        self._bytes -= size
        return ready

    def rest(self) -> Iterator[PlannedConversation]:
        """What is left of the plan, in order and unprepared: none of it will be sent."""
        self._exhausted = True
        while self._ready:
            yield self._ready.popleft()[0].planned
        yield from self._plan

    def _prepared(self, request: PlannedRequest) -> Any:
        return None if request.body is None else self._prepare(request.body, request.request_id)
