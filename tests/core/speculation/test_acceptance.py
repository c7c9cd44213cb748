"""Acceptance: one formula under each name, pooled as sums, from blocks or from the stream."""

import numpy as np
import pytest

from loadgen.core.errors import InternalError
from loadgen.core.metrics.summary import Speculation
from loadgen.core.record import RequestRecord, RequestSpeculation
from loadgen.core.speculation.acceptance import Acceptance, from_block, from_step_tokens, pooled
from loadgen.core.speculation.server_side import ServerSide
from loadgen.core.speculation.tally import AcceptanceTally
from tests.core.analysis.factory import answered


def tallied(*records: RequestRecord) -> Speculation | None:
    tally = AcceptanceTally()
    for record in records:
        tally.observe(record)
    return tally.result(ServerSide())


def block(*histogram: int, drafted: int | None = None, k: int | None = None) -> RequestSpeculation:
    steps = sum(histogram)
    return RequestSpeculation(
        steps=steps,
        drafted_tokens=steps * (len(histogram) - 1) if drafted is None else drafted,
        accepted_tokens=sum(accepted * count for accepted, count in enumerate(histogram)),
        histogram=histogram,
        max_draft_tokens=k,
    )


def test_length_and_ratio_are_two_formulas() -> None:
    """80 drafts of 5 tokens, 180 accepted: ratio 0.45, length 3.25; accepted / steps has no name here."""
    acceptance = Acceptance(steps=80, drafted_tokens=400, accepted_tokens=180)
    assert acceptance.ratio == pytest.approx(0.45)
    assert acceptance.length == pytest.approx(3.25)


def test_by_position_is_survival_and_sums_to_the_length() -> None:
    """Of 10 steps 2 accepted none, 3 one, 1 two, 4 three: 0.8, 0.5, 0.4."""
    acceptance = Acceptance(steps=10, accepted_tokens=17, histogram=(2, 3, 1, 4))
    assert acceptance.by_position == pytest.approx((0.8, 0.5, 0.4))
    assert acceptance.length == pytest.approx(1 + 0.8 + 0.5 + 0.4)


def test_no_steps_have_no_ratio() -> None:
    """Nothing drafted: no value, neither 0 nor 1."""
    nothing = Acceptance(steps=0, drafted_tokens=0, accepted_tokens=0, histogram=())
    assert (nothing.length, nothing.ratio, nothing.by_position) == (None, None, None)


@pytest.mark.parametrize(("steps", "accepted"), [(9, 17), (10, 16), (None, 17)])
def test_a_histogram_that_does_not_add_up_is_refused(steps: int | None, accepted: int) -> None:
    """Counts that contradict each other never reach a ratio."""
    with pytest.raises(InternalError, match=r"histogram \[2, 3, 1, 4\] does not add up"):
        Acceptance(steps=steps, accepted_tokens=accepted, histogram=(2, 3, 1, 4))


def test_pooling_is_a_ratio_of_sums() -> None:
    """A long answer that accepts nothing outweighs a short one that accepts all: 1.3, not the mean 2.5."""
    spec = tallied(
        answered(0, speculation=block(90, 0, 0, 0)),
        answered(1, speculation=block(0, 0, 0, 10)),
    )
    assert spec is not None
    assert spec.acceptance_length == pytest.approx(1 + 30 / 100)
    assert spec.acceptance_ratio == pytest.approx(30 / 300)
    assert (spec.steps, spec.drafted_tokens, spec.accepted_tokens) == (100, 300, 30)
    assert spec.origin == "per_request"


def test_histograms_of_different_lengths_add_place_by_place() -> None:
    """A missing tail is zero: 1, 3, 5 and 0, 2, 4, 8 make 1, 5, 9, 8."""
    first = Acceptance(steps=9, accepted_tokens=13, histogram=(1, 3, 5))
    second = Acceptance(steps=14, accepted_tokens=34, histogram=(0, 2, 4, 8))
    assert pooled([first, second]).histogram == (1, 5, 9, 8)


def test_a_count_that_one_request_lacks_makes_no_ratio() -> None:
    """Sums over different requests are never divided by each other."""
    spec = tallied(
        answered(0, speculation=block(5, 5)),
        answered(1, speculation=RequestSpeculation(drafted_tokens=20, accepted_tokens=10)),
    )
    assert spec is not None
    assert spec.acceptance_length is None
    assert spec.acceptance_by_position is None
    assert spec.acceptance_ratio == pytest.approx(15 / 30)
    assert any("no steps" in note for note in spec.notes)


def test_a_block_from_per_step_lists() -> None:
    """Where only steps are listed, the counts follow from them."""
    found = from_block(RequestSpeculation(per_step_accepted=(0, 2, 2, 1), per_step_drafted=(3, 3, 3, 3)))
    assert found is not None
    assert (found.steps, found.accepted_tokens, found.histogram) == (4, 5, (1, 1, 2))


@pytest.mark.parametrize(
    "contradiction",
    [
        RequestSpeculation(steps=9, accepted_tokens=17, histogram=(2, 3, 1, 4)),
        RequestSpeculation(steps=10, accepted_tokens=99, histogram=(2, 3, 1, 4)),
        RequestSpeculation(steps=10, drafted_tokens=5, accepted_tokens=9),
    ],
)
def test_a_contradicting_block_is_left_out_and_counted(contradiction: RequestSpeculation) -> None:
    """One server's wrong numbers spoil no one else's, and are said."""
    spec = tallied(answered(0, speculation=contradiction), answered(1, speculation=block(5, 5)))
    assert spec is not None
    assert spec.steps == 10
    assert any("1 requests' counts contradict" in note for note in spec.notes)


