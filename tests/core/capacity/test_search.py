"""The search against servers whose capacity is known."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from loadgen.core.capacity.evidence import Evidence
from loadgen.core.capacity.probe import Ground, Run, Verdict, judge
from loadgen.core.capacity.result import noise_of, outcome_words
from loadgen.core.capacity.search import Search, Step, requests_needed
from tests.core.capacity.made import EXCERPT, levels, made_run, search, searched


def up_to(truth: float) -> Callable[[Step], Run]:
    """A server on which every request is good up to that level, and none above."""
    return lambda step: made_run(100 if step.level <= truth else 0, 100)


@pytest.mark.parametrize("truth", [1, 2, 3, 7, 8, 9, 100, 511])
def test_whole_levels_double_and_halve_down_to_the_precision(truth: int) -> None:
    """The highest level that passes is within a tenth of the truth and the next that was tried fails."""
    result = searched(search(), up_to(truth))
    assert result.capacity is not None
    assert result.next_failed is not None
    low, high = result.capacity.level, result.next_failed.level
    assert low <= truth < high
    assert high - low <= max(1, 0.1 * low)
    assert (result.capacity.low, result.capacity.high) == (low, high)
    assert all(isinstance(level, int) for level in levels(result))


def test_levels_double_from_the_first_and_then_take_the_middle() -> None:
    """1, 2, 4, 8, 16, then between 8 and 16."""
    assert levels(searched(search(), up_to(10))) == [1, 2, 4, 8, 16, 11, 9, 10]


def test_rates_halve_by_ratio_with_three_digits() -> None:
    """Rates are no whole numbers; the bracket's ends differ by no more than the precision."""
    result = searched(search(variable="request_rate_rps", start=0.5), up_to(6.66))
    assert result.capacity is not None
    assert result.next_failed is not None
    assert result.capacity.level <= 6.66 < result.next_failed.level <= 1.1 * result.capacity.level
    assert all(level == float(f"{level:.3g}") for level in levels(result))


def test_a_first_level_that_fails_leaves_no_capacity() -> None:
    """One probe, no capacity, and what failed."""
    wanted = search(start=4)
    result = searched(wanted, up_to(3))
    assert result.capacity is None
    assert result.attainment.at_capacity is None
    assert result.next_failed is not None
    assert levels(result) == [4]
    assert outcome_words(wanted, result) == "the first level already fails; start lower"
    assert outcome_words(search(), searched(search(), up_to(0))) == "the first level already fails; no lower one"


def test_a_highest_level_that_passes_ends_the_search() -> None:
    """The limit lies above: there is no level that failed; the last step goes to the highest level itself."""
    wanted = search(most=12)
    result = searched(wanted, up_to(100))
    assert levels(result) == [1, 2, 4, 8, 12]
    assert result.capacity is not None
    assert (result.capacity.level, result.capacity.high, result.next_failed) == (12, None, None)
    assert outcome_words(wanted, result) == "the highest level that was asked for passes; the limit lies above"


def test_an_undecided_level_is_run_again_and_longer() -> None:
    """Each further run is twice as long; all count together; at last the share alone decides, and that is said."""
    steps: list[Step] = []

    def serve(step: Step) -> Run:
        steps.append(step)
        return made_run(91 * step.length, 100 * step.length)

    result = searched(search(start=4, most=4), serve)
    assert [(step.repeat, step.length) for step in steps] == [(1, 1), (2, 2), (3, 4)]
    assert [probe.verdict for probe in result.probes] == [Verdict.UNDECIDED, Verdict.UNDECIDED, Verdict.PASS]
    assert result.probes[-1].attainment.due == 700
    assert result.capacity is not None
    assert (result.capacity.level, result.capacity.low, result.capacity.ground) == (4, None, Ground.ESTIMATE)
    assert "decided by that share" in result.probes[-1].why


def test_a_level_is_run_as_often_as_asked() -> None:
    """With three repeats a level that is clear at once takes three runs of the same length."""
    steps: list[Step] = []

    def serve(step: Step) -> Run:
        steps.append(step)
        return made_run(100, 100)

    searched(search(start=2, most=2, repeats=3), serve)
    assert [(step.repeat, step.length) for step in steps] == [(1, 1), (2, 1), (3, 1)]


