"""The page of a comparison of arms."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial

from loadgen.core.comparison.arms import ArmLadder, ArmLevel, ArmsComparison
from loadgen.core.comparison.losslessness import LOSSY_ERROR_RATIO
from loadgen.core.comparison.verdict import FAMILY_ERROR_RATIO
from loadgen.core.metrics.catalogue import CATALOGUE
from loadgen.report.charts import Chart
from loadgen.report.comparison.charts import (
    length_charts,
    load_charts,
    pareto_chart,
    positions_chart,
    speedup_chart,
    time_charts,
)
from loadgen.report.comparison.crossing import crossover_beside, crossover_figure, load_unit
from loadgen.report.comparison.doubts import doubts, headline
from loadgen.report.comparison.gates import gate_lines
from loadgen.report.comparison.standing import is_noise
from loadgen.report.comparison.tables import choice_table, explanations
from loadgen.report.comparison.trade_offs import figure_caveat
from loadgen.report.comparison.words import (
    CLAIM_MARKS,
    advice,
    interval,
    remarks,
    said_of,
    schedule_evidence,
    schedule_texts,
    subtitle,
)
from loadgen.report.html import page
from loadgen.report.words import DASH, LATENCY_LABELS, asked, milliseconds, number, variable_text

_OTHER_RATIOS = (
    ("tpot_s.p50", "TPOT, median"),
    ("ttft_s.mean", "TTFT, mean"),
    ("e2el_s.mean", "E2EL, mean"),
    ("output_tokens_per_s", "output tokens/s"),
    ("requests_per_s", "requests/s"),
)

_AS_NOISE = "≈"

_METRICS = (
    ("tpot_s", "time per output token of a request"),
    ("ttft_s", "time to its first token"),
    ("e2el_s", "time to its last"),
)
_DEFINITIONS = (
    ("Speedup", "mean TPOT of the baseline over that of the arm, of the same requests; above 1 the arm is faster"),
    ("Interval", "in 95 of 100 repetitions such an interval holds the true value, for one level taken by itself"),
    (
        "Claim",
        f"made for all levels of an arm together: at most {FAMILY_ERROR_RATIO:.0%} of such ladders hold a false one",
    ),
    ("Tokens per step", "tokens that a decode step emits for one request, over all decode steps, drafted for or not"),
    ("Has to emit", "tokens per step at which mean TPOT would be the baseline's: tokens per step over the speedup"),
    ("Stops paying", "where the speedup falls to 1, on a straight line between the logarithms of neighbouring levels"),
    (
        "Lossy",
        f"answers agree less with the baseline's than chance allows, given how those of its second start do; by a"
        f" permutation of arms within requests, at most {LOSSY_ERROR_RATIO:.0%} of experiments accuse a lossless arm",
    ),
    ("Expected", "from a model of the server, before anything was measured"),
)


def comparison_html(*ladders: ArmsComparison) -> str:
    """Comparisons of the same arms over one ladder of load or several, as one HTML file that holds all it shows."""
    parts = [_part(comparison, place, alone=len(ladders) == 1) for place, comparison in enumerate(ladders)]
    raw = [asdict(comparison) for comparison in ladders]
    return page.page(
        title=f"{ladders[0].name} · loadgen",
        header=f"""<header>
<p class="eyebrow">loadgen comparison</p>
<h1>{page.foreign(ladders[0].name)}</h1>
{"".join(_verdict(comparison, alone=len(ladders) == 1) for comparison in ladders)}
</header>""",
        main="\n".join((*(main for main, _ in parts), _definitions(), page.raw_section("comparison"))),
        charts=[chart for _, charts in parts for chart in charts],
        raw=raw[0] if len(raw) == 1 else {"ladders": raw},
    )


def _verdict(comparison: ArmsComparison, *, alone: bool) -> str:
    label = _named("Verdict", comparison, alone=alone)
    box = page.verdict_box(headline(comparison), doubts(comparison), answer=_answer(comparison), label=label)
    return f'<p class="subtitle">{page.esc(subtitle(comparison))}.</p>\n{box}'


def _named(title: str, comparison: ArmsComparison, *, alone: bool) -> str:
    """A title that none of the other ladders' has."""
    return title if alone else f"{title}: by {variable_text(comparison.variable)}"


