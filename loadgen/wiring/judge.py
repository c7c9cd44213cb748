"""From results to how the command ends."""

from collections.abc import Sequence
from dataclasses import dataclass

from loadgen.core.analysis.gates import FailedGate, failed_gates
from loadgen.core.errors import ExitCode
from loadgen.options.load import CommonOptions
from loadgen.wiring.execute import Finished


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a command ends: with which code, and which gates failed, whatever the code is."""

    code: ExitCode
    failed_gates: tuple[FailedGate, ...] = ()


def ending_of(
    runs: Sequence[Finished], options: CommonOptions, *, interrupted: bool = False, gone: bool = False
) -> Ending:
    """What the command ends with: interrupted, before target failed, before invalid, before a failed gate.

    A target has failed when nothing was completed, at any level of a ladder, or when it was gone for so long that the
    run was given up. `interrupted` and `gone`: a ladder that was, or whose target was, between two of its runs.
    """
    summaries = [finished.analysis.summary for finished in runs]
    gates = failed_gates(summaries, runs[0].manifest.options)
    gone = gone or any(finished.end.ended_by == "unreachable" for finished in runs)
    if interrupted or any(finished.end.interrupted for finished in runs):
        code = ExitCode.INTERRUPTED
    elif gone or not any(summary.requests.completed for summary in summaries):
        code = ExitCode.TARGET_FAILED
    elif not options.allow_invalid and not all(summary.verdict.valid for summary in summaries):
        code = ExitCode.INVALID_MEASUREMENT
    else:
        code = ExitCode.GATE_FAILED if gates else ExitCode.DONE
    return Ending(code=code, failed_gates=gates)
