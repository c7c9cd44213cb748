"""Whether an arm leaves answers alone: its texts held against the baseline's, as the baseline's are against its own."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import takewhile
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from loadgen.core.stats.poisson import at_least

LOSSY_ERROR_RATIO = 0.01
"""In so many experiments at most a lossless arm, be it one of many, is called lossy: an accusation, which joins what is
claimed of speed in one report."""

ROUNDING_RATIO = 0.005
"""Greedy answers that do not for certain differ in more words than that, beyond what two starts of the baseline do, may
differ by rounding: a step that verifies several tokens sums in another order than one that makes a single token, and
where two tokens are as likely as one another that decides. A real engine in bfloat16 that loses nothing does so once in
some hundred words (`docs/examples/cpu`)."""

FIRST_WORDS = 8
"""Sampled answers are compared by so many first words: after the first difference nothing is comparable any more."""

STATED_LOSS_RATIO = 0.05
"""The loss that an arm is cleared of: words changed, of all."""

POWER_RATIO = 0.8
"""An arm is cleared when that loss, had there been it, would have been seen with at least this probability."""

PERMUTATIONS = 10_000
_AT_ONCE = 2_000_000
_TRIALS = 100
_TILTS = np.geomspace(0.003, 100, 32)

Texts: TypeAlias = Mapping[tuple[str, int], Mapping[int, str | None]]
"""The answers of one arm: for each request, by its level's name and its `seq`, its texts by repeat; None for an answer
that its text does not tell (it failed, or calls tools)."""

_WORD = re.compile(r"\s*(?:[\u3040-\u30ff\u3400-\u9fff]|[^\s\u3040-\u30ff\u3400-\u9fff]+)|\s+")
"""With the blanks before it, so that answers are the same only where their blanks are."""


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

    `p_value` is how often chance alone would set them as far apart, without regard to other arms; `differs` is the
    claim that they are, for all arms together, and `lossy` that they are by more than rounding may do
    (`ROUNDING_RATIO`). `cleared`: not lossy, and a loss of `STATED_LOSS_RATIO` on top would most likely have been seen;
    an arm that is neither had too few answers to tell. `left_out_ratio` is the share of answers that could not be
    compared, since one of the three failed, calls tools or is missing.
    """

    sampling: Sampling
    requests: int
    left_out_ratio: float
    arm: Agreement
    reference: Agreement
    p_value: float
    differs: bool
    lossy: bool
    cleared: bool


