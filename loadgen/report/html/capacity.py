"""The page of a search for a capacity."""

from dataclasses import asdict

from loadgen.core.capacity.probe import Probe, Verdict
from loadgen.core.capacity.result import CapacityResult
from loadgen.core.capacity.search import Search
from loadgen.core.run import RunManifest
from loadgen.report.capacity import capacity_doubts, capacity_facts, capacity_headline, failure_lines, probe_table
from loadgen.report.charts import Chart, Line, Mark, log_levels
from loadgen.report.html.page import esc, fact_list, foreign, page, plots, raw_section, section, text_table, verdict_box
from loadgen.report.words import variable_text


def capacity_html(search: Search, result: CapacityResult, manifest: RunManifest) -> str:
    """What was found, why the next level fails, attainment against the level, and a row a probe.

    `manifest` is that of the first probe.
    """
    charts = (attainment_chart(result),)
    name = manifest.name or f"Capacity of {manifest.target.model}"
    facts = fact_list((label, esc(value)) for label, value in capacity_facts(search, result))
    sections = [section("capacity", "Capacity", facts)]
    if lines := failure_lines(result):
        sections.append(section("why", "Why not more", "".join(f"<p>{foreign(line)}</p>" for line in lines)))
    sections.append(section("attainment", "Against the load", plots(charts, "pair", table=False)))
    sections.append(section("probes", "Probes", text_table(probe_table(result), "Probes in the order of running")))
    sections.append(raw_section("search"))
    server = f"<b>{foreign(manifest.target.model)}</b> at {foreign(manifest.target.url)}"
    header = f"""<header>
<p class="eyebrow">loadgen capacity</p>
<h1>{foreign(name)}</h1>
<p class="subtitle">{server}.</p>
{verdict_box(capacity_headline(search, result), capacity_doubts(result))}
</header>"""
    return page(
        title=f"{name} · loadgen capacity",
        header=header,
        main="\n".join(sections),
        charts=charts,
        raw=asdict(result),
    )


def attainment_chart(result: CapacityResult) -> Chart:
    """Each level's attainment with its interval, beside the share that is asked for."""
    last: dict[float, Probe] = {
        probe.level: probe for probe in result.probes if probe.verdict in (Verdict.PASS, Verdict.FAIL)
    }
    levels = sorted(last)
    attained = [last[level].attainment for level in levels]
    found = result.capacity
    return Chart(
        id="attainment",
        title="Requests that met the objectives",
        kind="level",
        unit="%",
        x=tuple(levels),
        lines=(
            Line(
                label="attained",
                values=tuple(None if each.ratio is None else each.ratio * 100 for each in attained),
                low=tuple(each.low * 100 for each in attained),
                high=tuple(each.high * 100 for each in attained),
                tone=0,
            ),
            Line(
                label="asked for",
                values=tuple(result.attainment.target_ratio * 100 for _ in levels),
                tone=1,
                dashed=True,
            ),
        ),
        x_label=variable_text(result.variable),
        log_x=log_levels(levels),
        marks=() if found is None else (Mark(x=found.level, text="capacity"),),
    )