def test_an_answer_too_short_to_draft_adds_nothing() -> None:
    """A block of zero steps neither spoils nor changes the pool; alone it gives steps and no ratio."""
    short = answered(0, speculation=RequestSpeculation(steps=0))
    spec = tallied(short, answered(1, speculation=block(5, 5)))
    assert spec is not None
    assert (spec.steps, spec.acceptance_length) == (10, pytest.approx(1.5))
    alone = tallied(short)
    assert alone is not None
    assert (alone.steps, alone.acceptance_length, alone.acceptance_ratio) == (0, None, None)


def test_a_baseline_has_no_speculation() -> None:
    """One token an event and no blocks: None, not zeros."""
    assert tallied(answered(0), answered(1, event_tokens=None), answered(2, speculation=RequestSpeculation())) is None
    assert tallied() is None


def test_a_rare_double_event_is_not_speculation() -> None:
    """A slow read merges two events of 1,000: still a baseline."""
    merged = answered(0, tokens=1001, event_tokens=(1,) * 500 + (2,) + (1,) * 499)
    assert tallied(merged) is None


def test_from_the_stream_every_event_after_the_first_is_a_step() -> None:
    """Events of 1 + 3, 1, 2 tokens: three steps emitted six tokens, length 2, half of the pairs by position."""
    spec = tallied(answered(0, tokens=7, event_tokens=(1, 3, 1, 2)))
    assert spec is not None
    assert spec.origin == "stream"
    assert (spec.steps, spec.accepted_tokens, spec.drafted_tokens) == (3, 3, None)
    assert spec.acceptance_length == pytest.approx(2.0)
    assert spec.acceptance_ratio is None
    assert spec.acceptance_by_position == pytest.approx((2 / 3, 1 / 3))
    assert spec.coverage_ratio is None


def test_each_request_has_its_own_tokens_per_event() -> None:
    """An answer at one token an event and one at four pool to all their steps, not to an average divisor."""
    slow, fast = from_step_tokens(np.full(12, 1)), from_step_tokens(np.full(3, 4))
    assert (slow.length, fast.length) == (1.0, 4.0)
    assert pooled([slow, fast]).length == pytest.approx(1 + 9 / 15)


def test_blocks_win_over_the_stream_and_give_coverage() -> None:
    """4 of 10 decode steps drafted: the length is that of the 4, and a note tells the tokens per decode step."""
    events = (1, *(1,) * 6, 3, 3, 2, 2)
    spec = tallied(answered(0, tokens=sum(events), event_tokens=events, speculation=block(0, 2, 2)))
    assert spec is not None
    assert spec.origin == "per_request"
    assert spec.coverage_ratio == pytest.approx(0.4)
    assert spec.acceptance_length == pytest.approx(2.5)
    assert any("40%" in note and "1.60 tokens" in note for note in spec.notes)


def test_full_coverage_needs_no_note() -> None:
    """When every step drafted, length and tokens per step agree."""
    spec = tallied(answered(0, tokens=7, event_tokens=(1, 2, 2, 2), speculation=block(0, 3)))
    assert spec is not None
    assert spec.coverage_ratio == 1.0
    assert spec.notes == ()


def test_more_drafting_steps_than_events_is_no_coverage_above_one() -> None:
    """The server merged steps: no ratio is clamped, and the reason is said."""
    spec = tallied(answered(0, tokens=9, event_tokens=(1, 4, 4), speculation=block(0, 4, 0, 0)))
    assert spec is not None
    assert spec.coverage_ratio is None
    assert any("4 drafting steps but only 2 events" in note for note in spec.notes)


@pytest.mark.parametrize("tokens", [3, 31])
def test_events_larger_than_a_step_are_counted_and_left_out(tokens: int) -> None:
    """A step of k = 1 emits two tokens at most; one of 31, as logprobs in chat make them, shows no steps."""
    spec = tallied(
        answered(0, tokens=tokens + 1, event_tokens=(1, tokens), speculation=block(0, 4, k=1)),
        answered(1, tokens=6, event_tokens=(1, 2, 2, 1), speculation=block(1, 2, k=1)),
    )
    assert spec is not None
    assert spec.oversize_events == 1
    assert any("1 events held more tokens than a step can emit" in note for note in spec.notes)
    stream = next(view for view in spec.views if view.origin == "stream")
    assert stream.histogram == (1, 2)
    assert spec.coverage_ratio == 1.0
    assert spec.tokens_per_step == pytest.approx(5 / 3)
    assert spec.per_request is not None
    assert (spec.per_request.tokens_per_step.n, spec.per_request.tokens_per_step.missing) == (1, 1)


def test_without_event_tokens_a_note_says_what_is_not_known() -> None:
    """Blocks alone do not tell the steps that drafted nothing."""
    spec = tallied(answered(0, event_tokens=None, speculation=block(5, 5)))
    assert spec is not None
    assert spec.coverage_ratio is None
    assert any("not tokens per decode step" in note for note in spec.notes)
