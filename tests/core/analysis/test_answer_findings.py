"""Doubts about answers: on the run that deserves them, and not on the one that does not."""

import pytest

from tests.core.analysis.factory import answered, closed_loop, findings


def test_replies_not_streamed() -> None:
    """Asked for a stream and got a body; nothing to say when no stream was asked for."""
    whole = {"streamed": False, "first_ns": None, "first_output_ns": None, "event_ns": (), "event_tokens": None}
    records = [*closed_loop(118), *(answered(200 + seq, sent_ms=281 * (118 + seq), **whole) for seq in range(2))]
    assert "2 of 120 replies" in findings(records)["not_streamed"].evidence
    assert "not_streamed" not in findings(records, options={"stream": False})


def test_usage_missing() -> None:
    """Counts that are not the server's are named."""
    records = [
        *closed_loop(110),
        *(answered(200 + seq, output_tokens_from=None, output_tokens=None) for seq in range(3)),
    ]
    assert "3 of 113" in findings(records)["usage_missing"].evidence


def test_token_counts_that_disagree() -> None:
    """The server says 10 a request where 7 came; a stop token without text is forgiven."""
    found = findings(closed_loop(event_tokens=(1,) * 7))["token_counts_disagree"]
    assert "360 of 1200 tokens (30.0%)" in found.evidence
    assert "token_counts_disagree" not in findings(closed_loop(event_tokens=(1,) * 9))


def test_hidden_reasoning() -> None:
    """Counted and not streamed."""
    hidden = closed_loop(output_tokens=650, reasoning_tokens=640, event_tokens=None)
    found = findings(hidden)
    assert "120 of 120 answers" in found["reasoning_hidden"].evidence
    assert "token_counts_disagree" not in found


def test_decode_that_was_not_timed() -> None:
    """Answers in one piece have no TPOT and are counted."""
    at_once = closed_loop(tokens=1, output_tokens=320, event_tokens=None)
    assert "120 of 120 answers of two tokens or more" in findings(at_once)["decode_not_timed"].evidence
    assert "decode_not_timed" not in findings(closed_loop(tokens=1))


def test_a_few_answers_in_one_piece_are_no_doubt() -> None:
    """Six of 120 leave the distribution as it is, seven are said; answers of one token are not among them."""
    at_once, ordinary = closed_loop(tokens=1, output_tokens=320, event_tokens=None), closed_loop()
    assert "decode_not_timed" not in findings(at_once[:6] + ordinary[6:])
    mixed = at_once[:7] + ordinary[7:] + [answered(seq, sent_ms=281 * seq, tokens=1) for seq in range(120, 170)]
    assert "7 of 120 answers" in findings(mixed)["decode_not_timed"].evidence


def test_first_events_of_several_tokens() -> None:
    """Four of 13 tokens in the first event: by how much TPOT is too low is said."""
    found = findings(closed_loop(tokens=10, output_tokens=13, event_tokens=(4, *(1,) * 9)))["first_event_several"]
    assert found.severity == "info"
    assert "In 120 of 120 answers" in found.evidence
    assert "too low by 25.0%" in found.evidence


def test_lengths_that_are_not_those_asked_for() -> None:
    """max_tokens 256 and answers of 10; prompts 15 % over: actual lengths are used, the difference is said."""
    found = findings(closed_loop(planned_output_tokens=256, planned_input_tokens=85))
    assert "1200 output tokens where 30720 were asked for (0.04 x)" in found["output_length"].evidence
    assert "12000 input tokens where 10200 were asked for (1.18 x)" in found["input_length"].evidence
    assert {found["output_length"].severity, found["input_length"].severity} == {"info"}
    exact = findings(closed_loop(planned_output_tokens=10, planned_input_tokens=95))
    assert not {"output_length", "input_length"} & set(exact)


@pytest.mark.parametrize(
    ("planned", "severity"), [(91, None), (89, "info"), (51, "info"), (49, "warning"), (199, "info"), (201, "warning")]
)
def test_prompts_of_quite_another_length_are_a_warning(planned: int, severity: str | None) -> None:
    """The server counts 100 tokens a prompt: beyond twice or half of what was asked for the load is another one."""
    found = findings(closed_loop(planned_input_tokens=planned)).get("input_length")
    assert (None if found is None else found.severity) == severity
    assert severity != "warning" or "not the load that was asked for" in found.evidence


