"""The demonstration: a baseline and speculative arms on simulated servers of one kind, over a ladder of concurrency."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path

import msgspec

from loadgen.adapters.http.control import control_client
from loadgen.adapters.store.files import Scrubber, save_json
from loadgen.adapters.store.run_folder import new_run_id
from loadgen.adapters.store.sweep_folder import create_level, create_sweep, save_sweep
from loadgen.core.analysis.columns import Columns
from loadgen.core.analysis.ladder import sweep_of
from loadgen.core.analysis.findings.kinds import Severity
from loadgen.core.comparison.arms import Arm, ArmRun, ArmsComparison, Expectation
from loadgen.core.comparison.assembly import compare
from loadgen.core.comparison.cell import cell_of
from loadgen.core.errors import InternalError
from loadgen.core.metrics.summary import Finding
from loadgen.core.run import Load, LoadMode
from loadgen.core.simulation.gpus import GPUS
from loadgen.core.simulation.models import MODELS
from loadgen.core.simulation.prediction import Point
from loadgen.core.simulation.speculator import Method
from loadgen.core.simulation.workloads import WORKLOADS
from loadgen.core.units import duration_text
from loadgen.options.load import SweepOptions
from loadgen.options.predict import PredictOptions
from loadgen.sim.server.lateness import LatenessReport
from loadgen.wiring.execute import Display, Finished, execute
from loadgen.wiring.predict import predicted
from loadgen.wiring.session import Session, open_session
from loadgen.wiring.sim import spawn_simulator
from loadgen.wiring.workload import passes_needed

REQUESTS: Mapping[int, int] = {1: 12, 4: 20, 16: 64, 64: 192}
"""Measured requests by concurrency: what all arms together do in well under a minute, and two cores carry."""

COMPARISON = "comparison.json"

_GPU, _TARGET, _WORKLOAD = "a100", "llama-3.1-8b", "chat"
_LATE_S = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class _Server:
    """What an arm is served by; without a method the baseline."""

    arm: Arm
    method: Method | None = None
    draft_tokens: int | None = None

    @property
    def arguments(self) -> tuple[str, ...]:
        modelled = ("--gpu", _GPU, "--target", _TARGET, "--workload", _WORKLOAD)
        drafting = () if self.method is None else ("--method", self.method, "--draft-tokens", str(self.draft_tokens))
        return (*modelled, *drafting)


_SERVERS = (
    _Server(arm=Arm(name="baseline", label="Baseline")),
    _Server(arm=Arm(name="eagle3", label="EAGLE-3 (k = 3)"), method=Method.EAGLE3, draft_tokens=3),
    _Server(arm=Arm(name="draft-model", label="Draft model (k = 5)"), method=Method.DRAFT_MODEL, draft_tokens=5),
    _Server(arm=Arm(name="ngram", label="N-gram (k = 7)"), method=Method.NGRAM, draft_tokens=7),
)
"""One that pays at every level, one whose gain fades away, one that turns into a loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedDemo:
    """What came of it, and where it is stored; `comparison` is None when it was interrupted before the last level."""

    path: Path
    comparison: ArmsComparison | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ladder:
    """One arm's runs, and how punctual its server was; None when that was not asked, after an interruption."""

    server: _Server
    runs: tuple[Finished, ...]
    lateness: LatenessReport | None

    @property
    def interrupted(self) -> bool:
        return self.runs[-1].end.interrupted


async def demo_once(out: Path, *, seed: int, display: Display, tell: Callable[[str], None]) -> FinishedDemo:
    """Runs arm after arm over the ladder, all of them with the same requests, each on a simulated server of its own.

    `tell` gets a line when an arm begins. Raises LoadgenError when a server does not come up or results cannot
    be stored.
    """
    path = out / f"demo-{new_run_id()}"
    ladders: list[_Ladder] = []
    with as_file(files("loadgen.wiring") / "demo_prompts.jsonl") as prompts:
        for place, server in enumerate(_SERVERS, start=1):
            tell(f"{server.arm.label}, arm {place} of {len(_SERVERS)}")
            ladders.append(await _climb(server, path, prompts=prompts, seed=seed, display=display))
            if ladders[-1].interrupted:
                return FinishedDemo(path=path, comparison=None)
    comparison = compare(
        f"{MODELS[_TARGET].name} on a simulated {GPUS[_GPU].name}",
        "concurrency",
        {ladder.server.arm: [_arm_run(ladder, run) for run in ladder.runs] for ladder in ladders},
        baseline=_SERVERS[0].arm,
        expected={server.arm: _expected(server, ladders[0].runs) for server in _SERVERS},
        notes=(
            f"the servers are simulated: steps of a modelled {GPUS[_GPU].name},"
            f" acceptance as modelled for {WORKLOADS[_WORKLOAD].dataset}",
            _punctuality([ladder.lateness for ladder in ladders]),
        ),
    )
    save_json(path / COMPARISON, comparison, Scrubber())
    return FinishedDemo(path=path, comparison=comparison)


