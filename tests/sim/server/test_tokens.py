import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.core.traces.words import text_pool
from loadgen.sim.server.tokens import END, START, VOCABULARY_SIZE, ids_of, text_of


@settings(max_examples=150, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])) | st.text("aThe .\n7é", max_size=30))
def test_any_text_comes_back_from_its_tokens(text: str) -> None:
    """Cutting a text into tokens loses nothing, whatever characters it has, and gives ids of the vocabulary."""
    ids = ids_of(text)
    assert text_of(ids) == text
    assert all(0 <= token < VOCABULARY_SIZE for token in ids)


@pytest.mark.parametrize(
    "text", ["", "The keeper lights the lamp.", "  two  spaces ", "a\n\n\tb", "春は、あけぼの。", "🙂🙂"]
)
def test_texts_of_many_kinds_come_back(text: str) -> None:
    """Words, spaces, line ends and characters of several bytes are all kept."""
    assert text_of(ids_of(text)) == text


def test_half_a_character_is_replaced() -> None:
    """A lone surrogate, which UTF-8 cannot hold, becomes a question mark; the text around it stays."""
    assert text_of(ids_of("lamp \ud800 lamp")) == "lamp ? lamp"


def test_a_generated_prompt_has_about_one_token_a_word() -> None:
    """The text that prompts are cut from costs a token for each word and one for each full stop, no more."""
    text = text_pool().cut(0, 5_000)
    assert len(ids_of(text)) == 5_000 + text.count(".")


def test_a_word_is_one_token_in_each_form() -> None:
    """With or without a space before it and a capital letter, a word is one token, and each form has its own."""
    forms = ["lamp", "Lamp", " lamp", " Lamp"]
    assert [len(ids_of(form)) for form in forms] == [1, 1, 1, 1]
    assert len({ids_of(form)[0] for form in forms}) == 4


def test_the_marks_of_the_template_cannot_be_written() -> None:
    """A text that spells out a mark is only that text: a user cannot end a message by writing its end."""
    assert not {START, END} & set(ids_of(text_of([START, END])))


def test_a_token_outside_the_vocabulary_has_no_text() -> None:
    """An id beyond the vocabulary is an error, not some text."""
    with pytest.raises(IndexError):
        text_of([VOCABULARY_SIZE])
