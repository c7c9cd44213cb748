"""Text and token ids: a vocabulary of words, and of one or two UTF-8 bytes for everything else.

A word of the vocabulary is one token, with or without a space before it and a capital letter at its front. What lies
between words, and every other word, is cut into pieces of two bytes, a last odd one alone. Any text comes back from its
ids unchanged; a character of several bytes may be spread over tokens, so single tokens of such text decode to
replacement characters. What the language model writes are words and ASCII punctuation only.
"""

import re
from collections.abc import Iterable

from loadgen.core.traces.words import WORDS

_FREQUENT = """
    a about after all also am an and any are as at be because been but by can could did do does each every for from
    get go had has have he her here him his how I if in into is it its just know like may me more most much must my no
    not now of off on one only or other our out over own people say she should so some such take than that the their
    them then there these they thing this three time times to too two under up us use very was we were what when where
    which while who why will with without word words work would write year yes you your
    system developer user assistant tool
"""

_PAIRS = 256
_SPECIALS = _PAIRS + 65_536
START, MESSAGE, END = range(_SPECIALS, _SPECIALS + 3)
"""Marks of the chat template: before a message's role, between its role and its content, and after it. END is also how
an answer ends by itself."""

_FORMS = tuple(
    dict.fromkeys(
        space + form
        for word in (*WORDS, *_FREQUENT.split())
        for space in ("", " ")
        for form in (word, word[0].upper() + word[1:])
    )
)
_BYTES = (
    *(bytes((byte,)) for byte in range(256)),
    *(bytes((first, second)) for first in range(256) for second in range(256)),
    b"<|start|>",
    b"<|message|>",
    b"<|end|>",
    *(form.encode() for form in _FORMS),
)
_IDS = {form: _SPECIALS + 3 + index for index, form in enumerate(_FORMS)}
_CUTS = re.compile(r" ?[A-Za-z]+|(?:[^A-Za-z ]| (?![A-Za-z]))+")

VOCABULARY_SIZE = len(_BYTES)
"""Ids are 0 to this, exclusive."""


def ids_of(text: str) -> list[int]:
    """The tokens of a text. Half a surrogate pair, which is no character, becomes a question mark.

    The marks of the chat template are never read out of a text.
    """
    ids: list[int] = []
    for piece in _CUTS.findall(text):
        word = _IDS.get(piece)
        if word is None:
            data = piece.encode("utf-8", "replace")
            ids += [_PAIRS + 256 * first + second for first, second in zip(data[::2], data[1::2], strict=False)]
            if len(data) % 2:
                ids.append(data[-1])
        else:
            ids.append(word)
    return ids


def text_of(ids: Iterable[int]) -> str:
    """The text of tokens; what is no UTF-8 becomes replacement characters. IndexError for an id of no token."""
    return b"".join([_BYTES[token] for token in ids]).decode("utf-8", "replace")
