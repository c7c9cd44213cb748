"""From the file of an experiment to its plan: the data is read, no server is asked."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import file_digest
from typing import Any

from loadgen.adapters.profiles.files import find_profile
from loadgen.core.comparison.gates import Limit, never_kept, parse_gate
from loadgen.core.comparison.ratio import MIN_PAIRED_REQUESTS, MIN_REQUESTS
from loadgen.core.errors import ConfigError, DataError
from loadgen.core.experiment.estimate import Estimate, Expected, estimate
from loadgen.core.experiment.plan import Plan, PlannedArm, PlannedLevel, make_plan
from loadgen.core.run import Load, LoadMode
from loadgen.core.simulation.prediction import closed_loop
from loadgen.core.simulation.speculator import Speculator
from loadgen.core.simulation.speedup import plain_step_s, speculative_step_s
from loadgen.core.simulation.step_time import StepTime
from loadgen.core.traces.facts import TraceFacts
from loadgen.core.units import duration_text
from loadgen.options.experiment import ArmSection, ExperimentFile, ServerKind
from loadgen.options.resolve import resolve
from loadgen.options.sim import SimOptions
from loadgen.wiring.experiment_notes import gpu_notes
from loadgen.wiring.launch import start_words
from loadgen.wiring.predict import modelled_server
from loadgen.wiring.profiles import unequal_profiles
from loadgen.wiring.run import burstiness_of
from loadgen.wiring.sim import facts_of
from loadgen.wiring.sweep import default_warmup
from loadgen.wiring.workload import ReadProgress, Workload, default_requests, open_workload

START_S: Mapping[ServerKind, float] = {"url": 0.0, "sim": 3.0, "command": 90.0, "profile": 90.0}
"""How long a start is taken to last: the simulator's as measured, an engine's with a model of some billion weights."""

TPOT_S = 0.02
"""Seconds of a token of one answer where nothing is known of a server; 5 to 50 ms are common."""

_LITTLE_ROUNDS = 20
_LEAST_REPEATS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedExperiment:
    """A plan, how its servers come to run (by arm of the file), what it comes to, and what people should know first.

    `starts` are the commands that will start them.
    """

    plan: Plan
    servers: Mapping[str, ServerKind]
    starts: Mapping[str, str]
    estimate: Estimate
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lengths:
    """Mean tokens of a request, None where the data does not tell."""

    input_tokens: float | None
    output_tokens: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answers:
    """Answers of a server of which nothing is known."""

    output_tokens: float

    def answer_s(self, _level: PlannedLevel) -> float:
        """Seconds of one answer at a level."""
        return self.output_tokens * TPOT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class _ModelledAnswers:
    """Answers of a server of which there is a model."""

    options: SimOptions
    target: StepTime
    speculator: Speculator | None
    input_tokens: float
    output_tokens: float

    def answer_s(self, level: PlannedLevel) -> float:
        """Seconds of one answer at a level."""
        if level.load.mode is LoadMode.CONCURRENCY:
            return self._beside(level.value)
        answer_s = self._beside(1)
        for _ in range(_LITTLE_ROUNDS):  # by Little's law: in flight is rate times how long an answer takes
            answer_s = self._beside(max(1.0, level.value * answer_s))
        return answer_s

    def _beside(self, concurrency: float) -> float:
        """With so many in flight. Beyond the most that the server takes at once, answers wait for one another."""
        target, speculator = self.target, self.speculator
        batch = min(concurrency, self.options.max_num_seqs)
        context, prompt_token_s, length = self.input_tokens + self.output_tokens / 2, target.per_token_s, 1.0
        if speculator is None:
            step_s = plain_step_s(target, batch=batch, context_tokens=context)
        else:
            drafts = speculator.draft_tokens_at(round(batch))
            step_s = speculative_step_s(
                target,
                speculator.drafting,
                batch=batch,
                context_tokens=context,
                draft_tokens=drafts,
                coverage_ratio=speculator.coverage_ratio,
            )
            length = speculator.tokens_per_step(drafts)
            prompt_token_s += speculator.drafting.prompt_token_s
        _, tokens_per_s = closed_loop(batch, step_s, length, self.input_tokens * prompt_token_s, self.output_tokens)
        return concurrency * self.output_tokens / tokens_per_s / self.options.speed


def planned(experiment: ExperimentFile, *, progress: ReadProgress | None = None) -> PlannedExperiment:
    """What the file stands for. Raises ConfigError or DataError for what cannot be run."""
    workload = open_workload(experiment.session_options(), seed=experiment.workload.seed, progress=progress)
    try:
        return planned_over(workload, experiment)
    finally:
        workload.close()


def planned_over(workload: Workload, experiment: ExperimentFile) -> PlannedExperiment:
    """The same over the file's data, which is open already."""
    facts = workload.source.facts
    levels = tuple(_levels(experiment, workload))
    for level in levels:
        for gate in map(parse_gate, experiment.gates):
            if (why := never_kept(gate, level.load.num_requests or 0)) is not None:
                raise ConfigError(f"gates: at {level.name} {why}")
    plan = make_plan(
        experiment.name,
        arms=experiment.planned_arms(),
        levels=levels,
        repeats=experiment.repeats,
        order=experiment.order,
        workload=_sent(experiment, facts),
        servers={name: arm.stored() for name, arm in experiment.arms.items()},
    )
    found = _estimate(experiment, plan, _lengths(experiment, facts))
    return PlannedExperiment(
        plan=plan,
        servers={name: arm.server for name, arm in experiment.arms.items()},
        starts={name: start_words(arm) for name, arm in experiment.arms.items()},
        estimate=found,
        notes=tuple(_notes(experiment, plan, found, facts)),
    )