def losslessness(
    baseline: Texts, again: Texts, arms: Mapping[str, Texts], sampling: Sampling, rng: np.random.Generator
) -> dict[str, Losslessness]:
    """The arms that share a request with both starts of the baseline, by name.

    An arm differs when its p-value holds against `LOSSY_ERROR_RATIO` by Holm's procedure over all arms.
    """
    triples = {name: found for name, texts in arms.items() if (found := _triples(baseline, again, texts)) is not None}
    p_values = {name: _p_value(each.excess(sampling), sampling, rng) for name, each in triples.items()}
    differing: set[str] = set()
    for place, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        if p_values[name] > LOSSY_ERROR_RATIO / (len(p_values) - place):
            break
        differing.add(name)
    return {
        name: _judged(each, p_values[name], name in differing, sampling, len(triples), rng)
        for name, each in triples.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Triples:
    """Three answers a row (baseline, again, arm), as pairs in columns: the first two, the first and the last, the last
    two. `shared` are the words before the first difference, `longest` those of the longer answer; `request` numbers the
    requests from 0, each with a row for each repeat.
    """

    request: NDArray[np.int64]
    shared: NDArray[np.int64]
    longest: NDArray[np.int64]
    left_out_ratio: float

    @property
    def requests(self) -> int:
        return int(self.request[-1]) + 1

    def excess(self, sampling: Sampling) -> NDArray[np.float64]:
        """A row a request: how much better than all three two of its answers agree, its repeats averaged.

        What agreement is judged by is the shared share of greedy answers, the shared first words of sampled ones.
        """
        if sampling is Sampling.SAMPLED:
            scores = np.minimum(self.shared, FIRST_WORDS).astype(np.float64)
        else:
            scores = np.where(self.longest > 0, self.shared / np.maximum(self.longest, 1), 1.0)
        rows = np.zeros((self.requests, 3))
        np.add.at(rows, self.request, scores)
        rows /= np.bincount(self.request)[:, None]
        excess: NDArray[np.float64] = rows - rows.mean(axis=1, keepdims=True)
        return excess

    def differences(self, *columns: int) -> tuple[float, float]:
        """Requests whose pairs in those columns differ, and words compared; the pairs of a request averaged."""
        differ = self.shared[:, columns] < self.longest[:, columns]
        pairs = np.bincount(self.request)[self.request, None] * len(columns)
        return float((differ / pairs).sum()), float(((self.shared[:, columns] + differ) / pairs).sum())

    def beyond_rounding(self, error_ratio: float) -> bool:
        """Whether more requests leave the baseline's answers than rounding would have had leave them at the most.

        What one request does in all repeats is one event, of a Poisson process over words, since rounding falls the
        same way each time.
        """
        differ, words = self.differences(1, 2)
        in_baseline, its_words = self.differences(0)
        own_ratio = in_baseline / its_words if its_words else 0.0
        most = (ROUNDING_RATIO + own_ratio) * words
        return most > 0 and at_least(math.floor(differ), most) <= error_ratio

    def with_loss(self, rng: np.random.Generator) -> "_Triples":
        """As though the arm had changed `STATED_LOSS_RATIO` of its words beside what it did: the first of them ends
        what an answer shares with others, at the same word in all repeats."""
        kept = rng.geometric(STATED_LOSS_RATIO, size=self.requests)[self.request] - 1
        shared = self.shared.copy()
        shared[:, 1:] = np.minimum(shared[:, 1:], kept[:, None])
        return replace(self, shared=shared)


def _judged(
    triples: _Triples, p_value: float, differs: bool, sampling: Sampling, arms: int, rng: np.random.Generator
) -> Losslessness:
    arm, reference = _agreement(triples, 1, 2), _agreement(triples, 0)
    lossy = differs and (sampling is Sampling.SAMPLED or triples.beyond_rounding(LOSSY_ERROR_RATIO / arms))
    return Losslessness(
        sampling=sampling,
        requests=triples.requests,
        left_out_ratio=triples.left_out_ratio,
        arm=arm,
        reference=reference,
        p_value=p_value,
        differs=differs,
        lossy=lossy,
        cleared=not lossy and _power_ratio(triples, sampling, arms, rng) >= POWER_RATIO,
    )


def _triples(baseline: Texts, again: Texts, arm: Texts) -> _Triples | None:
    """The answers that all three have; None without any."""
    request, shared, longest = list[int](), list[list[int]](), list[list[int]]()
    compared = asked = 0
    for key in dict.fromkeys((*baseline, *again, *arm)):
        sides = [side.get(key, {}) for side in (baseline, again, arm)]
        repeats = dict.fromkeys(repeat for side in sides for repeat in side)
        asked += len(repeats)
        place = request[-1] + 1 if request else 0
        for repeat in repeats:
            one, two, odd = (side.get(repeat) for side in sides)
            if one is None or two is None or odd is None:
                continue
            compared += 1
            pairs = [_pair(one, two), _pair(one, odd), _pair(two, odd)]
            request.append(place)
            shared.append([pair[0] for pair in pairs])
            longest.append([pair[1] for pair in pairs])
    if not compared:
        return None
    return _Triples(
        request=np.array(request),
        shared=np.array(shared),
        longest=np.array(longest),
        left_out_ratio=1 - compared / asked,
    )


def _p_value(excess: NDArray[np.float64], sampling: Sampling, rng: np.random.Generator) -> float:
    """A permutation test over requests, whose three answers would be exchangeable if the arm were lossless: which of
    them is the odd one out is drawn anew for each request, the same for all of its repeats.

    One-sided for greedy answers, which can only agree less; sampled ones also agree too much when a verifier prefers
    likely tokens. Draws that come to the same as what was seen count as such, whatever rounding says.
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


def _power_ratio(triples: _Triples, sampling: Sampling, arms: int, rng: np.random.Generator) -> float:
    """How often the stated loss would have had the arm called lossy, by Holm's first and hardest step.

    The p-value of a trial is bounded by Chernoff's inequality, which costs no draws and holds for few requests, too: of
    k answers that all leave two equal ones it makes 3^-k, the least that the test can come to.
    """
    error_ratio = LOSSY_ERROR_RATIO / arms / (2 if sampling is Sampling.SAMPLED else 1)
    caught = 0
    for _ in range(_TRIALS):
        spoilt = triples.with_loss(rng)
        excess = spoilt.excess(sampling)
        moments = sum(np.log(np.exp(_TILTS[:, None, None] * part).mean(axis=2)).sum(axis=1) for part in _parts(excess))
        told_apart = np.min(moments - _TILTS * excess[:, 0].sum()) <= math.log(error_ratio) + 1e-9
        caught += bool(told_apart and (sampling is Sampling.SAMPLED or spoilt.beyond_rounding(error_ratio)))
    return caught / _TRIALS


def _parts(rows: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    """The rows a few at a time, which bounds the memory."""
    at_once = _AT_ONCE // (3 * len(_TILTS))
    return (rows[begin : begin + at_once] for begin in range(0, len(rows), at_once))


def _pair(one: str, other: str) -> tuple[int, int]:
    """The words before the first difference, and those of the longer answer; as many only when the two are equal."""
    first = _WORD.findall(one)
    if one == other:
        return len(first), len(first)
    second = _WORD.findall(other)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
    return shared, max(len(first), len(second))


def _agreement(triples: _Triples, *columns: int) -> Agreement:
    shared = triples.shared[:, columns]
    differing = int(np.count_nonzero(shared < triples.longest[:, columns]))
    return Agreement(
        pairs=shared.size,
        identical_ratio=1 - differing / shared.size,
        shared_words=float(np.median(shared)),
        words_to_difference=(int(shared.sum()) + differing) / differing if differing else None,
    )
