"""Whether a server worked for others while it was measured: its token counts beside the client's own."""

from dataclasses import dataclass

from loadgen.core.server.sample import Counters

TOLERANCE_RATIO = 0.02
"""Up to this share the two sides may differ: tokens past a stop string, requests cut off, a page read a moment late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignTraffic:
    """By how much the server's counts differ from the client's, as a share of the client's.

    Above zero the server did more than the client asked for, below zero it counted less. None where a side has no
    count.
    """

    prompt_excess_ratio: float | None
    generation_excess_ratio: float | None

    @property
    def exceeds(self) -> bool:
        """Whether the server did more than the client's work, beyond what the two may differ by."""
        return any(each > TOLERANCE_RATIO for each in self._known)

    @property
    def falls_short(self) -> bool:
        """Whether the server counted less than the client, beyond what the two may differ by."""
        return any(each < -TOLERANCE_RATIO for each in self._known)

    @property
    def reason(self) -> str | None:
        """What is likely behind a difference, in words; None when the counts agree."""
        if self.exceeds:
            return "the server worked for other clients too, or for requests that the client gave up"
        if self.falls_short:
            return (
                "part of the client's work is not on the pages: another process did it, pages were read too late, or"
                " the server leaves out what its cache spared it"
            )
        return None

    @property
    def _known(self) -> list[float]:
        both = (self.prompt_excess_ratio, self.generation_excess_ratio)
        return [each for each in both if each is not None]


def foreign(
    server: Counters, *, client_prompt_tokens: float | None, client_generation_tokens: float | None
) -> ForeignTraffic | None:
    """The comparison over one span; None when no count is there on both sides.

    `server` are differences between pages that lie around all requests of the client's, those that failed included.
    """
    found = ForeignTraffic(
        prompt_excess_ratio=_excess(server.prompt_tokens, client_prompt_tokens),
        generation_excess_ratio=_excess(server.generation_tokens, client_generation_tokens),
    )
    return None if found == ForeignTraffic(prompt_excess_ratio=None, generation_excess_ratio=None) else found


def _excess(server: float | None, client: float | None) -> float | None:
    """server / client - 1; None when either is unknown, or the client has none."""
    return server / client - 1 if server is not None and client else None
