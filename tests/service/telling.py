"""A webhook that a test's receiver gets, and who delivers to it."""

from typing import Any

from loadgen.service.admission.targets import Resolver
from loadgen.service.services import Services
from loadgen.service.webhooks.courier import Courier
from tests.service.conftest import resolve

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def courier_of(services: Services, resolver: Resolver = resolve) -> Courier:
    """One that knows the secret."""
    return Courier(
        services.database, services.clock, services.receivers, variables={"HOOK_SECRET": SECRET}, resolve=resolver
    )


def hook(url: str, *kinds: str) -> dict[str, Any]:
    """A webhook to be made."""
    return {"name": "chat", "url": url, "secret_env": "HOOK_SECRET", "kinds": list(kinds)}
