"""Experiments on simulated servers in virtual time: the folder that a run would have left, in seconds.

The file of the experiment is read and planned as always, and its folder is read and judged as always. Between the two
the engine of each arm's simulated server runs a closed loop against no clock, and its steps become records. What is
left out is transport and client, whose errors have tests of their own.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from loadgen.adapters.store.experiment_folder import CellEnd, CellState, ExperimentFolder, ExperimentManifest
from loadgen.adapters.store.run_folder import RunFolder
from loadgen.core.analysis.analyse import analyse
from loadgen.core.experiment.plan import PlannedCell, PlannedLevel, Sitting
from loadgen.core.record import Outcome, RequestRecord, RequestSpeculation, TokenSource
from loadgen.core.request import Phase
from loadgen.core.run import ClientFacts, RunManifest, Target, TimingSource
from loadgen.core.simulation.job import Job
from loadgen.core.simulation.loop import closed_loop
from loadgen.core.simulation.step import Step
from loadgen.options.experiment import ExperimentFile, load_experiment
from loadgen.options.sim import SimOptions
from loadgen.sim.server.exchange import Asked, Output, Route
from loadgen.sim.server.faults import parse_faults
from loadgen.sim.server.language import LanguageModel
from loadgen.wiring.experiment_plan import planned_over
from loadgen.wiring.predict import modelled_server
from loadgen.wiring.sim import engines_of, facts_of
from loadgen.wiring.workload import Workload, open_workload

_EPOCH_NS = 1_700_000_000_000_000_000
_STARTED = "2023-11-14T22:13:20.000+00:00"
_PAUSE_NS = 1_000_000_000
"""Between two runs, so that the records of an experiment stand one after the other in the world's time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """What differs by chance from one start of a server to the next, beside what it accepts.

    All durations of a start are multiplied by one log-normal factor of spread `start`. With probability `near_ties` a
    greedy token falls the other way, as batches of other shapes round differently; of every server, lossless or not.
    """

    seed: int
    start: float = 0.0
    near_ties: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Of one request, in tokens."""

    prompt_tokens: int
    output_tokens: int


def virtual_experiment(path: Path, out: Path, chance: Chance) -> ExperimentFolder:
    """Runs the experiment of a file, all of whose arms are simulated and whose levels are concurrencies."""
    experiment = load_experiment(path)
    workload = open_workload(experiment.session_options(), seed=experiment.workload.seed)
    try:
        plan = planned_over(workload, experiment).plan
        most = max((_requests(level) for level in plan.levels), default=0)
        lengths = list(_lengths(workload, most))
        facts = asdict(workload.source.facts)
    finally:
        workload.close()
    manifest = ExperimentManifest(
        experiment_id=out.name, started_at=_STARTED, plan=plan, file=experiment.stored(), data=facts, client_version="",
        host={},
    )  # fmt: skip
    folder = ExperimentFolder.create(out, manifest)
    origin_ns, exact = _EPOCH_NS, _Exact()
    for place, sitting in enumerate(plan.sittings):
        served = _Sitting(experiment, sitting, lengths, chance, place, exact)
        folder.begin_sitting(sitting)
        for cell in sitting.cells:
            valid, ended_ns = served.run(cell, folder.begin_cell(cell), origin_ns)
            origin_ns = ended_ns + _PAUSE_NS
            folder.note(CellEnd(cell=cell.name, state=CellState.FINISHED, valid=valid, ended_at=_STARTED))
    return folder


def _requests(level: PlannedLevel) -> int:
    assert level.load.num_requests is not None
    return level.warmup_requests + level.load.num_requests


def _lengths(workload: Workload, count: int) -> Iterator[Lengths]:
    """Of the first requests of any pass over the data: lengths are the same in all of them."""
    while count > 0:
        for conversation in workload.source.conversations():
            turn = conversation.turns[0]
            assert turn.input_tokens is not None
            assert turn.output_tokens is not None
            yield Lengths(prompt_tokens=turn.input_tokens, output_tokens=turn.output_tokens)
            count -= 1
            if not count:
                return


