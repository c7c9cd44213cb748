"""A language model whose distribution is known exactly.

What may follow a text are eight tokens; which, and with what probabilities, depends on every token before: tokens are
folded into a state of 64 bits, whose leading bits choose a row of candidates and a shape. At temperature 1 candidate j
of a shape with ratio r has a probability in proportion to r^j, at temperature T to r^(j / T).

Apart from that each answer has a length of its own, drawn once, log-normal around a mean. There the model ends, with
probability 1.
"""

import math
import random
from bisect import bisect, bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache
from itertools import accumulate, pairwise
from typing import TypeAlias

from loadgen.core.traces.words import WORDS
from loadgen.sim.server.exchange import Asked, Output
from loadgen.sim.server.tokens import END, MESSAGE, VOCABULARY_SIZE, ids_of, text_of

CANDIDATES = 8
"""Tokens that may follow a text."""

LENGTH_SPREAD = 0.86
"""Log-normal sigma of answers' lengths: the standard deviation of ln(tokens) over the 19,366 answers of Azure's public
conversation trace of 2023 (over its code trace, 0.85)."""

GREEDY_BELOW, _LEAST_TEMPERATURE = 1e-5, 0.01
"""As in vLLM: a colder temperature is greedy, one between the two counts as the second."""

_ROW_BITS, _SHAPE_BITS = 10, 4
_ROW_SHIFT, _SHAPE_SHIFT = 64 - _ROW_BITS, 64 - _ROW_BITS - _SHAPE_BITS
_SHAPE_MASK, _STATE_MASK = 2**_SHAPE_BITS - 1, 2**64 - 1
_FOLD, _SPREAD_SEEDS = 0xD1342543DE82EF95, 0x9E3779B97F4A7C15
_RATIOS = tuple((shape + 0.5) / (2**_SHAPE_BITS + 1) for shape in range(2**_SHAPE_BITS))
_MARK_ROWS = 12
"""One row in so many begins with a full stop, and one with a comma."""

_COMMA, _FULL_STOP = b",."

_Rows: TypeAlias = tuple[tuple[int, ...], ...]
_Shapes: TypeAlias = tuple[tuple[float, ...], ...]


