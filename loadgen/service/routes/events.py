"""The events of a run as server-sent events, numbered, so that a reader that was cut off goes on where it was."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from loadgen.service.clock import rfc3339
from loadgen.service.jobs import journal, queue
from loadgen.service.jobs.states import ENDED, State
from loadgen.service.routes.common import Id, Parts, Reader, problems
from loadgen.service.services import Services

router = APIRouter(prefix="/v1/runs", tags=["runs"])

_AT_ONCE = 500
_LOOK_AGAIN_S = 2.0


def _existing(run_id: Id, parts: Parts, _who: Reader) -> str:
    parts.runs.row(run_id)
    return run_id


@router.get("/{run_id}/events", response_class=EventSourceResponse, responses=problems(404))
async def follow_run(
    request: Request,
    parts: Parts,
    run_id: Annotated[str, Depends(_existing)],
    after: Annotated[int, Query(ge=0, le=2**31 - 1, description="Events behind this one.")] = 0,
    follow: Annotated[bool, Query(description="Wait for further ones until the run ends.")] = True,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID", pattern=r"^[0-9]{1,9}$")] = None,
) -> AsyncIterator[ServerSentEvent]:
    """What happened, from the beginning or from behind an event, and what happens until the run ends.

    Kinds: `state`, `progress`, `level_began`, `level`, `probe`, `note`, `server_starting`, `cancel_asked`; then `end`.
    """
    seen = after if last_event_id is None else int(last_event_id)
    loop, news = asyncio.get_running_loop(), asyncio.Event()

    def heard(of: str | None) -> None:
        if of in (None, run_id):
            with suppress(RuntimeError):  # the loop is closed: the service ends
                loop.call_soon_threadsafe(news.set)

    with parts.hub.listening(heard):
        while not await request.is_disconnected():
            news.clear()
            found, ended = await asyncio.to_thread(_look, parts, run_id, seen)
            for event in found:
                seen = event["seq"]
                data = {"at": rfc3339(event["at_unix_ms"]), **event["data"]}
                yield ServerSentEvent(id=str(seen), event=event["kind"], data=data)
            if len(found) == _AT_ONCE:
                continue
            if ended:
                yield ServerSentEvent(event="end", data={})
            if ended or not follow or parts.closing.is_set():
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), _LOOK_AGAIN_S)


def _look(parts: Services, run_id: str, seen: int) -> tuple[list[dict[str, Any]], bool]:
    with parts.database.read() as connection:
        row = queue.load(connection, run_id)
        ended = row is None or State(row["state"]) in ENDED
        return journal.read(connection, run_id, after=seen, limit=_AT_ONCE), ended
