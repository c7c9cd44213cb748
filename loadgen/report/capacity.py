"""A search for a capacity in words and rows, alike on a terminal and on a page."""

from loadgen.core.capacity.probe import Ground, Miss, Probe, Shortfall, Verdict, attainment_words
from loadgen.core.capacity.result import Capacity, CapacityResult, outcome_words
from loadgen.core.capacity.search import Search, next_step
from loadgen.report.tables import TextTable
from loadgen.report.verdict import Doubt, Headline, has_doubts, level_doubts
from loadgen.report.words import DASH, LATENCY_LABELS, asked, milliseconds, number, percent, printable, span

_VERDICTS = {
    Verdict.PASS: "passes",
    Verdict.FAIL: "fails",
    Verdict.UNDECIDED: "undecided",
    Verdict.INVALID: "invalid",
    Verdict.CUT_SHORT: "cut short",
}


def level_text(variable: str, level: float) -> str:
    """A level with what it counts."""
    return f"concurrency {asked(level)}" if variable == "concurrency" else f"{asked(level)} requests/s"


def capacity_headline(search: Search, result: CapacityResult) -> Headline:
    """What the search came to, in one line."""
    verdict = result.probes[-1].verdict if result.probes else None
    if next_step(search, result.probes) is not None or verdict in (Verdict.INVALID, Verdict.CUT_SHORT):
        word = "Invalid" if verdict is Verdict.INVALID else "Not finished"
        found = "" if result.capacity is None else f"; at least {level_text(result.variable, result.capacity.level)}"
        return Headline(words=f"✗ {word}{found}", kind="invalid")
    if result.capacity is None:
        return Headline(words="✗ No capacity: the first level misses the objectives", kind="invalid")
    words = f"Capacity {level_text(result.variable, result.capacity.level)}"
    if result.next_failed is None:
        return Headline(words=f"✓ {words} or more", kind="warning")
    deciding = [probe for probe in result.probes if _decides(probe, {result.capacity.level, result.next_failed.level})]
    doubtful = any(probe.ground is Ground.ESTIMATE or has_doubts(probe.summary.findings) for probe in deciding)
    return Headline(words=f"✓ {words}" + (", with doubts" if doubtful else ""), kind="warning" if doubtful else "valid")


def capacity_doubts(result: CapacityResult) -> list[Doubt]:
    """What speaks against the probes, level by level."""
    return level_doubts((probe.level, probe.summary.findings) for probe in result.probes)


def capacity_facts(search: Search, result: CapacityResult) -> list[tuple[str, str]]:
    """What was asked for and what was found, as labelled lines."""
    attained = result.attainment
    limits = ", ".join(f"{_metric(name)} at most {span(limit_s)}" for name, limit_s in attained.objectives.items())
    rows = [("Objectives", f"{limits}; for {attained.target_ratio * 100:.6g}% of requests")]
    found = result.capacity
    if found is not None and attained.at_capacity is not None:
        rows.append(("Capacity", f"{level_text(result.variable, found.level)}; {interval_text(found)}"))
        rows.append(("Attained", attainment_words(attained.at_capacity)))
        rows.append(
            (
                "Throughput",
                f"{number(found.requests_per_s)} requests/s, {number(found.output_tokens_per_s)} output tokens/s",
            )
        )
        if found.per_gpu is not None:
            rows.append(("Per GPU", f"{number(found.per_gpu)} requests/s"))
        if found.noise is not None:
            rows.append(("Noise", noise_text(found)))
    rows.append(("End", printable(outcome_words(search, result))))
    return rows


def interval_text(found: Capacity) -> str:
    """Between which levels the capacity lies, by the intervals of attainment."""
    low = "no level passes" if found.low is None else f"{asked(found.low)} passes"
    high = "none fails" if found.high is None else f"{asked(found.high)} fails"
    return f"with 95% confidence {low} and {high}"