class _Place(Enum):
    """Where in a text a token stands: at its or a line's beginning, after a full stop, after a comma, elsewhere."""

    BEGINNING, SENTENCE, COMMA, WITHIN = range(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageModel:
    """The model; its answers have `output_tokens` on average where nothing cuts or stretches them.

    With a `lossy_ratio` it imitates a verifier that does not keep to the model's distribution: each token after an
    answer's first is, with that probability, another candidate than the model's choice, all equally likely, and the
    answer goes on from there. That makes sense only where a server speculates.
    """

    output_tokens: float
    lossy_ratio: float = 0.0

    def generate(self, asked: Asked, *, fresh_seed: int) -> tuple[Output, ...]:
        """The choices of an answer. Choice i draws with the request's seed plus i; without one, with the fresh seed.

        Greedy answers depend on the prompt alone, sampled ones on the prompt and the seed.
        """
        state = _folded(asked.prompt_ids)
        seed = fresh_seed if asked.seed is None else asked.seed
        return tuple(self._choice(asked, state, seed + index) for index in range(asked.n))

    def _choice(self, asked: Asked, state: int, seed: int) -> Output:
        greedy = asked.temperature < GREEDY_BELOW
        edges = _edges(1.0, 1.0) if greedy else _edges(asked.temperature, asked.top_p)
        origin = state if greedy else state ^ (seed * _SPREAD_SEEDS & _STATE_MASK)
        draws, errors = random.Random(origin), random.Random(origin ^ _STATE_MASK)
        length = max(self._own_tokens(draws), 2, asked.min_tokens + 1)
        ends = not asked.ignore_eos and length <= asked.max_tokens

        following, within, texts, logarithms = _following(), _rows()[_Place.WITHIN], _texts(), _logarithms()
        alternatives = asked.logprobs or 0
        last = asked.prompt_ids[-1]
        ids: list[int] = []
        logprobs: list[float] = []
        top_logprobs: list[tuple[tuple[str, float], ...]] = []
        for position in range(length - 1 if ends else asked.max_tokens):
            candidates = following.get(last, within)[state >> _ROW_SHIFT]
            shape = state >> _SHAPE_SHIFT & _SHAPE_MASK
            chosen = 0 if greedy else bisect(edges[shape], draws.random())
            if self.lossy_ratio and position and errors.random() < self.lossy_ratio:
                chosen = (chosen + errors.randrange(1, CANDIDATES)) % CANDIDATES
            last = candidates[chosen]
            ids.append(last)
            logprobs.append(logarithms[shape][chosen])
            if alternatives:
                best = zip(candidates[:alternatives], logarithms[shape], strict=False)
                top_logprobs.append(tuple((texts[token], logarithm) for token, logarithm in best))
            state = (state + last + 1) * _FOLD & _STATE_MASK
        own = pieces = [texts[token] for token in ids]
        if ends:
            ids.append(END)
            own, pieces = [*pieces, text_of([END])], [*pieces, ""]
            logprobs.append(0.0)
            if alternatives:
                top_logprobs.append(((text_of([END]), 0.0),))
        stop_reason = None
        if asked.stop:
            pieces, stop_reason = _cut_at_stop(pieces, asked.stop, asked.min_tokens)
        tokens = len(pieces)
        return Output(
            ids=tuple(ids[:tokens]),
            texts=tuple(pieces),
            logprobs=tuple(logprobs[:tokens]),
            tokens=() if asked.logprobs is None else tuple(own[:tokens]),
            top_logprobs=tuple(top_logprobs[:tokens]),
            finish_reason="stop" if ends or stop_reason is not None else "length",
            stop_reason=stop_reason,
        )

    def _own_tokens(self, draws: random.Random) -> int:
        """Tokens of an answer that nothing cuts, its end among them."""
        middle = math.log(self.output_tokens) - LENGTH_SPREAD**2 / 2
        return round(draws.lognormvariate(middle, LENGTH_SPREAD))


def distribution(ids: Sequence[int], *, temperature: float = 1.0, top_p: float = 1.0) -> dict[int, float]:
    """What the model goes on with after these tokens, as probabilities by id, and an answer's own end left aside."""
    state = _folded(ids)
    candidates = _following().get(ids[-1], _rows()[_Place.WITHIN])[state >> _ROW_SHIFT]
    if temperature < GREEDY_BELOW:
        return {candidates[0]: 1.0}
    chances = _probabilities(temperature, top_p)[state >> _SHAPE_SHIFT & _SHAPE_MASK]
    return {token: chance for token, chance in zip(candidates, chances, strict=True) if chance}


def _folded(ids: Sequence[int]) -> int:
    state = 0
    for token in ids:
        state = (state + token + 1) * _FOLD & _STATE_MASK
    return state


@lru_cache(maxsize=64)
def _probabilities(temperature: float, top_p: float) -> _Shapes:
    """Of each shape's candidates. `top_p` keeps the fewest whose probabilities reach it."""
    shapes = []
    for ratio in _RATIOS:
        weights = [ratio ** (j / max(temperature, _LEAST_TEMPERATURE)) for j in range(CANDIDATES)]
        sums = list(accumulate(weights))
        kept = bisect_left(sums, top_p * sums[-1]) + 1
        shapes.append(tuple(weight / sums[kept - 1] if j < kept else 0.0 for j, weight in enumerate(weights)))
    return tuple(shapes)


@lru_cache(maxsize=64)
def _edges(temperature: float, top_p: float) -> _Shapes:
    """Where [0, 1) is divided among each shape's candidates with a probability."""
    return tuple(
        tuple(accumulate(chances[: max(j for j, chance in enumerate(chances) if chance)]))
        for chances in _probabilities(temperature, top_p)
    )


@cache
def _logarithms() -> _Shapes:
    """Of the probabilities at temperature 1, which is what vLLM tells as log-probabilities."""
    return tuple(tuple(map(math.log, chances)) for chances in _probabilities(1.0, 1.0))


@cache
def _rows() -> Mapping[_Place, _Rows]:
    """Candidates by where in a text they stand. Some rows within a sentence begin with a comma or a full stop."""
    mixer = random.Random(20_231_116)
    picks = [mixer.sample(WORDS, CANDIDATES) for _ in range(2**_ROW_BITS)]

    def words(form: Callable[[str], str]) -> _Rows:
        return tuple(tuple(ids_of(form(word))[0] for word in row) for row in picks)

    plain = words(lambda word: f" {word}")
    marks = {0: _FULL_STOP, _MARK_ROWS // 2: _COMMA}
    return {
        _Place.BEGINNING: words(str.capitalize),
        _Place.SENTENCE: words(lambda word: f" {word.capitalize()}"),
        _Place.COMMA: plain,
        _Place.WITHIN: tuple(
            (marks[index % _MARK_ROWS], *row[:-1]) if index % _MARK_ROWS in marks else row
            for index, row in enumerate(plain)
        ),
    }


@cache
def _following() -> Mapping[int, _Rows]:
    """The candidates after a token, where they are not those within a sentence.

    What is written is cut into the same tokens again when it is read as a message.
    """
    blanks = (token for token in range(VOCABULARY_SIZE) if text_of([token]).endswith((" ", "\n")))
    places = dict.fromkeys((MESSAGE, *blanks), _Place.BEGINNING)
    places |= {_FULL_STOP: _Place.SENTENCE, _COMMA: _Place.COMMA}
    return {token: _rows()[place] for token, place in places.items()}


@cache
def _texts() -> Mapping[int, str]:
    """The text of every token that may be generated."""
    return {token: text_of([token]) for rows in _rows().values() for row in rows for token in row}


def _cut_at_stop(pieces: Sequence[str], stops: Sequence[str], min_tokens: int) -> tuple[list[str], str | None]:
    """The pieces as they are sent where stop strings are looked for, and the one that ended them.

    The text ends before the first stop string that is complete after more than `min_tokens`; the token that completes
    it is the last. Until then as many characters are held back as the beginning of a stop string may have, as in vLLM.
    """
    text, ends = "".join(pieces), list(accumulate(map(len, pieces)))
    unchecked = ends[min_tokens - 1] if min_tokens else 0
    places = [(text.find(stop, max(0, unchecked - len(stop) + 1)), stop) for stop in stops]
    found = [(at + len(stop), at, stop) for at, stop in places if at >= 0]
    tokens, length, reason = len(pieces), len(text), None
    if found:
        end, length, reason = min(found, key=lambda place: place[0])
        tokens = bisect_left(ends, end) + 1
    held = max(map(len, stops)) - 1
    shown = [max(0, min(end - held, length)) for end in ends[: tokens - 1]]
    return [text[start:end] for start, end in pairwise((0, *shown, length))], reason
