"""Invented text: sentences from a word list of our own, made once, then cut into prompts."""

from array import array
from dataclasses import dataclass
from functools import cache

import numpy as np


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_NOUNS = _words(
    """
    anchor apple arch arrow autumn baker balcony barn basket bay beach bell bench berry bird blanket boat book
    border bottle box branch bread breeze bridge brook brother brush bucket builder button cabin cable camera camp
    canal candle canyon captain carpet cart castle cave cellar chair chapel cherry child circle city clay clerk
    cliff clock cloud coast coat coffee coin colour compass copper corner cottage cotton country cousin crew cup
    curtain dairy daughter dawn desert desk doctor door dream driver drum dust eagle echo edge engine evening
    factory farmer feather fence ferry field finger fire fisher flag flame floor flower forest fountain fox friend
    frost fruit garden gate ghost giant glass glove gold grain grape grass guest guitar hall hammer harbour hat hay
    hill honey horse hotel house island jacket jar journey judge kettle key kitchen kite knot ladder lake lamp lane
    lantern leaf lemon letter library light lily lion lock machine map market meadow melody milk mill mirror moon
    morning mountain museum needle neighbour nest night north notebook oak ocean office orchard oven owl painter
    palace paper path pearl pen pepper piano picture pilot pine pipe planet plate pocket poem pond potter queen
    rabbit rail rain reader ribbon river road robin roof room root rope rose sail salt sand saddle school sea season
    seed shadow sheep shell shirt shop shore silver sister sky smoke snow soldier song spoon spring square stable
    stair star station stone storm story stove stranger stream street student summer sun table tailor tea teacher
    temple tent thread ticket tide tower town track train tree tunnel valley village violin visitor wagon wall water
    wave weaver well wheel wind window winter wolf wood wool worker yard
    """
)

_VERBS = _words(
    """
    admires answers asks believes borrows breaks brings builds buys calls carries catches chooses cleans climbs
    closes collects copies counts covers crosses describes discovers draws drops enters explains feeds fills finds
    finishes follows forgets gathers gives greets guards hears helps hides holds imagines invites joins keeps knows
    leaves lends lifts likes loses makes marks measures meets mends misses moves names needs notices offers opens
    orders owns packs paints passes pays plants praises prepares protects pulls pushes reaches reads remembers
    repairs returns saves sees sells sends shares shows studies takes teaches thanks touches trades trusts uses
    visits wants warns washes watches weighs wins writes
    """
)

_ADJECTIVES = _words(
    """
    ancient bitter blue brave brief bright broad broken brown busy calm careful cheap clean clear clever cold common
    cool crooked curious dark deep distant dry early eager empty even faint fair familiar famous fast fine fresh
    friendly full gentle golden grand great green grey happy hard heavy hidden high hollow honest hungry idle kind
    large late lazy light little lively lonely long loud low lucky modern narrow new noble noisy odd old open pale
    patient plain pleasant polite poor proud quick quiet rare ready red rich ripe rough round royal secret sharp
    short silent simple slow small smooth soft solid spare steady steep still strange strong sudden sweet tall
    tender thick thin tidy tiny tired warm weak wet white whole wide wild wise wooden yellow young
    """
)

_ADVERBS = _words(
    """
    again always badly barely briefly calmly daily gladly hardly kindly mostly nearly never often once quickly
    quietly rarely really safely seldom simply slowly softly soon still then today truly twice usually well
    """
)

_PLACES = _words(
    """
    above across against along around before behind below beside between beyond inside near outside over past
    """
)

WORDS = tuple(dict.fromkeys(_NOUNS + _VERBS + _ADJECTIVES + _ADVERBS + _PLACES))
"""Distinct words in a fixed order; openings are written in them as digits."""

_SENTENCES = (
    ("The", _ADJECTIVES, _NOUNS, _VERBS, "the", _NOUNS, _PLACES, "the", _ADJECTIVES, _NOUNS),
    ("A", _NOUNS, _ADVERBS, _VERBS, "the", _ADJECTIVES, _NOUNS),
    ("Every", _NOUNS, _PLACES, "the", _NOUNS, _VERBS, "a", _ADJECTIVES, _NOUNS, "and", _VERBS, "the", _NOUNS),
    ("When", "the", _NOUNS, _VERBS, "a", _NOUNS, "the", _ADJECTIVES, _NOUNS, _ADVERBS, _VERBS, "it"),
    ("She", _VERBS, "the", _NOUNS, _PLACES, "the", _NOUNS, "but", _ADVERBS, _VERBS, "the", _NOUNS),
    ("He", _ADVERBS, _VERBS, "a", _ADJECTIVES, _NOUNS, "because", "the", _NOUNS, _VERBS, "the", _NOUNS),
    ("No", _NOUNS, _VERBS, "the", _ADJECTIVES, "and", _ADJECTIVES, _NOUNS, _PLACES, "the", _NOUNS),
)

POOL_WORDS = 2**18


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPool:
    """One long text; word i is `text[starts[i]:starts[i + 1] - 1]`."""

    text: str
    starts: "array[int]"

    @property
    def words(self) -> int:
        """How many words it has."""
        return len(self.starts) - 1

    def cut(self, first: int, count: int) -> str:
        """`count` words from word `first` on, going round at the end."""
        words, starts = self.words, self.starts
        if first + count <= words:
            return self.text[starts[first] : starts[first + count] - 1]
        parts = [self.text[starts[first] :]]
        count -= words - first
        parts += [self.text] * (count // words)
        if count % words:
            parts.append(self.text[: starts[count % words] - 1])
        return " ".join(parts)


@cache
def text_pool() -> TextPool:
    """The text that prompts are cut from, the same in every process. About 0.2 s the first time."""
    random = np.random.Generator(np.random.PCG64(20_231_116))
    kinds = random.integers(len(_SENTENCES), size=POOL_WORDS // 6).tolist()
    draws = iter(random.random(POOL_WORDS * 2).tolist())
    words: list[str] = []
    for kind in kinds:
        words += [part if isinstance(part, str) else part[int(next(draws) * len(part))] for part in _SENTENCES[kind]]
        words[-1] += "."
        if len(words) >= POOL_WORDS:
            break
    words = words[:POOL_WORDS]
    starts, at = array("i", [0]), 0
    for word in words:
        at += len(word) + 1
        starts.append(at)
    return TextPool(text=" ".join(words), starts=starts)