def test_an_overloaded_run_fails_whatever_it_attained() -> None:
    """The reason is that of the finding, and no further run is spent on it."""
    probe = judge(search(repeats=2).rule, 8, [made_run(100, 100, overloaded="requests pile up")])
    assert (probe.verdict, probe.ground, probe.why) == (Verdict.FAIL, Ground.OVERLOAD, "requests pile up")


def test_a_pass_that_has_not_settled_is_prolonged_and_does_not_count_once_one_has() -> None:
    """A run too short to fill the queue passes for that reason alone; the longer run alone decides."""
    rule = search().rule
    short = made_run(100, 100, unsettled="short")
    assert judge(rule, 8, [short]).verdict is Verdict.UNDECIDED
    settled = judge(rule, 8, [short, made_run(100, 200)])
    assert (settled.verdict, settled.attainment.due) == (Verdict.FAIL, 200)
    last = judge(rule, 8, [short, short, made_run(100, 100, unsettled="still short")])
    assert (last.verdict, last.ground) == (Verdict.PASS, Ground.ESTIMATE)
    assert "not settled: still short" in last.why


def test_an_invalid_measurement_is_repeated_once_and_then_ends_the_search() -> None:
    """What was found until then stays, as the least that it can be."""
    wanted = search()

    def serve(step: Step) -> Run:
        return made_run(100, 100, invalid="the client was late") if step.level > 4 else made_run(100, 100)

    result = searched(wanted, serve)
    assert levels(result) == [1, 2, 4, 8, 8]
    assert [probe.verdict for probe in result.probes[-2:]] == [Verdict.INVALID] * 2
    assert result.capacity is not None
    assert (result.capacity.level, result.next_failed) == (4, None)
    assert outcome_words(wanted, result) == "the search ended early: the client was late"
    allowed = searched(search(allow_invalid=True, most=8), serve)
    assert allowed.capacity is not None
    assert allowed.capacity.level == 8


def test_a_client_that_may_have_slowed_requests_never_makes_a_server_fail() -> None:
    """Misses that may be the client's own end the search like a fault of it; what passes in spite of them passes."""

    def serve(step: Step) -> Run:
        return replace(up_to(4)(step), slowed="the client read late") if step.level > 2 else up_to(4)(step)

    result = searched(search(), serve)
    assert [(probe.level, probe.verdict) for probe in result.probes] == [
        *((level, Verdict.PASS) for level in (1, 2, 4)),
        *((8, Verdict.INVALID) for _ in range(2)),
    ]
    assert result.capacity is not None
    assert (result.capacity.level, result.capacity.high, result.next_failed) == (4, None, None)
    assert outcome_words(search(), result) == "the search ended early: the client read late"
    allowed = searched(search(allow_invalid=True), serve)
    assert allowed.next_failed is not None
    assert allowed.next_failed.level == 5
    overloaded = replace(made_run(100, 100), overloaded="ever more in flight", slowed="the client read late")
    assert judge(search().rule, 8, [overloaded]).verdict is Verdict.INVALID
    crowded = judge(search().rule, 8, [replace(made_run(0, 100), slowed="late"), made_run(100, 100)])
    assert (crowded.verdict, crowded.attainment.due) == (Verdict.PASS, 100)


def test_an_invalid_run_costs_no_run_that_may_be_spent() -> None:
    """Undecided, invalid, undecided, decided: the run that made up for it is as long as it was, and all valid count."""
    steps: list[Step] = []

    def serve(step: Step) -> Run:
        steps.append(step)
        said = {"invalid": "late"} if step.repeat == 2 else {}
        return made_run(91 * step.length, 100 * step.length, **said)

    result = searched(search(start=4, most=4), serve)
    assert [(step.repeat, step.length) for step in steps] == [(1, 1), (2, 2), (3, 2), (4, 4)]
    assert result.probes[-1].verdict is Verdict.PASS
    assert result.probes[-1].attainment.due == 700