@pytest.mark.parametrize(
    ("text", "token_ids", "advice"),
    [
        ("invented", False, "--token-ids sends exact lengths"),
        ("invented", True, "other tokens than were sent"),
        ("borrowed", False, "more of them (--prompts)"),
        ("real", False, "another model's tokens"),
    ],
)
def test_advice_on_input_lengths_fits_the_data(text: str, token_ids: bool, advice: str) -> None:
    """Only invented prompts can be sent as token ids; what a file holds cannot be made longer."""
    found = findings(closed_loop(planned_input_tokens=85), data={"text": text}, options={"token_ids": token_ids})
    assert advice in found["input_length"].advice


def test_a_bound_on_answers_is_what_was_asked_for() -> None:
    """The data wants 256 tokens and --max-tokens 10: answers of 10 are as long as asked, answers of 10 under 20 not."""
    asked = closed_loop(planned_output_tokens=256)
    assert "output_length" not in findings(asked, options={"max_tokens": 10})
    assert "1200 output tokens where 2400" in findings(asked, options={"max_tokens": 20})["output_length"].evidence


def test_answers_longer_than_they_were_allowed() -> None:
    """By the data's own length or the run's bound, whichever is less; the longest is told. A body that sets its own
    bound is nobody's fault."""
    asked = [
        *closed_loop(planned_output_tokens=10)[:-1],
        answered(119, sent_ms=281 * 119, tokens=30, planned_output_tokens=12),
    ]
    found = findings(asked)["limit_exceeded"]
    assert (
        found.evidence
        == "1 of 120 answers have more output tokens than they were allowed, 30 where 12 were for example."
    )
    assert found.severity == "warning"
    found = findings(closed_loop(planned_output_tokens=256), options={"max_tokens": 9})["limit_exceeded"]
    assert found.evidence.startswith("120 of 120 answers have more output tokens than they were allowed, 10 where 9")
    assert "120 of 120" in findings(closed_loop(), options={"max_tokens": 9})["limit_exceeded"].evidence
    own = {"max_tokens": 9, "extra_body": {"max_completion_tokens": 20}}
    assert "limit_exceeded" not in findings(closed_loop(), options=own)
    assert "limit_exceeded" not in findings(closed_loop(planned_output_tokens=10))


def test_the_bound_of_a_run_is_one_of_each_answer() -> None:
    """Two answers of 10 tokens under --max-tokens 12 to a request whose own bound was 15 each: nobody knows how many
    may come in all. Without a bound of the run the data tells it."""
    both = closed_loop(planned_output_tokens=30, tokens=20, notes=("several_choices",))
    blamed = {"limit_exceeded", "ended_early", "output_length"}
    assert blamed.isdisjoint(findings(both, options={"max_tokens": 12, "ignore_eos": True}))
    assert {"ended_early", "output_length"} <= set(findings(both, options={"ignore_eos": True}))
    one = closed_loop(planned_output_tokens=30, tokens=20)
    assert "limit_exceeded" in findings(one, options={"max_tokens": 12})


def test_answers_that_end_although_their_end_was_to_be_ignored() -> None:
    """Without that wish answers end where they end."""
    found = findings(closed_loop(planned_output_tokens=11), options={"ignore_eos": True})["ended_early"]
    assert (found.severity, found.evidence.partition(" (")[0]) == (
        "warning",
        "120 of 120 answers ended before the length asked for",
    )
    assert "ended_early" not in findings(closed_loop(planned_output_tokens=11))
    assert "ended_early" not in findings(closed_loop(planned_output_tokens=10), options={"ignore_eos": True})


def test_objective_without_a_value() -> None:
    """One-token answers under a TPOT objective are not good; a closed loop has no TTFT from due."""
    records = [answered(seq, sent_ms=281 * seq, tokens=1 if seq < 12 else 10) for seq in range(120)]
    found = findings(records, slo={"tpot_s": 0.05, "ttft_s": 0.5})["objective_without_value"]
    assert "tpot_s: 12." in found.evidence
    assert "ttft_s: " not in found.evidence
    assert (
        "ttft_from_due_s: 120"
        in findings(closed_loop(), slo={"ttft_from_due_s": 1.0})["objective_without_value"].evidence
    )
