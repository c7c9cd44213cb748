"""How long one engine step takes: an additive model of what it reads and computes.

    t = weights + per_token * n + per_context_token * c + overhead

with n the tokens of the step's input and c the context tokens attended to, both summed over the batch. Measured step
times of GPUs bend like this sum rather than at the sharp corner of max(memory, compute).
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """Seconds of one forward pass of a model, and of the work around it.

    `fixed_s` reads the weights that every step needs. A mixture of experts also reads, of weights worth `experts_s`,
    the share that the step's tokens pick: each token picks the share `expert_ratio` of the experts, independently.
    """

    fixed_s: float
    per_token_s: float
    per_context_token_s: float
    overhead_s: float = 0.0
    experts_s: float = 0.0
    expert_ratio: float = 0.0

    @property
    def ridge_tokens(self) -> float | None:
        """Tokens a step at which arithmetic takes as long as reading all weights; None where it takes no time."""
        return (self.fixed_s + self.experts_s) / self.per_token_s if self.per_token_s else None

    def forward_s(self, tokens: float, context_tokens: float) -> float:
        """Seconds of the forward pass alone."""
        seconds = self.fixed_s + self.per_token_s * tokens + self.per_context_token_s * context_tokens
        if self.experts_s:
            picked: float = 1 - (1 - self.expert_ratio) ** tokens
            seconds += self.experts_s * picked
        return seconds

    def seconds(self, tokens: float, context_tokens: float) -> float:
        """Seconds of a whole step."""
        return self.forward_s(tokens, context_tokens) + self.overhead_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafting:
    """What proposing the draft tokens of one step costs.

    `pass_time` is one forward pass of the drafter over one token of each request: run once a draft token (`sequential`:
    heads, draft models) or once a step (parallel drafters). `target_ratio` is a share of the target's forward pass
    instead (lookup in text). `per_input_token_s` counts the input length of one request, draft tokens and one more.
    """

    pass_time: StepTime | None = None
    sequential: bool = True
    target_ratio: float = 0.0
    per_input_token_s: float = 0.0

    @property
    def prompt_token_s(self) -> float:
        """Seconds to take one prompt token into the drafter's own cache."""
        return 0.0 if self.pass_time is None else self.pass_time.per_token_s

    def seconds(
        self, *, sequences: float, context_tokens: float, draft_tokens: float, target_forward_s: float
    ) -> float:
        """Seconds to propose `draft_tokens` for each of `sequences` requests; 0 when nothing is proposed."""
        if draft_tokens <= 0 or sequences <= 0:
            return 0.0
        seconds = self.target_ratio * target_forward_s + self.per_input_token_s * (draft_tokens + 1)
        if self.pass_time is not None:
            passes = draft_tokens if self.sequential else 1.0
            seconds += passes * self.pass_time.seconds(sequences, context_tokens)
        return seconds


FREE_DRAFTING = Drafting()
"""A drafter that costs nothing: the bound that no drafter's speed can pass."""

LLAMA_8B_ON_H100 = StepTime(
    fixed_s=5.88590713e-3,
    per_token_s=2.10103129e-5,
    per_context_token_s=3.92645679e-8,
    overhead_s=1.20683946e-3,
)
"""Measured: Llama-3.1-8B-Instruct in bf16 on one H100 SXM with vLLM 0.10, batches of 1 to 64. Constants of the public
simulator of SpecDecode-Bench (arXiv 2601.11580), `predictor.py`."""

EAGLE_8B_ON_H100 = Drafting(
    pass_time=StepTime(fixed_s=2.13526175e-3, per_token_s=0.0, per_context_token_s=2.37768493e-9),
    sequential=False,
    per_input_token_s=8.41429603e-7,
)
"""Measured beside it: an EAGLE head's three passes in one figure a step, whatever the draft length. Same source."""

NGRAM_TARGET_RATIO = 0.005875
"""Measured beside it: n-gram lookup as a share of the target's forward pass. Same source."""