def _answer(comparison: ArmsComparison) -> str:
    """What to run, in one sentence; nothing without an arm."""
    by = variable_text(comparison.variable)
    return f"<b>So run</b>, by {page.esc(by)}: {page.esc(advice(comparison))}." if comparison.arms else ""


def _part(comparison: ArmsComparison, place: int, *, alone: bool) -> tuple[str, list[Chart]]:
    """The sections of one ladder, and their charts; ids of a further one end in its number."""

    def own(charts: Iterable[Chart]) -> list[Chart]:
        return [replace(chart, id=f"{chart.id}-{place}") for chart in charts] if place else list(charts)

    named = partial(_named, comparison=comparison, alone=alone)

    def section(name: str, title: str, body: str) -> str:
        return page.section(f"{name}-{place}" if place else name, named(title), body, valid=comparison.valid)

    speedup = own([speedup_chart(comparison)])
    lengths = own(chart for chart in length_charts(comparison) if chart.drawable)
    loads = own(
        (
            *load_charts(comparison),
            pareto_chart(comparison),
            positions_chart(comparison),
            *time_charts(comparison),
        )
    )
    loads = [chart for chart in loads if chart.drawable]
    tables = "".join(
        f"<h3>{page.esc(title)}</h3>{page.text_table(table, named(title))}" for title, table in explanations(comparison)
    )
    why = (page.plots(lengths, "pair", table=False) if lengths else "") + tables
    sections = [
        *([section("pays", "Does it pay", _conclusions(comparison))] if comparison.arms else []),
        *([section("gates", "Gates", _gates(comparison))] if comparison.gates else []),
        section("run", "What to run", _choices(comparison, named("Choices"))),
        section("speedup", "Speedup against the load", _speedups(speedup)),
        *([section("why", "Why: what a step emits, and what it has to", why)] if why else []),
        section("load", "Speed, throughput, acceptance and time", page.plots(loads, "pair", table=False)),
        section(
            "levels",
            "Levels",
            _level_table(comparison, named("Level table")) + _ratio_table(comparison, named("Ratio table")),
        ),
        section("setting", "Stands on", _remarks(comparison)),
    ]
    return "\n".join(sections), [*speedup, *lengths, *loads]


def _speedups(charts: Sequence[Chart]) -> str:
    """The chart of speedups, under how to read it: what of the following it shows."""
    (chart,) = charts
    around_one = chart.lines[-1].low is not None
    said = (
        "Above 1 an arm is faster.",
        f"Bands: 95% intervals{'; around 1, how far the baseline may be from itself' if around_one else ''}.",
        "Vertical lines: where the line of an arm crosses 1." if chart.marks else "",
        "An arrow: how far an interval reaches that is cut off." if chart.top is not None else "",
    )
    caption = page.esc(" ".join(filter(None, said)))
    return f'<p class="caption">{caption}</p>{page.plots(charts, "stack", table=False)}'


def _choices(comparison: ArmsComparison, label: str) -> str:
    pasted = "".join(
        f'<p><code>{page.foreign(text)}</code></p><p class="caption">Rests on: {page.esc(evidence)}.</p>'
        for text, evidence in zip(schedule_texts(comparison), schedule_evidence(comparison), strict=True)
    )
    heading = '<p class="caption">The same for vLLM, by batch size:</p>' if pasted else ""
    answer = f"<p>{_answer(comparison)}</p>" if comparison.arms else ""
    return answer + page.text_table(choice_table(comparison), label) + heading + pasted


def _gates(comparison: ArmsComparison) -> str:
    return "".join(f"<p><b>{how}</b> {page.foreign(line)}.</p>" for how, line in gate_lines(comparison))


def _conclusions(comparison: ArmsComparison) -> str:
    sentences = (
        f"<p><b>{page.foreign(ladder.arm.label)}</b> {page.esc(' '.join(said_of(ladder, comparison)))}</p>"
        for ladder in comparison.arms
    )
    return page.figure_list(_figure(ladder, comparison) for ladder in comparison.arms) + "".join(sentences)


def _figure(ladder: ArmLadder, comparison: ArmsComparison) -> page.Figure:
    found, top = ladder.crossover, max((each for each, gain in ladder.gains.items() if gain.valid), default=0.0)
    value, beside = DASH, "not compared"
    if found is not None:
        value = crossover_figure(found, top=top)
        beside = crossover_beside(found, comparison.variable, top=top, one_start=comparison.one_start)
    return page.Figure(
        label=f"{ladder.arm.label}: TPOT pays up to",
        value=value,
        unit=load_unit(comparison.variable),
        beside=f"{beside}{figure_caveat(ladder)}",
    )


