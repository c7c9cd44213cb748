"""What the process that conducts says, kept instead of written."""

from typing import Any


class Told:
    """Keeps what is told."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, event: str, **values: Any) -> None:
        self.events.append((event, values))

    def named(self, event: str) -> list[dict[str, Any]]:
        return [values for name, values in self.events if name == event]
