"""`loadgen demo`: the main job on this machine alone."""

import asyncio
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

from loadgen.cli.output import leave, show_run, width_of
from loadgen.cli.progress import RunProgress
from loadgen.cli.writing import tell
from loadgen.options.load import RunOptions
from loadgen.report.html import run_html
from loadgen.sim.script import Script
from loadgen.sim.truth import spawn_truth_server
from loadgen.wiring.judge import ending_of
from loadgen.wiring.run import run_once

_SERVER = Script(ttft_ms=90, gap_ms=24, tokens_per_event=(1, 3, 2, 4), role_ms=15)
_SLO = "ttft=150ms,tpot=25ms"


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the run's folder.", metavar="DIR")] = Path("runs"),
    json_output: Annotated[bool, typer.Option("--json", metavar="", help="Print the summary as JSON.")] = False,
) -> None:
    """Replay a small bundled trace against a built-in server of known timing, and report. Needs nothing else.

    The server sends its first event after 90 ms and one every 24 ms, each of several tokens, as a server that
    speculates does: what is measured can be held against that.
    """
    with as_file(files("loadgen.sim") / "demo_trace.jsonl") as trace, spawn_truth_server(_SERVER) as server:
        options = RunOptions(
            url=server.url,
            trace=trace,
            replay=True,
            tokens_per_event="usage",
            slo=_SLO,
            seed=1,
            out=out,
            name="demo",
            json_output=json_output,
        )
        finished = asyncio.run(run_once(options, display=partial(RunProgress, enabled=True)))
    page = finished.folder.save_text("report.html", run_html(finished.analysis, finished.manifest))
    show_run(finished, as_json=json_output, width=width_of())
    tell(f"report to look at: {page}")
    leave(ending_of([finished], options))


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("demo")(demo)
