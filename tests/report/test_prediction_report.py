"""A prediction as terminal text, JSON and charts."""

import json
from dataclasses import replace

import pytest
from rich.cells import cell_len

from loadgen.core.simulation.prediction import MeasuredSteps, Prediction, Setting, Traffic, predict
from loadgen.core.simulation.speculator import Method, Speculator
from loadgen.core.simulation.step_time import EAGLE_8B_ON_H100
from loadgen.core.simulation.survival import Survival
from loadgen.report.html.prediction import prediction_charts
from loadgen.report.prediction import conclusion, prediction_json
from loadgen.report.terminal.prediction import prediction_text

NOWHERE = Setting(
    gpu=None, gpus=1, target=None, draft=None, workload="chat", acceptance_from="given", step_times_from="steps.csv"
)


def measured(*levels: tuple[float, float, float], rates: tuple[float, ...] = (0.5,)) -> Prediction:
    """A prediction from measured steps alone."""
    concurrency, plain_s, speculative_s = zip(*levels, strict=True)
    return predict(
        [int(level) for level in concurrency],
        setting=NOWHERE,
        speculator=Speculator(
            method=Method.NGRAM,
            draft_tokens=len(rates),
            survival=Survival(rates=rates),
            drafting=EAGLE_8B_ON_H100,
            coverage_ratio=0.5,
        ),
        traffic=Traffic(prompt_tokens=100, output_tokens=100, context_tokens=150),
        target=None,
        measured=MeasuredSteps(concurrency=concurrency, plain_s=plain_s, speculative_s=speculative_s),
    )


def test_a_prediction_reads_as_agreed(prediction: Prediction, golden) -> None:
    """The whole text at 100 columns."""
    golden.check("prediction.txt", prediction_text(prediction, width=100))


def test_json_is_the_contract(prediction: Prediction, golden) -> None:
    """Every key of it, strict."""
    text = prediction_json(prediction)
    golden.check("prediction.json", text)
    found = json.loads(text, parse_constant=pytest.fail)
    assert found["schema"] == "loadgen.predict/1"
    assert {"points", "critical_batch", "critical_context_tokens", "bounds"} <= found.keys()
    assert {
        "concurrency",
        "t_ar_s",
        "t_sd_s",
        "acceptance_length",
        "speedup",
        "break_even_acceptance_length",
    } <= found["points"][0].keys()


def test_it_says_first_that_nothing_was_measured(prediction: Prediction) -> None:
    """Nobody takes an expectation for a result."""
    assert prediction_text(prediction).startswith("EXPECTED, NOT MEASURED")


def test_the_answer_in_words(prediction: Prediction) -> None:
    """Faster and until when; always; not at all; within what was measured."""
    assert conclusion(prediction) == (
        "EAGLE with 3 draft tokens is expected to decode 1.79 times as fast at 1 and 0.946 times at 384;"
        " it stops paying at about 289 concurrent requests."
    )
    always = replace(prediction, critical_batch=None)
    assert conclusion(always).endswith("it does not stop paying at any concurrency.")
    assert conclusion(measured((1, 0.010, 0.011), (8, 0.010, 0.012))).endswith("in the range that was measured.")
    assert conclusion(measured((4, 0.010, 0.020))) == (
        "n-gram lookup with 1 draft token is not expected to pay: a step emits 1.25 tokens at 4 and has to emit 2.00."
    )


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_no_line_is_wider_than_the_terminal(prediction: Prediction, width: int) -> None:
    """Columns go before a number is cut."""
    text = prediction_text(prediction, width=width)
    assert all(cell_len(line) <= width for line in text.splitlines())
    assert "…" not in text


def test_doubts_stand_at_the_top(prediction: Prediction) -> None:
    """Memory that is full, and several GPUs, whose talk is not in the model."""
    text = " ".join(prediction_text(prediction).split())
    assert "! At 384 the KV cache is full" in text
    assert "! What several GPUs say to each other is not in the model" in text
    assert text.index("! At 384") < text.index("By concurrency")


def test_bars_show_one_and_what_is_gained(prediction: Prediction) -> None:
    """A bar is dense up to a speedup of 1 and lighter beyond; one that falls short shows how far."""
    lines = prediction_text(prediction).splitlines()
    start = lines.index("Speedup of decoding")
    bars = lines[start + 1 : start + 5]
    assert all("█▓" in line for line in bars[:3])
    assert "▓" not in bars[3]
    assert bars[3].rstrip().endswith("0.946 ×")


def test_measured_steps_leave_out_what_needs_a_model() -> None:
    """No bounds table, no server; the share of steps that draft is said."""
    text = prediction_text(measured((1, 0.010, 0.011), (8, 0.010, 0.012)))
    assert "Bounds" not in text
    assert "Server" not in text
    assert "50.0% of the steps draft, and those emit 1.50 tokens" in text


def test_charts_mark_where_it_stops_paying(prediction: Prediction) -> None:
    """Four charts over concurrency; the mark is inside of what is drawn or absent."""
    charts = prediction_charts(prediction)
    assert [chart.id for chart in charts] == ["predict-speedup", "predict-length", "predict-tpot", "predict-tokens"]
    assert [mark.text for mark in charts[0].marks] == ["stops paying at 289"]
    assert [line.label for line in charts[0].lines] == [
        "expected",
        "free drafter",
        "perfect lengths",
        "combined, drafter on every step",
        "break-even",
    ]
    beyond = prediction_charts(replace(prediction, critical_batch=1000.0))
    assert beyond[0].marks == ()