class _Sitting:
    """One start of one arm's server."""

    def __init__(
        self,
        experiment: ExperimentFile,
        sitting: Sitting,
        lengths: Sequence[Lengths],
        chance: Chance,
        place: int,
        exact: "_Exact",
    ) -> None:
        self._experiment, self._lengths, self._chance = experiment, lengths, chance
        self._rng = np.random.default_rng([chance.seed, place])
        options = experiment.arms[sitting.arm.of].sim_options(forced_length=sitting.arm.forced_length)
        self._options = options.model_copy(update={"seed": int(self._rng.integers(2**32))})
        self._factor = float(np.exp(self._rng.normal(0, chance.start)))
        server = modelled_server(options)
        self._model = server.target.repository
        self._engine = engines_of(self._options, facts_of(self._options, server), server)
        self._texts = _Texts(options, experiment, chance, self._rng, exact)

    def run(self, cell: PlannedCell, folder: RunFolder, origin_ns: int) -> tuple[bool, int]:
        """One run, from its records to its summary. Whether it is valid, and when in the world's time it ended."""
        load, warmup_requests = cell.level.load, cell.level.warmup_requests
        records = self._records(cell.level)
        manifest = RunManifest(
            run_id=cell.name.replace("/", "-"),
            started_at=_STARTED,
            origin_unix_ns=origin_ns,
            target=Target(url="http://virtual", endpoint="completions", model=self._model),
            load=load,
            planned=len(records),
            client=ClientFacts(timing_source=TimingSource.KERNEL, cpu_ratio=0.0),
            interrupted=False,
            ended_by="count",
            ended_unix_ns=origin_ns + max(record.closed_ns or 0 for record in records),
        )
        assert len(records) == warmup_requests + (load.num_requests or 0)
        assert manifest.ended_unix_ns is not None
        folder.save_manifest(manifest)
        sink = folder.record_writer()
        for record in records:
            sink.put(record)
        sink.close()
        summary = analyse(lambda: records, manifest).summary
        folder.save_summary(summary)
        return summary.verdict.valid, manifest.ended_unix_ns

    def _records(self, level: PlannedLevel) -> list[RequestRecord]:
        """Those of a closed loop, in the order in which its requests ended."""
        wanted = self._lengths[: _requests(level)]
        jobs = [
            Job(key=key, prompt_tokens=each.prompt_tokens, output_tokens=each.output_tokens)
            for key, each in enumerate(wanted)
        ]
        seen = _Seen(len(jobs))
        concurrency = int(level.value)
        result = closed_loop(self._engine(), jobs, concurrency=concurrency, observe=seen.note)
        return [
            self._record(
                served.key,
                sent_ns=round(served.arrival_ns * self._factor),
                event_ns=tuple(round(at_ns * self._factor) for at_ns in seen.event_ns[served.key]),
                event_tokens=tuple(seen.event_tokens[served.key]),
                accepted=seen.accepted[served.key],
                level=level,
            )
            for served in result.requests
        ]

    def _record(
        self,
        key: int,
        *,
        sent_ns: int,
        event_ns: tuple[int, ...],
        event_tokens: tuple[int, ...],
        accepted: list[int],
        level: PlannedLevel,
    ) -> RequestRecord:
        lengths = self._lengths[key]
        most = None if self._options.method is None else self._options.tokens
        return RequestRecord(
            seq=key,
            request_id=str(key),
            phase=Phase.WARMUP if key < level.warmup_requests else Phase.MEASURE,
            sent_ns=sent_ns,
            headers_ns=event_ns[0],
            first_ns=event_ns[0],
            first_output_ns=event_ns[0],
            last_ns=event_ns[-1],
            closed_ns=event_ns[-1],
            event_ns=event_ns,
            event_tokens=event_tokens,
            input_tokens=lengths.prompt_tokens,
            output_tokens=lengths.output_tokens,
            output_tokens_from=TokenSource.SERVER,
            planned_input_tokens=lengths.prompt_tokens,
            planned_output_tokens=lengths.output_tokens,
            finish_reason="length",
            outcome=Outcome.COMPLETED,
            speculation=None if most is None else _block(accepted, most),
            text=self._texts.answer(level.name, key, lengths.output_tokens),
            http_status=200,
            streamed=True,
        )


