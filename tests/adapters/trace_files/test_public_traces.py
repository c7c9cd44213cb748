"""The public files as they are published: counts and totals as their descriptions give them."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from loadgen.adapters.trace_files import open_trace, save_native
from loadgen.core.errors import DataError
from loadgen.core.request import Messages, Text, TokenIds
from loadgen.core.traces.part import Part
from loadgen.core.traces.texts import BorrowedText, InventedText, InventedTokenIds
from loadgen.core.units import NS_PER_S

TEXTS = InventedTokenIds(seed=1, low=1_000, high=30_000)


@pytest.mark.parametrize(
    ("name", "expected", "rows", "input_tokens", "output_tokens", "span_s"),
    [
        ("azure/AzureLLMInferenceTrace_conv.csv", "azure", 19_366, 22_361_870, 4_088_665, 3_501.721937),
        ("azure/AzureLLMInferenceTrace_code.csv", "azure", 8_819, 18_059_974, 245_896, 3_435.948056),
        ("azure/AzureLLMInferenceTrace_code_1week.sample.csv", "azure", 5, 14_683, 35, 0.07396),
        ("azure/AzureLLMInferenceTrace_conv_1week.sample.csv", "azure", 5, 5_084, 151, 0.247116),
        ("azure/AzureLMMInferenceTrace_multimodal.sample.csv", "azure", 5, 4_485, 729, 7.297),
        ("mooncake/conversation_trace.jsonl", "mooncake", 12_031, 144_793_823, 4_122_048, 3_536.999),
        ("mooncake/synthetic_trace.jsonl", "mooncake", 3_993, 61_194_628, 595_432, 1_022.025),
        ("burstgpt/BurstGPT_1.head.csv", "burstgpt", 400, 208_189, 110_612, 37_269.0),
        ("burstgpt/BurstGPT_3.head.csv", "burstgpt", 400, 246_941, 68_350, 41_453.0),
    ],
)
def test_every_row_is_read_with_its_tokens_and_times(
    material: Path,
    name: str,
    expected: str,
    rows: int,
    input_tokens: int,
    output_tokens: int,
    span_s: float,
) -> None:
    """Format by content; rows, totals and span to the digit; nothing is lost at CRLF, a missing end or a tick."""
    with open_trace(material / name, need_times=True) as source:
        facts = source.facts
    assert (facts.format, facts.rows, facts.used + sum(facts.dropped.values())) == (expected, rows, rows)
    assert (facts.input_tokens, facts.output_tokens, facts.span_s) == (input_tokens, output_tokens, span_s)
    assert facts.text == "invented"


@pytest.mark.parametrize(("number", "failed"), [(1, 17), (3, 1)])
def test_burstgpt_failed_requests_are_dropped_with_a_count(material: Path, number: int, failed: int) -> None:
    """Rows with no tokens, in both column sets."""
    with open_trace(material / f"burstgpt/BurstGPT_{number}.head.csv") as source:
        assert source.facts.dropped == {"zero_tokens": failed}


def test_burstgpt_sessions_and_think_times(material: Path) -> None:
    """135 sessions, one of which is the failed request; longest 24 turns; a wait is never longer than the gap."""
    with open_trace(material / "burstgpt/BurstGPT_3.head.csv", texts=TEXTS) as source:
        conversations = list(source.conversations())
    assert (source.facts.sessions, source.facts.longest_session) == (134, 24)
    named = [one for one in conversations if one.session_id is not None]
    assert len(named) == 134
    assert sum(len(one.turns) for one in conversations) == 399
    for one in named:
        assert one.turns[0].think_s is None
        for before, turn in pairwise(one.turns):
            assert before.offset_ns is not None
            assert turn.offset_ns is not None
            assert turn.think_s is not None
            assert 0 <= turn.think_s <= (turn.offset_ns - before.offset_ns) / NS_PER_S
    longest = max(conversations, key=lambda one: len(one.turns))
    assert [turn.think_s for turn in longest.turns[:3]] == [None, 3_779 - 5, 366 - 3]


def test_azure_arrivals_keep_their_microseconds(material: Path) -> None:
    """The smallest gap is 2 µs, the first arrival 0, the order the file's."""
    with open_trace(material / "azure/AzureLLMInferenceTrace_conv.csv", texts=TEXTS) as source:
        arrivals = [one.turns[0].offset_ns or 0 for one in source.conversations()]
    gaps = [b - a for a, b in pairwise(arrivals)]
    assert (arrivals[0], min(gaps), max(gaps)) == (0, 2_000, 4_314_579_000)
    assert (source.facts.duplicate_timestamps, source.facts.largest_burst) == (0, 1)


def test_images_are_said_not_to_be_sent(material: Path) -> None:
    """The multimodal trace is replayed as text, with a note."""
    with open_trace(material / "azure/AzureLMMInferenceTrace_multimodal.sample.csv") as source:
        assert any("images are not sent" in note for note in source.facts.notes)


def test_mooncake_arrivals_stand_on_a_grid_and_can_be_spread(material: Path) -> None:
    """1,180 distinct times on a step of 3 s, up to 28 at once; spread, they move by less than a step."""
    with open_trace(material / "mooncake/conversation_trace.jsonl") as source:
        facts = source.facts
        spread = source.part(Part(spread=True, seed=1)).facts
    assert (facts.duplicate_timestamps, facts.largest_burst, facts.resolution_s) == (10_851, 28, 3.0)
    assert spread.duplicate_timestamps is not None
    assert spread.duplicate_timestamps < 10
    assert spread.span_s == pytest.approx(facts.span_s, abs=6)
    assert any("spread over 3 s" in note for note in spread.notes)