def test_an_invalid_run_does_not_count_beside_a_valid_one() -> None:
    """Attainment is that of the valid run alone."""
    probe = judge(search().rule, 2, [made_run(0, 100, invalid="late"), made_run(100, 100)])
    assert (probe.verdict, probe.attainment.due) == (Verdict.PASS, 100)


def test_a_run_that_was_cut_short_ends_the_search() -> None:
    """It tells nothing of its level."""
    wanted = search()
    result = searched(
        wanted, lambda step: made_run(0, 3, cut_short="interrupted") if step.level == 4 else made_run(100, 100)
    )
    assert levels(result) == [1, 2, 4]
    assert result.capacity is not None
    assert (result.capacity.level, result.next_failed) == (2, None)
    assert outcome_words(wanted, result) == "the search ended early: interrupted"


def test_requests_follow_from_what_is_asked_for() -> None:
    """Enough to pass when all are good, ten for each in flight, and a drawn rate within the precision."""
    assert requests_needed(search(target=0.99), 1) == 381
    assert requests_needed(search(target=0.99), 64) == 640
    assert requests_needed(search(target=0.9), 2.5, gap_variation=1.0) == 385
    assert requests_needed(search(target=0.9, precision=0.2), 2.5, gap_variation=1.0) == 97


def test_per_gpu_is_the_level_over_the_gpus() -> None:
    """Two GPUs carry half of it each; nothing where they were not told."""
    wanted = search(variable="request_rate_rps", most=4)
    result = searched(wanted, up_to(9), gpus=2)
    assert result.capacity is not None
    assert result.capacity.per_gpu == 2
    without = searched(wanted, up_to(9))
    assert without.capacity is not None
    assert without.capacity.per_gpu is None


def test_noise_is_one_for_chance_and_more_for_runs_that_differ() -> None:
    """Pearson's chi-square over its degrees, as a factor of the spread; None where no level has two telling runs."""
    rule = search(further=9).rule

    def noise(*good: int) -> float | None:
        runs = [made_run(each, 100) for each in good]
        found = noise_of([judge(rule, 2, runs[: place + 1]) for place in range(len(runs))])
        return None if found is None else found.factor

    assert noise(90, 90, 90) == 0
    assert noise(93, 87) == pytest.approx(math.sqrt(2 * 9 / 9))
    assert noise(90) is None
    assert noise(100, 100) is None


class NoisyServer:
    """Attains the target at `truth` exactly, less above; requests are good or not by chance."""

    def __init__(self, wanted: Search, truth: float, *, steepness: float, rng: np.random.Generator) -> None:
        target = wanted.rule.attainment_ratio
        self._wanted, self._truth, self._steepness, self._rng = wanted, truth, steepness, rng
        self._odds = (1 - target) / target

    def __call__(self, step: Step) -> Run:
        attained = 1 / (1 + self._odds * (step.level / self._truth) ** self._steepness)
        n = requests_needed(self._wanted, step.level) * step.length
        return Run(run_id="", evidence=Evidence.of(self._rng.random(n) < attained), summary=EXCERPT)


@pytest.mark.parametrize(
    ("variable", "target", "steepness"),
    [("concurrency", 0.9, 4), ("concurrency", 0.99, 12), ("request_rate_rps", 0.99, 4)],
)
def test_the_interval_holds_the_truth_on_a_noisy_server(variable: str, target: float, steepness: float) -> None:
    """Of 200 servers with capacities drawn from 3 to 300, the interval holds the truth for 95 % at least."""
    rng = np.random.default_rng(11)
    held, widths = 0, []
    for _ in range(200):
        truth = math.exp(rng.uniform(math.log(3), math.log(300)))
        wanted = search(variable=variable, target=target)
        found = searched(wanted, NoisyServer(wanted, truth, steepness=steepness, rng=rng)).capacity
        assert found is not None
        low, high = found.low or 0.0, found.high or math.inf
        held += low <= (math.floor(truth) if variable == "concurrency" else truth) < high
        widths.append(high / max(low, 1.0))
    assert held >= 190
    assert float(np.median(widths)) < 1.6
