"""The section of a page on speculative decoding."""

from collections.abc import Iterator, Sequence

from loadgen.core.metrics.summary import Speculation, Summary
from loadgen.report.charts import Chart
from loadgen.report.html.page import data_table, esc, fact_list, foreign, head_row, plots, text_table
from loadgen.report.speculation import (
    Agreement,
    agreements,
    by_request,
    categories,
    no_speculation_text,
    origins,
    output_positions,
    positions,
    slope_text,
    speculation_facts,
    view_with_positions,
)

_AGREE = {True: "agree", False: "differ", None: "not compared"}
_TAGS = {True: "", False: "invalid", None: "info"}


def speculation(summary: Summary, charts: Sequence[Chart]) -> str:
    """The body of the section: one line for a baseline. `charts` are those of `speculation_charts`."""
    found = summary.speculation
    if found is None:
        return f'<p class="nothing">{esc(no_speculation_text(summary))}</p>'
    facts = ((label, foreign(text)) for label, text in speculation_facts(found, summary.server.speculation))
    return "\n".join((fact_list(facts), *_parts(found, charts)))


def _parts(found: Speculation, charts: Sequence[Chart]) -> Iterator[str]:
    if len(found.views) > 1:
        yield text_table(origins(found), "Origins of acceptance")
    if found.agreement:
        yield data_table(
            "What the origins tell of all requests of the run, and why they may differ.",
            head_row(["origins", "", "<what they tell"]),
            map(_agreement_row, agreements(found)),
            "Agreement of the origins",
        )
    if charts:
        yield plots(charts, "pair", table=False)
    if found.tpot_by_acceptance is not None:
        yield f'<p class="note">{esc(slope_text(found.tpot_by_acceptance))}</p>'
    view = view_with_positions(found)
    for table, label in (
        (None if view is None else positions(view), "Acceptance by draft token"),
        (output_positions(found), "Tokens per step along an answer"),
        (categories(found), "Acceptance by category"),
        (by_request(found), "Acceptance by request"),
    ):
        if table is not None and table.rows:
            yield text_table(table, label)


def _agreement_row(one: Agreement) -> str:
    css = _TAGS[one.agrees]
    mark = f'<span class="tag {css}">{_AGREE[one.agrees]}</span>' if css else _AGREE[one.agrees]
    said = esc("; ".join(one.said) + ".") + "".join(
        f'<br><span class="per">{foreign(why)}</span>' for why in one.reasons
    )
    return f'<tr><th scope="row">{esc(one.pair)}</th><td class="word">{mark}</td><td class="text">{said}</td></tr>'
