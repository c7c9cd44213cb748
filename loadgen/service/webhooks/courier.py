"""Delivers what is in the outbox, in a thread of its own, so that no slow receiver holds anything up."""

import asyncio
import json
import logging
import os
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2

from loadgen.core.errors import ConfigError
from loadgen.service.admission.addresses import AllowList
from loadgen.service.admission.targets import Resolver, check_host, resolve_name
from loadgen.service.clock import Clock
from loadgen.service.store.database import Database
from loadgen.service.webhooks import outbox
from loadgen.service.webhooks.signing import secret_bytes, signed_headers

LOG = logging.getLogger("loadgen.service.webhooks")

_LIMIT_S = 10.0
_AT_ONCE = 20
_LONGEST_ERROR = 200


class Courier:
    """One for a service. A delivery takes `limit_s` at most, however slowly its receiver goes on, after its name was
    looked up, which ends when the system's resolver gives up."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        allowed: AllowList,
        *,
        variables: Mapping[str, str] = os.environ,
        resolve: Resolver = resolve_name,
        limit_s: float = _LIMIT_S,
    ) -> None:
        self._database, self._clock, self._allowed = database, clock, allowed
        self._variables, self._resolve, self._limit_s = variables, resolve, limit_s
        self._stopping = threading.Event()
        self._tls = httpx2.create_ssl_context(trust_env=False)

    def turn(self) -> None:
        """Delivers what is due."""
        with self._database.read() as connection:
            messages = outbox.due(connection, self._clock.now_unix_ms(), _AT_ONCE)
        for message in messages:
            if self._stopping.is_set():
                return
            with self._database.write() as connection:
                if not outbox.claim(connection, message, self._clock.now_unix_ms()):
                    continue
            error = self._deliver(message)
            with self._database.write() as connection:
                outbox.note(connection, message, self._clock.now_unix_ms(), error)
            if error is not None:
                LOG.warning("webhook not delivered", extra={"webhook_id": message["webhook_id"], "fault": error})

    def stop(self) -> None:
        """From now on nothing more is begun: each message may take its receiver's time, and the service is to end."""
        self._stopping.set()

    def _deliver(self, message: dict[str, Any]) -> str | None:
        """None when the receiver has it, else why not; nothing of its answer is kept."""
        body = json.dumps(message["body"], separators=(",", ":")).encode()
        try:
            secret = secret_bytes(self._variables.get(message["secret_env"], ""))
            check_receiver(message["url"], self._allowed, self._resolve)
            headers = signed_headers(secret, message["id"], self._clock.now_unix_ms() // 1000, body)
            status = asyncio.run(self._send(message["url"], body, {"Content-Type": "application/json", **headers}))
        except PermissionError:
            return "the receiver's address is not allowed"
        except ConfigError as fault:
            return f"the secret or the URL will not do: {fault}"[:_LONGEST_ERROR]
        except TimeoutError:
            return f"took longer than {self._limit_s:g} s"
        except httpx2.HTTPError as fault:
            return type(fault).__name__
        return None if 200 <= status < 300 else f"answered {status}"

    async def _send(self, url: str, body: bytes, headers: dict[str, str]) -> int:
        """The status of the answer. A client's own timeouts are from one byte to the next: this one is of the whole."""
        async with (
            asyncio.timeout(self._limit_s),
            httpx2.AsyncClient(timeout=None, follow_redirects=False, trust_env=False, verify=self._tls) as client,
            client.stream("POST", url, content=body, headers=headers) as response,
        ):
            return response.status_code


def check_receiver(url: str, allowed: AllowList, resolve: Resolver) -> None:
    """Raises ConfigError for what is no URL of a receiver, PermissionError for one that is not allowed."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    except (ValueError, KeyError):
        raise ConfigError("expected an http or https URL") from None
    if not parts.hostname or parts.username is not None or not url.isprintable():
        raise ConfigError("expected an http or https URL with a host and without user info")
    check_host(parts.hostname, port, allowed, resolve)
