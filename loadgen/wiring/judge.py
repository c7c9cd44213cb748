"""From results to an exit code."""

from collections.abc import Sequence

from loadgen.core.errors import ExitCode
from loadgen.core.metrics.summary import Summary
from loadgen.options.load import CommonOptions
from loadgen.wiring.execute import Finished


def exit_code(runs: Sequence[Finished], options: CommonOptions) -> ExitCode:
    """What the command ends with: interrupted, before target failed, before invalid, before a failed gate.

    A target has failed when nothing was completed, at any level of a ladder, or when it was gone for so long that the
    run was given up.
    """
    summaries = [finished.analysis.summary for finished in runs]
    if any(finished.end.interrupted for finished in runs):
        return ExitCode.INTERRUPTED
    gone = any(finished.end.ended_by == "unreachable" for finished in runs)
    if gone or not any(summary.requests.completed for summary in summaries):
        return ExitCode.TARGET_FAILED
    if not options.allow_invalid and not all(summary.verdict.valid for summary in summaries):
        return ExitCode.INVALID_MEASUREMENT
    if any(_gate_failed(summary, options) for summary in summaries):
        return ExitCode.GATE_FAILED
    return ExitCode.DONE


def _gate_failed(summary: Summary, options: CommonOptions) -> bool:
    counts = summary.requests
    lost = counts.failed + counts.dropped
    if options.max_error_ratio is not None and counts.planned and lost / counts.planned > options.max_error_ratio:
        return True
    if options.slo_attainment is not None and summary.slo is not None:
        attained = summary.slo.attainment_ratio
        return attained is None or attained < options.slo_attainment
    return False
