"""Known workloads: their lengths, and what drafters get accepted on them.

The figures are calibrated, not copied: with them, and the measured step times of Llama-3.1-8B on an H100, the published
results of the oracle simulator of SpecDecode-Bench (arXiv 2601.11580; InstructCoder, ShareGPT, CNN/DailyMail, GSM8K;
n-gram and EAGLE with 1, 3 and 5 draft tokens and with perfect lengths; batches of 1 to 256) come out as printed. Prompt
lengths are spread log-normally, and acceptance differs between requests.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from loadgen.core.simulation.speculator import Method
from loadgen.core.simulation.survival import Survival, from_conditional, normal_classes

DEPTH = 20
"""Draft tokens up to which spans were observed."""

EAGLE3_ODDS = 1.9
"""How many times the odds of accepting a token are higher for EAGLE-3 than for EAGLE: takes an acceptance length of
2.296 to 2.811, what vLLM's own test expects of the two on MT-Bench (Llama-3.1-8B, three draft tokens, greedy)."""

MTP_CONDITIONAL = (0.92, 0.739, 0.559)
"""Native multi-token prediction: GLM-4.5-Air on GPQA accepts 0.92, 0.68 and 0.38 up to each position (same paper)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Combined:
    """The better of n-gram and EAGLE at each position, chosen by an oracle.

    `survival` of the longer span; `drafter_ratio` of the steps are those where EAGLE is strictly longer, and there it
    proposes `drafter_tokens` on average.
    """

    survival: Survival
    drafter_ratio: float
    drafter_tokens: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One kind of traffic: mean lengths in tokens, `prompt_spread` the log-normal sigma, acceptance by position.

    `eagle` and `ngram` are conditional acceptance at positions 1, 2, ..., the last repeated; for n-gram of all steps,
    of which a share `wasted_match_ratio` of those that would accept nothing still finds something to propose.
    """

    name: str
    dataset: str
    prompt_tokens: int
    output_tokens: int
    prompt_spread: float
    request_share: float
    eagle: tuple[float, ...]
    ngram: tuple[float, ...]
    wasted_match_ratio: float
    combined: Combined

    @property
    def context_tokens(self) -> float:
        """Mean context of a step: the prompt and half of the output."""
        return self.prompt_tokens + self.output_tokens / 2

    @property
    def ngram_coverage_ratio(self) -> float:
        """Share of steps in which n-gram lookup proposes something."""
        return self.ngram[0] + (1 - self.ngram[0]) * self.wasted_match_ratio

    def survival(self, method: Method) -> Survival:
        """Acceptance of a method, given that it drafted. `basis` says where it is from."""
        match method:
            case Method.EAGLE:
                rates = from_conditional(self.eagle, DEPTH)
            case Method.EAGLE3 | Method.DRAFT_MODEL:
                rates = from_conditional([raised_odds(rate, EAGLE3_ODDS) for rate in self.eagle], DEPTH)
            case Method.MTP:
                rates = from_conditional(MTP_CONDITIONAL, DEPTH)
            case Method.NGRAM | Method.SUFFIX:
                rates = tuple(r / self.ngram_coverage_ratio for r in from_conditional(self.ngram, DEPTH))
        return Survival(rates=rates, request_share=self.request_share)

    def coverage_ratio(self, method: Method) -> float:
        """Share of steps that draft."""
        return self.ngram_coverage_ratio if method.looks_up_text else 1.0

    def prompt_classes(self) -> Iterator[tuple[float, float]]:
        """Classes of requests as (share, prompt tokens)."""
        for weight, z in normal_classes():
            yield weight, self.prompt_tokens * math.exp(self.prompt_spread * z - self.prompt_spread**2 / 2)


def raised_odds(probability: float, factor: float) -> float:
    """The probability whose odds are `factor` times those of another."""
    odds = factor * probability / (1 - probability)
    return odds / (1 + odds)


def basis(method: Method, workload: Workload) -> str:
    """Where a workload's acceptance of a method comes from, in words."""
    match method:
        case Method.EAGLE | Method.NGRAM:
            return f"calibrated to published results of Llama-3.1-8B on {workload.dataset}"
        case Method.EAGLE3:
            return f"EAGLE on {workload.dataset}, its odds raised as EAGLE-3 raises them on MT-Bench"
        case Method.DRAFT_MODEL:
            return f"taken to equal EAGLE-3 on {workload.dataset}, as in SPEED-Bench for Llama-3.3-70B"
        case Method.MTP:
            return "GLM-4.5-Air on GPQA, taken for every workload; from position 4 on extrapolated"
        case Method.SUFFIX:
            return f"taken to equal n-gram lookup on {workload.dataset}"


def _combined(alpha: float, request_share: float, drafter_ratio: float, drafter_tokens: float) -> Combined:
    return Combined(
        survival=Survival(rates=from_conditional((alpha,), DEPTH), request_share=request_share),
        drafter_ratio=drafter_ratio,
        drafter_tokens=drafter_tokens,
    )


WORKLOADS: Mapping[str, Workload] = {
    "code-editing": Workload(
        name="code-editing",
        dataset="InstructCoder",
        prompt_tokens=227,
        output_tokens=170,
        prompt_spread=0.494,
        request_share=0.123,
        eagle=(0.7511, 0.7223, 0.7223, 0.7316, 0.7316, 0.6842),
        ngram=(0.4, 0.7247, 0.7247, 0.7247, 0.7247, 0.8721),
        wasted_match_ratio=0.8,
        combined=_combined(0.8116, 0.3063, 0.4737, 3.362),
    ),
    "chat": Workload(
        name="chat",
        dataset="ShareGPT",
        prompt_tokens=447,
        output_tokens=658,
        prompt_spread=1.209,
        request_share=0.1686,
        eagle=(0.6445, 0.6148, 0.6148, 0.652, 0.652, 0.6667),
        ngram=(0.1447, 0.6113, 0.6113, 0.6113, 0.6113, 0.8454),
        wasted_match_ratio=0.2,
        combined=_combined(0.6855, 0.377, 0.5382, 3.006),
    ),
    "summarising": Workload(
        name="summarising",
        dataset="CNN/DailyMail",
        prompt_tokens=847,
        output_tokens=302,
        prompt_spread=0.404,
        request_share=0.02909,
        eagle=(0.6733, 0.6017, 0.6017, 0.6452, 0.6452, 0.6595),
        ngram=(0.1797, 0.5806, 0.5806, 0.5806, 0.5806, 0.7697),
        wasted_match_ratio=0.4,
        combined=_combined(0.6751, 0.05599, 0.5411, 2.89),
    ),
    "mathematics": Workload(
        name="mathematics",
        dataset="GSM8K",
        prompt_tokens=100,
        output_tokens=171,
        prompt_spread=0.019,
        request_share=0.09074,
        eagle=(0.6892, 0.6233, 0.6233, 0.6408, 0.6408, 0.5565),
        ngram=(0.09481, 0.4452, 0.4452, 0.4452, 0.4452, 0.8586),
        wasted_match_ratio=0.2,
        combined=_combined(0.6518, 0.06431, 0.6196, 2.819),
    ),
}
"""By the name an option takes."""