def _level_table(comparison: ArmsComparison, label: str) -> str:
    titles = (
        variable_text(comparison.variable),
        "speedup",
        "<claim",
        "expected",
        "tokens per step",
        "has to emit",
        "TPOT, ms",
        "tokens/s",
    )
    caption = "Speedup is that of mean TPOT, with its 95% interval; a dash: not known, or the baseline's own."
    return _by_arm(comparison.ladders, caption, titles, _level_row, label)


def _by_arm(
    ladders: Sequence[ArmLadder], caption: str, titles: Sequence[str], row: Callable[[ArmLevel], str], label: str
) -> str:
    """A table of the levels of each arm in turn, under its name."""
    bodies = [
        page.row_group(page.foreign(ladder.arm.label), len(titles), map(row, ladder.levels)) for ladder in ladders
    ]
    tall = sum(len(ladder.levels) + 1 for ladder in ladders) > page.MOST_ROWS
    return page.grouped_table(caption, page.head_row(titles), bodies, label, page.FULL, tall=tall)


def _level_row(level: ArmLevel) -> str:
    gain, expected = level.gain, level.expected
    needed = None if gain is None else gain.break_even_length
    cells = (
        DASH if expected is None else f"{expected.speedup:.2f}",
        number(level.tokens_per_step),
        DASH if needed is None else interval(needed),
        milliseconds(level.tpot_s),
        number(level.output_tokens_per_s),
    )
    speedup = page.value_cell(DASH if gain is None else interval(gain.verdict.speedup))
    bad = "" if level.measurement.valid else ' class="bad"'
    values = f"{speedup}{_claim_cell(level)}{''.join(map(page.value_cell, cells))}"
    return f'<tr{bad}><th scope="row">{page.esc(asked(level.level))}</th>{values}</tr>'


def _claim_cell(level: ArmLevel) -> str:
    """What is claimed of a level, in a word, with its mark and colour."""
    if not level.measurement.valid:
        return '<td class="claim slower">invalid measurement</td>'
    if level.gain is None:
        return f'<td class="claim absent">{DASH}</td>'
    claim = level.gain.verdict.claim
    return f'<td class="claim {claim.name.lower()}">{CLAIM_MARKS[claim]} {page.esc(claim)}</td>'


def _ratio_table(comparison: ArmsComparison, label: str) -> str:
    """Arm over baseline, whatever is better; the baseline's second start over its first among them."""
    titles = (variable_text(comparison.variable), *(label for _, label in _OTHER_RATIOS))
    caption = "Arm over baseline: below 1 a latency is shorter, above 1 a rate is higher. 95% intervals."
    if comparison.again is not None:
        caption += (
            f" Under {page.foreign(comparison.again.arm.label)}: how far the same server is from itself; {_AS_NOISE}:"
            " an arm's ratio that is no farther from 1 than that may be."
        )
    return _by_arm(comparison.ladders[1:], caption, titles, partial(_ratio_row, comparison), label)


def _ratio_row(comparison: ArmsComparison, level: ArmLevel) -> str:
    ratios = {} if level.gain is None else level.gain.ratios
    itself = comparison.again is not None and level in comparison.again.levels
    marked = {key for key, _ in _OTHER_RATIOS if not itself and is_noise(comparison, level, key)}
    cells = (
        f"{interval(ratios[key])}{f' {_AS_NOISE}' if key in marked else ''}" if key in ratios else DASH
        for key, _ in _OTHER_RATIOS
    )
    return f'<tr><th scope="row">{page.esc(asked(level.level))}</th>{"".join(map(page.value_cell, cells))}</tr>'


def _remarks(comparison: ArmsComparison) -> str:
    lines = "".join(f"<li>{page.esc(line)}.</li>" for line in remarks(comparison))
    return f'<ul class="remarks">{lines}</ul>' if lines else ""


def _definitions() -> str:
    metrics = ((LATENCY_LABELS[name], f"{words}: {CATALOGUE[name].definition}") for name, words in _METRICS)
    rows = "".join(f"<dt>{page.esc(term)}</dt><dd>{page.esc(text)}.</dd>" for term, text in (*metrics, *_DEFINITIONS))
    return page.section("definitions", "Definitions", f'<dl class="definitions">{rows}</dl>')
