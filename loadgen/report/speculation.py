"""Acceptance in words and tables, alike on a terminal and on a page."""

from dataclasses import dataclass

from loadgen.core.metrics.summary import (
    AcceptanceView,
    Comparison,
    Distribution,
    Speculation,
    Summary,
    TpotByAcceptance,
)
from loadgen.core.server.configuration import SpeculationConfiguration
from loadgen.core.stats.bootstrap import Estimate
from loadgen.core.stats.quantiles import PERCENTILES
from loadgen.report.tables import TextTable
from loadgen.report.words import DASH, asked, number, percent, printable

_WHO = {
    "counters": "the server's metrics page",
    "per_request": "the block in each answer",
    "stream": "the tokens of each event",
    "gauge": "the engine's own figure",
}
_STEPS = {"drafting_steps": "steps that drafted", "decode_steps": "decode steps, drafted or not"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Two origins beside each other: `said` has a part for each quantity, `reasons` why any of them may differ.

    `agrees` is False when one leaves what the definitions allow, None when none could be judged.
    """

    pair: str
    agrees: bool | None
    said: tuple[str, ...]
    reasons: tuple[str, ...]


def no_speculation_text(summary: Summary) -> str:
    """The one line of a run without speculation."""
    configuration = summary.server.configuration
    if configuration is not None and configuration.speculates is False:
        return "None: the server says that it makes no drafts, and none were seen."
    return "None: no origin shows a draft."


def speculation_facts(found: Speculation, told: SpeculationConfiguration | None) -> list[tuple[str, str]]:
    """The headline with its population, and the notes. `told` is how the server says that it drafts."""
    steps = _STEPS.get(found.population or "", "steps")
    length = DASH
    if found.acceptance_length is not None:
        length = f"{number(found.acceptance_length)} tokens over {number(found.steps)} {steps}"
    ratio = DASH
    if found.acceptance_ratio is not None:
        ratio = (
            f"{percent(found.acceptance_ratio)}: {number(found.accepted_tokens)} of"
            f" {number(found.drafted_tokens)} drafted tokens accepted"
        )
    per_step = DASH
    if found.tokens_per_step is not None:
        per_step = f"{number(found.tokens_per_step)} over all decode steps"
    if found.coverage_ratio is not None:
        per_step += f"; {percent(found.coverage_ratio)} of them drafted"
    return [
        ("Method", _method_text(found, told)),
        ("Acceptance length", length),
        ("Tokens per step", per_step),
        ("Acceptance ratio", ratio),
        ("Counted by", f"{_WHO.get(found.origin, '')} ({origin_text(found.origin)})"),
        *(("Note", printable(note)) for note in found.notes),
    ]


def _method_text(found: Speculation, told: SpeculationConfiguration | None) -> str:
    parts = [printable(found.method)] if found.method else []
    if found.draft_tokens is not None:
        parts.append(f"{found.draft_tokens} draft tokens")
    if told is not None and told.draft_model:
        parts.append(f"draft model {printable(told.draft_model)}")
    if found.forced:
        length = None if told is None else told.forced_acceptance_length
        parts.append("acceptance made up" + ("" if length is None else f" to {number(length)} tokens a step"))
    if told is not None and told.lossy:
        parts.append(f"lossy: {', '.join(map(printable, told.lossy))}")
    return ", ".join(parts) or "the server does not tell"


def origin_text(origin: str) -> str:
    """An origin as it stands in tables."""
    return printable(origin).replace("_", " ")


def origins(found: Speculation) -> TextTable:
    """Each origin as it counted; the headline's row is marked."""
    caption = "; ".join(f"{origin_text(view.origin)}: {_WHO.get(view.origin, '')}" for view in found.views)
    return TextTable(
        caption=f"{caption[:1].upper()}{caption[1:]}. Length and ratio are of the steps named, tokens per step of all.",
        titles=(
            "origin",
            "<steps counted",
            "<in",
            "steps",
            "drafted",
            "accepted",
            "length",
            "ratio",
            "tok/step",
            "coverage",
        ),
        rows=tuple(
            (
                origin_text(view.origin),
                view.population.removesuffix("_steps"),
                view.scope.removeprefix("measured_"),
                number(view.steps),
                number(view.drafted_tokens),
                number(view.accepted_tokens),
                number(view.acceptance_length),
                percent(view.acceptance_ratio),
                number(view.tokens_per_step),
                percent(view.coverage_ratio),
            )
            for view in found.views
        ),
        marked=tuple(place for place, view in enumerate(found.views) if view.origin == found.origin),
        spare=(9, 4, 2, 5, 1, 3, 7),
    )


def agreements(found: Speculation) -> list[Agreement]:
    """The pairs of origins, each with all that was compared."""
    pairs: dict[tuple[str, str], list[Comparison]] = {}
    for one in found.agreement:
        pairs.setdefault((one.left, one.right), []).append(one)
    return [
        Agreement(
            pair=f"{origin_text(left)}, {origin_text(right)}",
            agrees=_agree(compared),
            said=tuple(map(_difference_text, compared)),
            reasons=tuple(dict.fromkeys(printable(one.why) for one in compared if one.difference != 0)),
        )
        for (left, right), compared in pairs.items()
    ]


def _agree(compared: list[Comparison]) -> bool | None:
    known = [one.agrees for one in compared if one.agrees is not None]
    return all(known) if known else None


def _difference_text(one: Comparison) -> str:
    what = printable(one.quantity).replace("_", " ")
    if one.difference is None:
        return f"{what} not compared"
    if one.difference == 0:
        return f"{what} {_amount(one.left_value)} by both"
    text = f"{what} {_amount(one.left_value)} and {_amount(one.right_value)}, {_amount(one.difference)} apart"
    if one.allowed is None:
        return f"{text} with no bound to what may be"
    return f"{text} where {_amount(one.allowed[0])} to {_amount(one.allowed[1])} may be"


def _amount(value: float | None) -> str:
    """A count as a whole number, whatever type it has."""
    return asked(value) if value is not None and value == int(value) else number(value)


def view_with_positions(found: Speculation) -> AcceptanceView | None:
    """The view that tells acceptance by position: the headline's, else the first that does; None without one."""
    views = sorted(found.views, key=lambda view: view.origin != found.origin)
    return next((view for view in views if view.by_position), None)


def positions(view: AcceptanceView) -> TextTable:
    """Acceptance by draft token, as far as any was accepted."""
    shares = view.by_position or ()
    conditional = view.conditional_by_position or (None,) * len(shares)
    reached = sum(share > 0 for share in shares)
    caption = (
        f"Shares of the {_STEPS.get(view.population, 'steps')} ({origin_text(view.origin)}). Accepted: this draft token"
        " and all before it; conditional: of the steps that accepted the one before."
    )
    if reached < len(shares):
        caption += f" None beyond {reached}."
    return TextTable(
        caption=caption,
        titles=("draft token", "accepted", "conditional"),
        rows=tuple((str(i + 1), percent(shares[i]), percent(conditional[i])) for i in range(reached)),
    )


def output_positions(found: Speculation) -> TextTable:
    """Tokens per step along an answer."""
    return TextTable(
        caption="By the output token at which a step began; intervals of 95% take requests as independent.",
        titles=("output token", "requests", "steps", "tok/step", "from", "to"),
        rows=tuple(
            (
                f"{one.first} to {one.last}",
                number(one.requests),
                number(one.steps),
                number(one.tokens_per_step),
                number(one.low),
                number(one.high),
            )
            for one in found.by_output_position
        ),
        spare=(2, 1),
    )


def categories(found: Speculation) -> TextTable:
    """Acceptance of each category of the data."""
    return TextTable(
        caption="Completed measured requests by the data's category; length and ratio as the origin counts.",
        titles=("category", "<origin", "requests", "steps", "length", "ratio", "tok/step"),
        rows=tuple(
            (
                printable(one.category),
                origin_text(one.origin),
                number(one.requests),
                number(one.steps),
                number(one.acceptance_length),
                percent(one.acceptance_ratio),
                number(one.tokens_per_step),
            )
            for one in found.by_category
        ),
        spare=(3, 1, 5, 2),
    )


def by_request(found: Speculation) -> TextTable | None:
    """Distributions with one value a request; None when no request has one."""
    told = found.per_request
    if told is None:
        return None
    names = ("n", "missing", "mean", "min", *PERCENTILES, "max")
    rows: list[tuple[str, Distribution]] = [
        ("acceptance length", told.acceptance_length),
        ("tokens per step", told.tokens_per_step),
    ]
    return TextTable(
        caption="One value a request, in tokens: means weigh requests, not steps.",
        titles=("", *(name.replace("_", ".") for name in names)),
        rows=tuple((label, *(number(getattr(one, name)) for name in names)) for label, one in rows if one.n),
        spare=(2, 10, 6, 7, 9, 8, 4),
    )


def slope_text(found: TpotByAcceptance) -> str:
    """How a request's TPOT goes with its tokens per step."""
    if found.slope is None:
        return f"{found.n} requests are too few, or too alike, to say how TPOT goes with tokens per step."
    slope = found.slope
    change = 2**slope.value - 1
    how = "lower" if change < 0 else "higher"
    return (
        f"A request with twice the tokens per step has a TPOT {percent(abs(change))} {how}"
        f" ({found.n} requests; slope of the logarithms {number(slope.value)},"
        f" {slope.confidence_ratio:.0%} interval {number(slope.low)} to {number(slope.high)},"
        f" correlation {number(found.correlation)}). {_slope_meaning(slope)}"
    )


def _slope_meaning(slope: Estimate) -> str:
    if slope.low > -1:
        return (
            "Steps of equal time would halve it: here steps that emit more take longer, or something else takes the"
            " time."
        )
    if slope.high < -1:
        return "Steps of equal time would halve it: here requests that accept more also have shorter steps."
    return "Steps of equal time would halve it, which lies within the interval."