def expected_starts_s(experiment: ExperimentFile) -> dict[str, float]:
    """Seconds that a start is expected to take, by kind of server: as the file says, else as is usual."""
    told_s = experiment.start_time
    return {kind: usual_s if told_s is None else told_s for kind, usual_s in START_S.items()}


def _levels(experiment: ExperimentFile, workload: Workload) -> Iterator[PlannedLevel]:
    load, seed = experiment.load, experiment.workload.seed
    concurrencies, rates = sorted(load.concurrency or ()), sorted(load.request_rate or ())
    for index, concurrency in enumerate(concurrencies):
        closed = Load(
            mode=LoadMode.CONCURRENCY,
            concurrency=concurrency,
            num_requests=_requests(experiment, workload, concurrency, concurrency=concurrency),
            seed=seed + index,
        )
        yield PlannedLevel(load=closed, warmup_requests=_warmup(experiment, concurrency))
    for index, rate in enumerate(rates, start=len(concurrencies)):
        opened = Load(
            mode=LoadMode.RATE,
            request_rate_rps=rate,
            burstiness=burstiness_of(load.burstiness),
            max_concurrency=load.max_concurrency,
            num_requests=_requests(experiment, workload, rate, concurrency=None),
            seed=seed + index,
        )
        yield PlannedLevel(load=opened, warmup_requests=_warmup(experiment, None))


def _requests(experiment: ExperimentFile, workload: Workload, level: float, *, concurrency: int | None) -> int:
    """As asked, else one pass over the data, else enough for the level."""
    asked = experiment.level.requests_at(level)
    if asked is not None:
        return asked
    by_default = default_requests(workload, experiment.session_options(), concurrency)
    return workload.source.facts.requests if by_default is None else by_default


def _warmup(experiment: ExperimentFile, concurrency: int | None) -> int:
    asked = experiment.level.warmup_requests
    return default_warmup(concurrency) if asked is None else asked


def _sent(experiment: ExperimentFile, facts: TraceFacts) -> dict[str, Any]:
    """All that bears on what is sent, with digests in place of paths."""
    workload = experiment.workload
    told = workload.model_dump(mode="json", exclude={"trace", "prompts"})
    told |= {"endpoint": experiment.endpoint.value, "data": facts.sha256, "prompts": None}
    if workload.trace is not None and workload.prompts is not None:
        try:
            with workload.prompts.open("rb") as file:
                told["prompts"] = file_digest(file, "sha256").hexdigest()
        except OSError as fault:
            raise DataError(f"{workload.prompts}: cannot be read: {fault.strerror}") from None
    return told


def _lengths(experiment: ExperimentFile, facts: TraceFacts) -> _Lengths:
    most, told = experiment.workload.max_tokens, facts.output_lengths
    output = None if told is None or told.n < facts.used else told.mean
    return _Lengths(
        input_tokens=None if facts.input_tokens is None or facts.input_lengths is None else facts.input_lengths.mean,
        output_tokens=min((float(each) for each in (output, most) if each is not None), default=None),
    )


def _estimate(experiment: ExperimentFile, plan: Plan, lengths: _Lengths) -> Estimate:
    starts_s, expected = expected_starts_s(experiment), {}
    for arm in plan.arms:
        answer_s = None
        if lengths.output_tokens is not None:
            answers = _answers(experiment, arm, lengths.input_tokens, lengths.output_tokens)
            answer_s = {level: answers.answer_s(level) for level in plan.levels}
        expected[arm.name] = Expected(start_s=starts_s[experiment.arms[arm.of].server], answer_s=answer_s)
    return estimate(
        plan,
        expected,
        input_tokens=lengths.input_tokens,
        output_tokens=lengths.output_tokens,
        cooldown_s=experiment.cooldown,
        together=experiment.servers == "together",
        price_per_hour=experiment.price,
        basis=tuple(_basis(experiment, lengths)),
    )


