import pytest

from loadgen.sim.server.exchange import RefusedError
from loadgen.sim.server.prompts import block_names, chat_ids
from loadgen.sim.server.tokens import END, ids_of

QUESTION = {"role": "user", "content": "How high is the lamp?"}


def test_the_next_turn_begins_with_this_one_and_its_answer() -> None:
    """The prompt of a second turn begins with the first one's prompt, the answer's tokens and their end."""
    first = chat_ids([QUESTION])
    second = chat_ids([QUESTION, {"role": "assistant", "content": "Two steps."}, {"role": "user", "content": "Why?"}])
    expected = [*first, *ids_of("Two steps."), END]
    assert second[: len(expected)] == expected


def test_content_in_parts_is_its_texts_line_by_line() -> None:
    """A list of text parts means the same as the text with a line for each."""
    parts = [{"type": "text", "text": "How high"}, {"type": "text", "text": "is the lamp?"}]
    assert chat_ids([{"role": "user", "content": parts}]) == chat_ids(
        [{"role": "user", "content": "How high\nis the lamp?"}]
    )


def test_tool_calls_are_part_of_a_message() -> None:
    """An assistant's message with a call and no content has the call's tokens; different calls differ."""
    prompts = {
        tuple(chat_ids([QUESTION, {"role": "assistant", "content": None, "tool_calls": [{"id": call}]}]))
        for call in ("a", "b")
    }
    assert len(prompts) == 2


@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool", "gärtner"])
def test_every_role_is_told_from_others(role: str) -> None:
    """The same words from another role are another prompt, and no role is unknown."""
    assert chat_ids([{"role": role, "content": "lamp"}]) != chat_ids([{"role": "developer", "content": "lamp"}])


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"role": 5},
        {"role": "user", "content": 5},
        {"role": "user", "content": [5]},
        {"role": "user", "content": [{"type": "image_url"}]},
    ],
)
def test_a_message_that_cannot_be_read_is_refused(message: dict[str, object]) -> None:
    """A message without a role, or with content other than text, is a bad request."""
    with pytest.raises(RefusedError) as refused:
        chat_ids([message])
    assert refused.value.status == 400


def test_blocks_are_named_by_all_that_leads_to_their_end() -> None:
    """Equal beginnings have equal names up to the block with the first difference, and none after it."""
    one = block_names(range(100), None, 16)
    other = block_names([*range(40), 7, *range(41, 100)], None, 16)
    assert len(one) == 100 // 16
    assert one[:2] == other[:2]
    assert not set(one[2:]) & set(other[2:])


def test_a_salt_keeps_prefixes_apart() -> None:
    """With another salt, or with none, no block has the same name."""
    names = [block_names(range(64), salt, 16) for salt in (None, "a", "b")]
    assert len(set().union(*names)) == 12


def test_a_block_that_is_not_full_has_no_name() -> None:
    """Tokens after the last full block are in no block; a prompt shorter than one has none."""
    assert block_names(range(15), None, 16) == ()
    assert block_names(range(47), None, 16) == block_names(range(32), None, 16)
