"""A prediction as JSON, and the words and cells that its text and its page share."""

import json
from dataclasses import asdict

from loadgen.core.simulation.prediction import Bounds, Point, Prediction
from loadgen.report.words import milliseconds, number, percent, printable

METHODS = {
    "ngram": "n-gram lookup",
    "draft_model": "a draft model",
    "eagle": "EAGLE",
    "eagle3": "EAGLE-3",
    "mtp": "multi-token prediction",
    "suffix": "suffix lookup",
}


def prediction_json(prediction: Prediction) -> str:
    """Strict JSON, indented, with a newline at its end."""
    return json.dumps(asdict(prediction), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def conclusion(prediction: Prediction) -> str:
    """The answer in one sentence or two."""
    drafts = prediction.draft_tokens
    name = f"{METHODS[prediction.method]} with {drafts} draft token{'' if drafts == 1 else 's'}"
    first, last = prediction.points[0], prediction.points[-1]
    critical = prediction.critical_batch
    if first.speedup <= 1:
        text = f"{name} is not expected to pay: a step emits {number(first.acceptance_length)} tokens at"
        return f"{text} {first.concurrency} and has to emit {number(first.break_even_acceptance_length)}."
    text = f"{name} is expected to decode {number(first.speedup)} times as fast at {first.concurrency}"
    if len(prediction.points) > 1:
        text += f" and {number(last.speedup)} times at {last.concurrency}"
    if critical is None:
        beyond = "in the range that was measured" if prediction.measured else "at any concurrency"
        return f"{text}; it does not stop paying {beyond}."
    return f"{text}; it stops paying at about {critical:.0f} concurrent requests."


def limit_facts(prediction: Prediction) -> list[tuple[str, str]]:
    """How far it pays, and what bounds the server."""
    critical, context = prediction.critical_batch, prediction.critical_context_tokens
    if critical is None:
        pays = "at every concurrency" if not prediction.measured else "at every level that was measured"
    elif critical == 0:
        pays = "not even for one request"
    else:
        pays = f"up to about {critical:.0f} concurrent requests"
    rows = [("Pays", f"{pays}, at {prediction.traffic.context_tokens:.0f} tokens of context")]
    if context is not None:
        rows.append(("Critical context", f"{context:.0f} tokens; above it no concurrency is too high"))
    if prediction.ridge_tokens is not None:
        rows.append(
            ("Arithmetic", f"takes as long as reading the weights at {prediction.ridge_tokens:.0f} tokens a step")
        )
    if prediction.draft_tokens_by_batch:
        rows.append(("Best draft length", _schedule_text(prediction)))
    if prediction.memory_concurrency_ar is not None and prediction.memory_concurrency_sd is not None:
        rows.append(
            (
                "Memory",
                f"holds {prediction.memory_concurrency_ar} requests of this context,"
                f" {prediction.memory_concurrency_sd} beside the drafter",
            )
        )
    return rows


def _schedule_text(prediction: Prediction) -> str:
    ranges = prediction.draft_tokens_by_batch
    return ", ".join(f"{first} to {last}: {tokens}" for first, last, tokens in ranges) + " draft tokens"


def level_cells(point: Point) -> list[str]:
    """Behind a level's concurrency: step in ms, break-even length, speedup, TPOT in ms, tokens/s.

    Step, TPOT and tokens/s are two cells each, without speculation and with it.
    """
    return [
        milliseconds(point.t_ar_s),
        milliseconds(point.t_sd_s),
        number(point.break_even_acceptance_length),
        number(point.speedup),
        milliseconds(point.tpot_ar_s),
        milliseconds(point.tpot_sd_s),
        number(point.output_tokens_per_s_ar),
        number(point.output_tokens_per_s_sd),
    ]


def remark(point: Point) -> str:
    """What speaks against a level, if anything."""
    if point.fits_memory is False:
        return "! memory full"
    return "✗ slower" if point.speedup <= 1 else ""


def bound_cells(bounds: Bounds) -> list[str]:
    """Speedups at one concurrency, the three of both drafters combined last."""
    combined = bounds.combined
    three = (None, None, None)
    if combined is not None:
        three = (combined.lookup_cost, combined.cost_where_used, combined.cost_every_step)  # type: ignore[assignment]
    return [number(value) for value in (bounds.draft_free, bounds.oracle_length, bounds.perfect_drafter, *three)]


def setting_facts(prediction: Prediction) -> list[tuple[str, str]]:
    """What it stands on."""
    setting, traffic = prediction.setting, prediction.traffic
    rows = []
    if setting.target is not None:
        gpus = f"{setting.gpus} × " if setting.gpus > 1 else ""
        draft = f", drafting: {setting.draft}" if setting.draft else ""
        rows.append(("Server", printable(f"{setting.target} on {gpus}{setting.gpu}{draft}")))
    rows.append(("Step times", printable(setting.step_times_from)))
    rows.append(("Acceptance", printable(setting.acceptance_from) + _coverage_text(prediction)))
    rows.append(
        (
            "Traffic",
            f"{printable(setting.workload)}: {traffic.prompt_tokens:.0f} prompt and {traffic.output_tokens:.0f} output"
            f" tokens, context {traffic.context_tokens:.0f}",
        )
    )
    return rows


def _coverage_text(prediction: Prediction) -> str:
    ratio = prediction.coverage_ratio
    if ratio == 1:
        return ""
    drafting = 1 + (prediction.points[0].acceptance_length - 1) / ratio
    return f"; {percent(ratio)} of the steps draft, and those emit {number(drafting)} tokens"