@pytest.mark.parametrize(
    ("name", "limit", "least"), [("conversation_trace.jsonl", 150, 149), ("synthetic_trace.jsonl", 400, 16)]
)
def test_mooncake_prompts_share_exactly_the_blocks_they_shared(
    material: Path, name: str, limit: int, least: int
) -> None:
    """Two prompts that begin with one block have as many first tokens in common as their block numbers say."""
    path = material / "mooncake" / name
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    with open_trace(path, texts=TEXTS) as source:
        prompts = [one.turns[0].prompt for one in source.part(Part(limit=limit)).conversations()]
    assert len(prompts) == limit
    seen: dict[int, int] = {}
    compared = 0
    for n, prompt in enumerate(prompts):
        other = seen.setdefault(rows[n]["hash_ids"][0], n)
        before = prompts[other]
        assert isinstance(prompt, TokenIds)
        assert isinstance(before, TokenIds)
        assert len(prompt.ids) == rows[n]["input_length"]
        if other == n:
            continue
        pairs = zip(rows[n]["hash_ids"], rows[other]["hash_ids"], strict=False)
        blocks = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
        shared = min(len(prompt.ids), len(before.ids)) if blocks is None else blocks * 512
        assert prompt.ids[:shared] == before.ids[:shared]
        if blocks is not None:
            assert prompt.ids[shared : shared + 16] != before.ids[shared : shared + 16]
        compared += 1
    assert compared >= least
    assert len({prompt.ids[:16] for prompt in prompts if isinstance(prompt, TokenIds)}) == len(seen)


def test_humaneval_prompts_are_untouched(material: Path) -> None:
    """164 prompts out of gzip, 142 of which begin with a newline."""
    with open_trace(material / "prompts/HumanEval.jsonl.gz") as source:
        texts = [one.turns[0].prompt for one in source.conversations()]
    assert all(isinstance(text, Text) for text in texts)
    assert sum(isinstance(text, Text) and text.text.startswith("\n") for text in texts) == 142
    facts = source.facts
    assert (facts.rows, facts.used, facts.format, facts.text, facts.span_s) == (164, 164, "prompts", "real", None)
    assert facts.prompt_characters is not None
    assert (facts.prompt_characters.min, facts.prompt_characters.max) == (115, 1_360)


def test_mt_bench_questions_have_two_turns(material: Path) -> None:
    """80 questions in 8 categories of 10; the second turn waits for the answer to the first."""
    with open_trace(material / "prompts/mt_bench_question.jsonl") as source:
        conversations = list(source.conversations())
    assert len(conversations) == 80
    assert (source.facts.requests, source.facts.longest_session) == (160, 2)
    assert all([turn.continues_answers for turn in one.turns] == [False, True] for one in conversations)
    assert all(isinstance(turn.prompt, Messages) for one in conversations for turn in one.turns)
    assert conversations[0].session_id == "81"
    categories = [one.category for one in conversations]
    assert {categories.count(category) for category in categories} == {10}


def test_a_trace_can_borrow_real_prompts(material: Path) -> None:
    """Lengths from one file, texts from another; how far the lengths are met is said."""
    with open_trace(material / "prompts/mt_bench_question.jsonl") as prompts:
        texts = BorrowedText(prompts.conversations(), seed=1)
    with open_trace(material / "azure/AzureLLMInferenceTrace_conv_1week.sample.csv", texts=texts) as source:
        assert source.facts.text == "borrowed"
        assert any("% of the input tokens" in note for note in source.facts.notes)
        assert all(isinstance(one.turns[0].prompt, Messages) for one in source.conversations())


@pytest.mark.parametrize("name", ["servegen/offline/trace_a.head.jsonl", "servegen/language/m-small/chunk-4-trace.csv"])
def test_files_of_other_kinds_are_refused_by_what_they_hold(material: Path, name: str) -> None:
    """Hash ids of an unknown block size, and arrival laws without a header, are not guessed at."""
    with pytest.raises(DataError, match="is of no known format"):
        open_trace(material / name)


@pytest.mark.parametrize(
    "name",
    [
        "azure/AzureLLMInferenceTrace_code.csv",
        "burstgpt/BurstGPT_3.head.csv",
        "mooncake/synthetic_trace.jsonl",
        "prompts/HumanEval.jsonl.gz",
        "prompts/mt_bench_question.jsonl",
    ],
)
def test_a_converted_file_gives_the_same_conversations(material: Path, tmp_path: Path, name: str) -> None:
    """Times, lengths, prompts, sessions, waits and shared blocks survive the native form."""
    texts = InventedText(seed=5)
    with open_trace(material / name, texts=texts) as source:
        written = save_native(source, tmp_path / "native.jsonl")
        assert written == source.facts.requests
        with open_trace(tmp_path / "native.jsonl", texts=texts) as converted:
            assert converted.facts.format in ("native", "prompts")
            assert not [note for note in converted.facts.notes if "earlier" in note]
            for one, other in zip(source.conversations(), converted.conversations(), strict=True):
                assert (one.session_id, one.category) == (other.session_id, other.category)
                for turn, again in zip(one.turns, other.turns, strict=True):
                    assert (turn.offset_ns, turn.think_s) == (again.offset_ns, again.think_s)
                    assert (turn.input_tokens, turn.output_tokens) == (again.input_tokens, again.output_tokens)
                    assert turn.continues_answers == again.continues_answers
                    if source.facts.text == "real":
                        assert turn.prompt == again.prompt
            if source.facts.text == "real":
                return
            facts, again_facts = source.facts, converted.facts
            assert (facts.input_tokens, facts.output_tokens, facts.span_s, facts.sessions) == (
                again_facts.input_tokens,
                again_facts.output_tokens,
                again_facts.span_s,
                again_facts.sessions,
            )
