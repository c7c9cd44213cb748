"""Up to which load an arm pays, in words and as a figure."""

from itertools import pairwise

from loadgen.core.comparison.crossover import Crossover, NoCrossover
from loadgen.report.comparison.trade_offs import levels_text, listed, sure
from loadgen.report.words import DASH, asked


def pays_text(crossover: Crossover, variable: str, *, top: float, one_start: bool = False) -> str:
    """Up to which load an arm pays; reads on from its name. `top` is the highest level of the ladder."""
    if crossover.level is not None:
        load = f"{_level(crossover.level)} {load_unit(variable)}"
        words = "stops paying" if crossover_seen(crossover) and not one_start else "seems to stop paying"
        return f"{words} at about {load} {crossover_bounds(crossover, top=top)}"
    certainly, within = sure(one_start=one_start), f" {sure(one_start=True)}" if one_start else ""
    match crossover.reason:
        case NoCrossover.UNSEEN:
            return f"neither pays nor costs {certainly} at any level measured"
        case NoCrossover.NOWHERE:
            if crossover.unclaimed:
                costs = f", and costs {certainly} at {levels_text(crossover.slower)}" if crossover.slower else ""
                return f"pays {certainly} at no level measured{costs}"
            return f"pays at no level measured{within}"
        case NoCrossover.RISES:
            if crossover.faster and crossover.slower:
                return f"pays at the higher levels only{within}"
            shown = f", {certainly} at {levels_text(crossover.faster)}" if crossover.faster else ""
            return f"seems to pay at the higher levels only{shown}"
        case NoCrossover.SEVERAL:
            return _several_text(crossover, certainly, within)
        case _ if not crossover.unclaimed:
            return f"pays at every level measured{within}"
        case _:
            certain = levels_text(crossover.faster) if crossover.faster else "none"
            return f"seems to pay at every level measured, {certainly} at {certain}"


def crossover_seen(crossover: Crossover) -> bool:
    """Whether levels on both sides of where the speedup falls to 1 show what they have to."""
    level = crossover.level
    return (
        level is not None
        and any(each < level for each in crossover.faster)
        and any(each > level for each in crossover.slower)
    )


def _several_text(crossover: Crossover, certainly: str, within: str) -> str:
    """That it crosses more than once, where that is claimed; else what is."""
    shown = sorted([(level, True) for level in crossover.faster] + [(level, False) for level in crossover.slower])
    if sum(first != second for (_, first), (_, second) in pairwise(shown)) > 1:
        return f"goes from gain to loss more than once{within}, so there is no one load up to which it pays"
    parts = [
        f"{verb} {certainly} at {levels_text(levels)}"
        for verb, levels in (("pays", crossover.faster), ("costs", crossover.slower))
        if levels
    ]
    return f"{listed(parts)}, and elsewhere nothing is shown, so no one load is told up to which it pays"


def load_unit(variable: str) -> str:
    """What a level counts."""
    return "concurrent requests" if variable == "concurrency" else "requests/s"


def crossover_figure(crossover: Crossover, *, top: float) -> str:
    """Up to which load an arm pays, as a short value."""
    if crossover.reason is NoCrossover.EVERYWHERE:
        return f"> {asked(top)}"
    return DASH if crossover.level is None else _level(crossover.level)


def crossover_beside(crossover: Crossover, variable: str, *, top: float, one_start: bool) -> str:
    """What stands beside that value: its bounds and how far they may be believed, or why there is no value."""
    if crossover.level is None:
        return pays_text(crossover, variable, top=top, one_start=one_start)
    bounds = crossover_bounds(crossover, top=top)
    if not crossover_seen(crossover):
        return f"{bounds}, not {sure(one_start=False)}"
    return f"{bounds}, {sure(one_start=True)}" if one_start else bounds


def crossover_bounds(crossover: Crossover, *, top: float) -> str:
    """Up to where it pays without doubt, and from where on it does not: `[24, 44]`."""
    low = "below the ladder" if crossover.low is None else _level(crossover.low)
    high = f"above {asked(top)}" if crossover.high is None else _level(crossover.high)
    return f"[{low}, {high}]"


def _level(level: float) -> str:
    return f"{level:.0f}" if level >= 9.95 else f"{level:.1f}"
