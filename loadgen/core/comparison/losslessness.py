"""Whether an arm leaves answers alone: its texts held against the baseline's, as the baseline's are against its own."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

LOSSY_ERROR_RATIO = 0.01
"""In so many experiments at most a lossless arm, be it one of many, is called lossy: an accusation, which joins what is
claimed of speed in one report."""

FIRST_WORDS = 8
"""Sampled answers are compared by so many first words: after the first difference nothing is comparable any more."""

PERMUTATIONS = 10_000
_AT_ONCE = 2_000_000

Texts: TypeAlias = Mapping[tuple[str, int], Mapping[int, str]]
"""The answers of one arm: for each request, by its level's name and its `seq`, its texts by repeat."""

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\s\u3040-\u30ff\u3400-\u9fff]+")


class Sampling(StrEnum):
    """How answers came about: `greedy` the likeliest token each time, `sampled` drawn."""

    GREEDY = "greedy"
    SAMPLED = "sampled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far answers of the same requests are the same.

    `identical_ratio` is the share of pairs that are the same to the end, `shared_words` the median of the words before
    the first difference, or of all words where there is none. `words_to_difference` is how many words go by to one
    difference: words compared over pairs that differ; None when no pair does.
    """

    pairs: int
    identical_ratio: float
    shared_words: float
    words_to_difference: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Losslessness:
    """An arm's answers against those of the baseline, and the baseline's against those of its second start.

    `p_value` is how often chance alone would set them as far apart, without regard to other arms; `lossy` is the claim,
    for all arms together.
    """

    sampling: Sampling
    requests: int
    arm: Agreement
    reference: Agreement
    p_value: float
    lossy: bool


def losslessness(
    baseline: Texts, again: Texts, arms: Mapping[str, Texts], sampling: Sampling, rng: np.random.Generator
) -> dict[str, Losslessness]:
    """The arms that share a request with both starts of the baseline, by name.

    An arm is called lossy when its p-value holds against `LOSSY_ERROR_RATIO` by Holm's procedure over all arms.
    """
    found = {name: _tested(baseline, again, texts, sampling, rng) for name, texts in arms.items()}
    tested = {name: each for name, each in found.items() if each is not None}
    lossy: set[str] = set()
    for place, name in enumerate(sorted(tested, key=lambda name: tested[name][0])):
        if tested[name][0] > LOSSY_ERROR_RATIO / (len(tested) - place):
            break
        lossy.add(name)
    return {
        name: Losslessness(
            sampling=sampling,
            requests=requests,
            arm=arm,
            reference=reference,
            p_value=p_value,
            lossy=name in lossy,
        )
        for name, (p_value, requests, arm, reference) in tested.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """Two answers to one request: words before the first difference, and of the longer one in all."""

    shared: int
    longest: int

    @property
    def identical(self) -> bool:
        return self.shared == self.longest

    def score(self, sampling: Sampling) -> float:
        """What agreement is judged by: the shared share of greedy answers, the shared first words of sampled ones."""
        if sampling is Sampling.SAMPLED:
            return min(self.shared, FIRST_WORDS)
        return self.shared / self.longest if self.longest else 1.0


def _tested(
    baseline: Texts, again: Texts, arm: Texts, sampling: Sampling, rng: np.random.Generator
) -> tuple[float, int, Agreement, Agreement] | None:
    """A permutation test over requests, whose three answers (baseline, again, arm) would be exchangeable if the arm
    were lossless: which of them is the odd one out is drawn anew for each request, the same for all of its repeats.

    One-sided for greedy answers, which can only agree less; sampled ones also agree too much when a verifier prefers
    likely tokens.
    """
    rows, itself, against = [], list[_Pair](), list[_Pair]()
    for request in baseline:
        answers = [side.get(request, {}) for side in (baseline, again, arm)]
        triples = [
            [side[repeat] for side in answers] for repeat in answers[0] if all(repeat in side for side in answers)
        ]
        pairs = [(_pair(one, two), _pair(one, odd), _pair(two, odd)) for one, two, odd in triples]
        if pairs:
            rows.append(np.mean([[pair.score(sampling) for pair in each] for each in pairs], axis=0))
            itself += [each[0] for each in pairs]
            against += [pair for each in pairs for pair in each[1:]]
    if not rows:
        return None
    scores = np.array(rows)
    excess = scores - scores.mean(axis=1, keepdims=True)
    return _p_value(excess, sampling, rng), len(rows), _agreement(against), _agreement(itself)


def _p_value(excess: NDArray[np.float64], sampling: Sampling, rng: np.random.Generator) -> float:
    """`excess` has a row a request: how much better than all three two of its answers agree, the baseline's first.

    Draws that come to the same as what was seen count as such, whatever rounding says.
    """
    seen = float(excess[:, 0].sum())
    requests = np.arange(len(excess))
    beyond = 0
    left = PERMUTATIONS
    while left:
        rows = min(left, max(1, _AT_ONCE // len(excess)))
        drawn = excess[requests, rng.integers(0, 3, size=(rows, len(excess)))].sum(axis=1)
        extreme = np.abs(drawn) >= abs(seen) - 1e-9 if sampling is Sampling.SAMPLED else drawn >= seen - 1e-9
        beyond += int(extreme.sum())
        left -= rows
    return (1 + beyond) / (1 + PERMUTATIONS)


def _pair(one: str, other: str) -> _Pair:
    if one == other:
        words = len(_WORD.findall(one))
        return _Pair(shared=words, longest=words)
    first, second = _WORD.findall(one), _WORD.findall(other)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
    return _Pair(shared=shared, longest=max(len(first), len(second)))


def _agreement(pairs: Sequence[_Pair]) -> Agreement:
    differing = sum(not pair.identical for pair in pairs)
    return Agreement(
        pairs=len(pairs),
        identical_ratio=1 - differing / len(pairs),
        shared_words=float(np.median([pair.shared for pair in pairs])),
        words_to_difference=(sum(pair.shared for pair in pairs) + differing) / differing if differing else None,
    )
