"""The summary of a stored run, which somebody may have edited."""

import msgspec

from loadgen.adapters.imports.own import check_summary
from loadgen.adapters.imports.values import ImpossibleFigureError
from loadgen.adapters.store.run_folder import SUMMARY, RunFolder
from loadgen.core.errors import StoreError
from loadgen.core.metrics.summary import Summary


def believable_summary(run: RunFolder) -> Summary:
    """What `summary.json` says. Raises StoreError that names the field for what is none, or no run can have come to."""
    summary = run.load_summary()
    try:
        check_summary(msgspec.to_builtins(summary))
    except ImpossibleFigureError as fault:
        raise StoreError(f"{run.path / SUMMARY}: {fault}") from fault
    return summary