def noise_text(found: Capacity) -> str:
    """How alike runs of one level were."""
    if found.noise is None:
        return DASH
    noise = found.noise
    levels = "one level" if noise.levels == 1 else f"{noise.levels} levels"
    return (
        f"attainment of {noise.runs} runs at {levels} spread {noise.factor:.2g} times as much as chance makes"
        " independent requests"
    )


def failure_lines(result: CapacityResult) -> list[str]:
    """Why the next level fails: what decided, each objective that was missed and by how much, and by which requests."""
    failed = result.next_failed
    if failed is None:
        return []
    lines = [f"{level_text(result.variable, failed.level)} fails: {printable(failed.why)}."]
    short = failed.shortfall
    if short is None:
        return lines
    lines += [_miss(miss, result.attainment.target_ratio) for miss in short.misses]
    if short.lost:
        lines.append(f"{short.lost} requests did not complete.")
    return [*lines, _which(short)]


def _miss(miss: Miss, target_ratio: float) -> str:
    label, share = _metric(miss.metric), f"{target_ratio * 100:.6g}%"
    text = f"{label}: {miss.over} over {span(miss.limit_s)}"
    if miss.without_value:
        text += f", {miss.without_value} without a value"
    if miss.needed_s is None:
        return f"{text}; no limit would hold for {share} of requests."
    times = number(miss.needed_s / miss.limit_s)
    return f"{text}; {share} of requests are within {span(miss.needed_s)}, {times} × the limit."


def _which(short: Shortfall) -> str:
    first, second, third = short.by_third
    text = f"Of the {short.bad} requests that missed, {first}, {second} and {third} were in the run's first, second and"
    text += f" last third; the first are {', '.join(f'#{seq}' for seq in short.seqs)}."
    if short.input_tokens_bad_p50 is not None and short.input_tokens_good_p50 is not None:
        text += f" Their median input is {number(short.input_tokens_bad_p50)} tokens, that of the others"
        text += f" {number(short.input_tokens_good_p50)}."
    return text


def probe_table(result: CapacityResult) -> TextTable:
    """A row a probe, in the order in which they were run; those that decide are marked."""
    deciding = {each.level for each in (result.capacity, result.next_failed) if each is not None}
    shown = ("ttft_s", "tpot_s", "e2el_s")
    share = "p95"
    return TextTable(
        caption="Attained is over the runs of a level that count, with its 95% interval; latency in ms."
        " The levels that decide are marked.",
        titles=(
            "level",
            "run",
            "requests",
            "good",
            "attained",
            "low",
            "high",
            "req/s",
            *(f"{LATENCY_LABELS[name]} {share}" for name in shown),
            "<verdict",
        ),
        rows=tuple(_row(probe, shown, share) for probe in result.probes),
        marked=tuple(place for place, probe in enumerate(result.probes) if _decides(probe, deciding)),
        spare=(1, 3, 10, 7, 9, 8),
    )


def _decides(probe: Probe, levels: set[float]) -> bool:
    return probe.level in levels and probe.verdict in (Verdict.PASS, Verdict.FAIL)


def _row(probe: Probe, shown: tuple[str, ...], share: str) -> tuple[str, ...]:
    verdict = _VERDICTS[probe.verdict]
    if probe.ground in (Ground.ESTIMATE, Ground.OVERLOAD):
        verdict += f" ({'by its share alone' if probe.ground is Ground.ESTIMATE else 'overloaded'})"
    return (
        asked(probe.level),
        str(probe.repeat),
        str(probe.due),
        str(probe.good),
        percent(probe.attainment.ratio),
        percent(probe.attainment.low),
        percent(probe.attainment.high),
        number(probe.summary.requests_per_s),
        *(milliseconds(getattr(probe.summary.latency[name], share)) for name in shown),
        verdict,
    )


def _metric(name: str) -> str:
    return LATENCY_LABELS.get(name, name)
