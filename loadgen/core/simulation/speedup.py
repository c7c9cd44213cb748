"""Closed formulas of the speedup of speculative decoding over plain decoding at one batch size.

    S(b) = L * t_AR(b) / t_SD(b) = L / L*(b),     L*(b) = t_SD(b) / t_AR(b)

with L the mean tokens a step emits. L* is the break-even acceptance length: it needs no acceptance data.
"""

from collections.abc import Callable

from loadgen.core.simulation.step_time import Drafting, StepTime

_MOST_BATCH = 2.0**20


def plain_step_s(target: StepTime, *, batch: float, context_tokens: float) -> float:
    """t_AR: a decode step of `batch` requests with `context_tokens` of context each."""
    return target.seconds(batch, batch * context_tokens)


def speculative_step_s(
    target: StepTime,
    drafting: Drafting,
    *,
    batch: float,
    context_tokens: float,
    draft_tokens: float,
    coverage_ratio: float = 1.0,
) -> float:
    """t_SD: the same step when a share `coverage_ratio` of the requests has `draft_tokens` to verify."""
    verified = batch * (1 + coverage_ratio * draft_tokens)
    forward_s = target.forward_s(verified, batch * context_tokens)
    draft_s = drafting.seconds(
        sequences=batch,
        context_tokens=batch * context_tokens,
        draft_tokens=draft_tokens,
        target_forward_s=forward_s,
    )
    return forward_s + target.overhead_s + coverage_ratio * draft_s


def break_even_length(plain_s: float, speculative_s: float) -> float:
    """L* = t_SD / t_AR: speculation pays when a step emits more tokens than this."""
    return speculative_s / plain_s


def critical_batch(speedup: Callable[[float], float]) -> float | None:
    """The batch size at which a speedup that holds for smaller batches falls to 1.

    0 when there is none even for one request; None when it holds up to a million. For a mixture of experts, whose
    speedup may fall below 1 and rise again, it is the first such size.
    """
    low, high = 1.0, 2.0
    if speedup(low) <= 1:
        return 0.0
    while speedup(high) > 1:
        low, high = high, 2 * high
        if high > _MOST_BATCH:
            return None
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if speedup(middle) > 1 else (low, middle)
    return high


def critical_context_tokens(
    target: StepTime, drafting: Drafting, *, draft_tokens: int, tokens_per_step: float, coverage_ratio: float = 1.0
) -> float | None:
    """Context above which no batch is too large: reading the KV cache, shared by all tokens of a step, then outweighs
    verifying them. None when no context is long enough.

    Per request of a large batch: c* = (gamma_SD - L gamma_AR) / (L kappa_AR - kappa_SD), which is
    gamma (k + 1 - L) / (kappa (L - 1)) where drafting costs nothing.
    """

    def per_request(context: float) -> tuple[float, float]:
        one = target.per_token_s + target.per_context_token_s * context
        verified = target.per_token_s * (1 + coverage_ratio * draft_tokens) + target.per_context_token_s * context
        many = verified * (1 + coverage_ratio * drafting.target_ratio)
        if drafting.pass_time is not None:
            passes = draft_tokens if drafting.sequential else 1
            own = drafting.pass_time.per_token_s + drafting.pass_time.per_context_token_s * context
            many += coverage_ratio * passes * own
        return one, many

    plain_0, speculative_0 = per_request(0.0)
    plain_1, speculative_1 = per_request(1.0)
    verifying = speculative_0 - tokens_per_step * plain_0
    reading = tokens_per_step * (plain_1 - plain_0) - (speculative_1 - speculative_0)
    if verifying <= 0:
        return 0.0
    return None if reading <= 0 else verifying / reading