class _Seen:
    """What the steps of one run gave each request, by key."""

    def __init__(self, requests: int) -> None:
        self.event_ns: list[list[int]] = [[] for _ in range(requests)]
        self.event_tokens: list[list[int]] = [[] for _ in range(requests)]
        self.accepted: list[list[int]] = [[] for _ in range(requests)]

    def note(self, step: Step) -> None:
        """Adds one step; called for every one, so it stays with plain lists."""
        for key in step.prompt_ends:
            self.event_ns[key].append(step.end_ns)
            self.event_tokens[key].append(1)
        columns = (step.keys.tolist(), step.emitted.tolist(), step.drafted.tolist(), step.accepted.tolist())
        for key, tokens, drafted, accepted in zip(*columns, strict=True):
            self.event_ns[key].append(step.end_ns)
            self.event_tokens[key].append(tokens)
            if drafted:
                self.accepted[key].append(accepted)


def _block(accepted: list[int], most: int) -> RequestSpeculation:
    return RequestSpeculation(
        steps=len(accepted),
        drafted_tokens=most * len(accepted),
        accepted_tokens=sum(accepted),
        histogram=tuple(np.bincount(accepted, minlength=most + 1).tolist()) if accepted else (0,) * (most + 1),
        max_draft_tokens=most,
    )


_Exact = dict[tuple[float, tuple[int, ...]], Output]
"""Greedy answers that were generated already, by the verifier's loss and the prompt: every start gives them again."""


class _Texts:
    """The answers of one start. A request's prompt is the same whatever start it meets, and so is its exact answer."""

    def __init__(
        self,
        options: SimOptions,
        experiment: ExperimentFile,
        chance: Chance,
        rng: np.random.Generator,
        exact: "_Exact",
    ) -> None:
        lossy_ratio = parse_faults(options.fault, seed=options.seed).lossy_ratio
        self._model = LanguageModel(output_tokens=64, lossy_ratio=lossy_ratio)
        self._exact = exact
        self._wanted = experiment.losslessness != "none"
        self._temperature = experiment.workload.temperature
        self._near_ties, self._draws = chance.near_ties, random.Random(int(rng.integers(2**32)))

    def answer(self, level: str, key: int, tokens: int) -> str | None:
        """The text of one request; None where texts are not kept."""
        if not self._wanted:
            return None
        prompt = (*map(ord, level), key)
        again = (self._model.lossy_ratio, prompt)
        output = self._exact.get(again) if self._temperature == 0 else None
        if output is None:
            output = self._exact[again] = self._generated(prompt, tokens)
        if not self._near_ties:
            return "".join(output.texts)
        exact = int(np.log(1 - self._draws.random()) / np.log1p(-self._near_ties))
        if exact >= tokens:
            return "".join(output.texts)
        other = self._generated((*prompt, *output.ids[:exact], self._draws.choice(output.ids)), tokens - exact)
        return "".join((*output.texts[:exact], *other.texts))

    def _generated(self, prompt: tuple[int, ...], tokens: int) -> Output:
        asked = Asked(
            route=Route.COMPLETIONS,
            request_id="",
            model="",
            prompt_ids=prompt,
            max_tokens=tokens,
            ignore_eos=True,
            temperature=1.0 if self._temperature is None else self._temperature,
        )
        (output,) = self._model.generate(asked, fresh_seed=self._draws.getrandbits(32))
        return output
