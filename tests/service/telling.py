"""A webhook that a test's receiver gets, and who delivers to it."""

import asyncio
from typing import Any

from loadgen.service.admission.targets import Resolver
from loadgen.service.services import Services
from loadgen.service.webhooks.courier import Courier
from tests.service.conftest import resolve

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def courier_of(services: Services, resolver: Resolver = resolve, **more: Any) -> Courier:
    """One that knows the secret."""
    variables = {"HOOK_SECRET": SECRET}
    return Courier(services.database, services.clock, services.receivers, variables=variables, resolve=resolver, **more)


async def deliver(courier: Courier) -> None:
    """What is due, in a thread of its own as in the service."""
    await asyncio.to_thread(courier.turn)


def hook(url: str, *kinds: str) -> dict[str, Any]:
    """A webhook to be made."""
    return {"name": "chat", "url": url, "secret_env": "HOOK_SECRET", "kinds": list(kinds)}