def _basis(experiment: ExperimentFile, lengths: _Lengths) -> Iterator[str]:
    if lengths.output_tokens is None:
        return
    kinds = {arm.server for arm in experiment.arms.values()}
    modelled = [_modelled_options(arm) for arm in experiment.arms.values() if arm.server != "sim"]
    yield f"answers of {lengths.output_tokens:.0f} tokens, the most that is asked for"
    if "sim" in kinds:
        yield "steps of simulated servers as their model has them"
    if gpus := sorted({str(options.gpu) for options in modelled if options is not None}):
        yield f"steps of servers by profile as modelled for {', '.join(gpus)}, which `simulator` of the profile names"
    if None in modelled:
        yield f"{duration_text(TPOT_S)} for each token of an answer of the other servers, a rough guess"
    starts_s = expected_starts_s(experiment)
    for kind in sorted(kinds - {"url"}):
        guess = "" if kind == "sim" or experiment.start_time is not None else ", a rough guess (start_time)"
        yield f"{duration_text(starts_s[kind])} for a start by {kind}{guess}"


def _answers(
    experiment: ExperimentFile, arm: PlannedArm, input_tokens: float | None, output_tokens: float
) -> "_Answers | _ModelledAnswers":
    """As the model of the server has them where there is one."""
    options = _modelled_options(experiment.arms[arm.of], arm.forced_length)
    if options is None:
        return _Answers(output_tokens=output_tokens)
    server = modelled_server(options)
    return _ModelledAnswers(
        options=options,
        target=server.step if options.step_time is None else options.step_time,
        speculator=facts_of(options, server).speculator,
        input_tokens=server.workload.prompt_tokens if input_tokens is None else input_tokens,
        output_tokens=output_tokens,
    )


def _modelled_options(section: ArmSection, forced_length: int | None = None) -> SimOptions | None:
    """What the model of a server is made of: a simulated one, or a profile's that says on which GPU. None of others."""
    if section.sim is not None:
        return section.sim_options(forced_length=forced_length)
    found = None if section.profile is None else find_profile(section.profile)
    if found is None or "gpu" not in found.profile.simulator:
        return None
    given: dict[str, Any] = {"profile": str(found.file.path)}
    if forced_length is not None:
        given["acceptance_length"] = forced_length
    try:
        return resolve(SimOptions, given, environment={})
    except ConfigError:  # a target or a method that the simulator does not know
        return None


def _notes(experiment: ExperimentFile, plan: Plan, found: Estimate, facts: TraceFacts) -> Iterator[str]:
    beyond = None if experiment.budget is None else found.beyond(experiment.budget)
    if beyond is not None:
        yield f"will not be run: {beyond}"
    if experiment.repeats == 1:
        yield "one start of each arm: how much one start differs from the next will not be in the intervals"
    elif experiment.repeats < _LEAST_REPEATS:
        yield f"{_LEAST_REPEATS} repeats are the least to be recommended: intervals from fewer are wide"
    if experiment.noise == "none":
        yield "the baseline is not compared with itself: nothing will tell how much differs when nothing should"
    running = [name for name, arm in experiment.arms.items() if arm.server == "url"]
    if running:
        named = ", ".join(running)
        yield f"{named}: what runs already is not started anew, so what differs from start to start is not seen"
        if len(running) > 1 and experiment.servers == "one_at_a_time":
            yield f"{named}: these run all the time and all at once, whatever `servers` says"
    yield from unequal_profiles(experiment)
    yield from gpu_notes(plan)
    yield from _on_counts(plan)
    yield from _on_gates(experiment, plan)
    most = max(level.load.num_requests or 0 for level in plan.levels)
    if facts.format != "synthetic" and most > facts.requests:
        yield f"{facts.name}: has {facts.requests} requests, and a level takes {most}; repeats are marked as such"
    real = [arm.label for arm in plan.arms if arm.method is not None and experiment.arms[arm.of].server != "sim"]
    if real and facts.text == "invented":
        yield "prompts are made up: how many drafts are accepted on them means nothing; give prompts"


def _on_counts(plan: Plan) -> Iterator[str]:
    """What the levels are too small for."""
    for statistic, least in MIN_PAIRED_REQUESTS.items():
        if few := [level.name for level in plan.levels if (level.load.num_requests or 0) < least]:
            yield f"{', '.join(few)}: too few requests to compare {statistic}, which takes {least}"
    if short := [level.name for level in plan.levels if _is_short(level)]:
        yield f"{', '.join(short)}: less than two requests for each slot are little but beginning and end"


def _on_gates(experiment: ExperimentFile, plan: Plan) -> Iterator[str]:
    """Which gates will be decided by chance more than by the servers."""
    for gate in map(parse_gate, experiment.gates):
        least = MIN_REQUESTS.get(gate.metric.rpartition(".")[2], 0) if gate.kind is Limit.RELATIVE else 0
        if few := [level.name for level in plan.levels if (level.load.num_requests or 0) < least]:
            yield f"{', '.join(few)}: gate {gate.text!r} is held against much chance: its ratio takes {least} requests"


def _is_short(level: PlannedLevel) -> bool:
    return level.load.mode is LoadMode.CONCURRENCY and (level.load.num_requests or 0) < 2 * level.value