async def _climb(server: _Server, path: Path, *, prompts: Path, seed: int, display: Display) -> _Ladder:
    """The levels of one arm, each a run folder of the arm's sweep; fewer when somebody asks to stop."""
    runs: list[Finished] = []
    sweep = create_sweep(path, server.arm.name)
    with spawn_simulator(*server.arguments, "--seed", str(seed)) as simulator:
        options = SweepOptions(
            url=simulator.url,
            prompts=prompts,
            ignore_eos=True,
            concurrency=list(REQUESTS),
            seed=seed,
            name=server.arm.label,
        )
        async with open_session(options) as session:
            first_pass = 0
            for index, (concurrency, requests) in enumerate(REQUESTS.items()):
                load = Load(mode=LoadMode.CONCURRENCY, concurrency=concurrency, num_requests=requests, seed=seed)
                runs.append(
                    await execute(
                        session,
                        load,
                        folder=create_level(sweep, index + 1, concurrency),
                        warmup_requests=concurrency,
                        display=display,
                        first_pass=first_pass,
                    )
                )
                first_pass += passes_needed(session.workload, load, warmup_requests=concurrency)
                save_sweep(sweep, sweep_of(sweep.name, [(run.manifest, run.analysis.summary) for run in runs]))
                if runs[-1].end.interrupted:
                    return _Ladder(server=server, runs=tuple(runs), lateness=None)
                if not runs[-1].analysis.summary.requests.completed:
                    raise InternalError(f"{runs[-1].folder.path}: the simulated server completed no request")
            lateness = await _lateness(session)
    return _Ladder(server=server, runs=tuple(runs), lateness=lateness)


async def _lateness(session: Session) -> LatenessReport:
    """What the simulator says of its own punctuality."""
    async with control_client(session.destination) as client:
        response = await client.get("/sim/lateness")
    return msgspec.json.decode(response.content, type=LatenessReport)


def _arm_run(ladder: _Ladder, run: Finished) -> ArmRun:
    columns = Columns(run.manifest.slo)
    for record in run.folder.records():
        columns.observe(record)
    summary = run.analysis.summary
    late_s = None if ladder.lateness is None else ladder.lateness.p99_s
    if late_s is not None and late_s > _LATE_S:
        findings = (*summary.verdict.findings, _late_server(late_s))
        summary = replace(summary, verdict=replace(summary.verdict, findings=findings))
    concurrency = summary.load.concurrency
    assert concurrency is not None
    cell = cell_of(columns.table(), summary, arm=ladder.server.arm.name, level=concurrency, repeat=0)
    return ArmRun(cell=cell, summary=summary)


def _late_server(late_s: float) -> Finding:
    return Finding(
        kind="simulator_late",
        severity=Severity.WARNING,
        evidence=f"1% of what the simulated server sent left more than {duration_text(late_s)} away from its instant.",
        advice="This machine was busy: what was measured there is its lateness too. Run it again when it is idle.",
    )


def _expected(server: _Server, baseline: Sequence[Finished]) -> dict[float, Expectation]:
    """What `loadgen predict` says of an arm, for requests of the mean lengths that the baseline's had."""
    if server.method is None:
        return {}
    summaries = [run.analysis.summary for run in baseline]
    completed = sum(summary.requests.completed for summary in summaries)
    prediction = predicted(
        PredictOptions(
            gpu=_GPU,
            target=_TARGET,
            workload=_WORKLOAD,
            method=server.method,
            draft_tokens=server.draft_tokens,
            concurrency=list(REQUESTS),
            input_tokens=round(sum(summary.tokens.input or 0 for summary in summaries) / completed),
            output_tokens=round(sum(summary.tokens.output or 0 for summary in summaries) / completed),
        )
    )
    return {float(point.concurrency): _expectation(point) for point in prediction.points}


def _expectation(point: Point) -> Expectation:
    speedup = point.tpot_ar_s / point.tpot_sd_s
    return Expectation(speedup=speedup, break_even_length=point.acceptance_length / speedup)


def _punctuality(reports: Sequence[LatenessReport | None]) -> str:
    """How late the servers were, in words."""
    worst = max(report.p99_s for report in reports if report is not None and report.p99_s is not None)
    return f"99% of what the simulated servers sent left within {duration_text(worst)} of when it was due"
