"""Cells from what the analysis of a run already has."""

from dataclasses import replace

import numpy as np

from loadgen.core.analysis.columns import Columns
from loadgen.core.comparison.cell import Cell, cell_of
from loadgen.core.record import Failure, FailureKind, Outcome, RequestRecord
from loadgen.core.request import Phase
from tests.core.analysis.factory import analysed, answered, failed, open_loop

SLO = {"ttft_s": 0.15}


def made(records: list[RequestRecord], **changes: object) -> Cell:
    columns = Columns(SLO)
    for record in records:
        columns.observe(record)
    summary = analysed(records, slo=SLO, **changes).summary
    return cell_of(columns.table(), summary, arm="eagle", level=4, repeat=2)


def test_columns_stand_in_the_order_of_requests() -> None:
    """Records stand in the order in which requests ended; cells in that of `seq`, each value with its request."""
    cell = made([answered(2, ttft_ms=300), answered(0, ttft_ms=100), answered(1, ttft_ms=200, tokens=5)])
    assert cell.seq.tolist() == [0, 1, 2]
    assert cell.columns["ttft_s"].tolist() == [0.1, 0.2, 0.3]
    assert cell.columns["output_tokens"].tolist() == [10, 5, 10]
    assert cell.good.tolist() == [True, False, False]
    assert (cell.arm, cell.level, cell.repeat, cell.acceptance_length) == ("eagle", 4, 2, None)


def test_only_measured_requests_are_compared_and_failed_ones_keep_their_place() -> None:
    """Warm-up is no part of a comparison; a failure is a request without values."""
    cut = replace(answered(4), outcome=Outcome.FAILED, failure=Failure(kind=FailureKind.READ, http_status=200))
    cell = made([answered(0, phase=Phase.WARMUP), answered(1), failed(2), answered(3), cut])
    assert cell.seq.tolist() == [1, 2, 3, 4]
    assert np.isnan(cell.columns["ttft_s"]).tolist() == [False, True, False, True]


def test_rates_and_loop_are_the_summarys() -> None:
    """No second definition of a rate."""
    records = [answered(seq, sent_ms=1000 * seq) for seq in range(20)]
    cell = made(records)
    assert cell.rates["requests_per_s"] == analysed(records).summary.throughput.requests_per_s
    assert cell.rates["goodput_rps"] == cell.rates["requests_per_s"]
    assert cell.closed_loop
    assert not made(records, load=open_loop()).closed_loop
