"""What a server says of a request beside its text: token usage and speculation, from every known layout."""

from collections.abc import Sequence
from itertools import zip_longest

from loadgen.core.record import RequestSpeculation
from loadgen.core.stream import wire


class UsageSoFar:
    """Token counts as they come. The last value of each field wins; a missing one leaves what was there.

    `prompt_ids` is the number of prompt token ids that the server returned, `timings` llama.cpp's latest account: they
    fill in for a usage that never came.
    """

    __slots__ = ("cached_input_tokens", "input_tokens", "output_tokens", "prompt_ids", "reasoning_tokens", "timings")

    def __init__(self) -> None:
        self.input_tokens: int | None = None
        self.cached_input_tokens: int | None = None
        self.output_tokens: int | None = None
        self.reasoning_tokens: int | None = None
        self.prompt_ids: int | None = None
        self.timings: wire.LlamaTimings | None = None

    def take(self, block: wire.UsageBlock) -> None:
        """One usage object: names of chat and completions, of responses, and DeepSeek's and SGLang's extras."""
        completion, output = block.completion_tokens, block.output_tokens
        if completion is not None or output is not None:
            self.output_tokens = output if completion is None else completion
        prompt, given = block.prompt_tokens, block.input_tokens
        if prompt is not None or given is not None:
            self.input_tokens = given if prompt is None else prompt
        details = block.prompt_tokens_details or block.input_tokens_details
        cached = None if details is None else details.cached_tokens
        if cached is None:
            cached = block.prompt_cache_hit_tokens
        if cached is not None:
            self.cached_input_tokens = cached
        details = block.completion_tokens_details or block.output_tokens_details
        reasoning = None if details is None else details.reasoning_tokens
        if reasoning is None:
            reasoning = block.reasoning_tokens
        if reasoning is not None:
            self.reasoning_tokens = reasoning

    def fall_back(self) -> None:
        """Takes the counts that no usage gave from the rest of what the server said."""
        timings = self.timings
        if timings is not None:
            if self.output_tokens is None:
                self.output_tokens = timings.predicted_n
            if self.input_tokens is None and timings.prompt_n is not None:
                self.input_tokens = timings.prompt_n + (timings.cache_n or 0)
                self.cached_input_tokens = timings.cache_n
        if self.input_tokens is None:
            self.input_tokens = self.prompt_ids


def speculation_of(whole: wire.Chunk | wire.Response) -> RequestSpeculation | None:
    """The request's own account of speculation, if this object holds one.

    vLLM counts the steps that had a draft, SGLang verification steps, of which those of several choices add up.
    llama.cpp counts tokens only.
    """
    if whole.metrics is not None and (vllm := whole.metrics.speculative_decoding) is not None:
        return RequestSpeculation(
            steps=vllm.num_spec_steps,
            drafted_tokens=vllm.num_draft_tokens,
            accepted_tokens=vllm.num_accepted_draft_tokens,
            histogram=_tuple(vllm.acceptance_histogram),
            max_draft_tokens=vllm.num_spec_tokens,
            per_step_accepted=_tuple(vllm.per_step_accepted),
            per_step_drafted=_tuple(vllm.per_step_drafted),
        )
    if isinstance(whole, wire.Response):
        return None
    if whole.sglext is not None and (sglang := whole.sglext.spec_tokens_details) is not None:
        return _of_choices(sglang if isinstance(sglang, list) else [sglang])
    if whole.timings is not None and (drafted := whole.timings.draft_n) is not None:
        return RequestSpeculation(drafted_tokens=drafted, accepted_tokens=whole.timings.draft_n_accepted)
    return None


def _of_choices(told: Sequence[wire.SglangSpeculation]) -> RequestSpeculation | None:
    """The account of all choices together; a count that one of them does not tell is None."""
    if not told:
        return None
    histograms = [each.spec_correct_drafts_histogram for each in told]
    return RequestSpeculation(
        steps=_sum([each.spec_verify_ct for each in told]),
        drafted_tokens=_sum([each.spec_num_proposed_drafts for each in told]),
        accepted_tokens=_sum([each.spec_num_correct_drafts for each in told]),
        histogram=tuple(map(sum, zip_longest(*filter(None, histograms), fillvalue=0))) if all(histograms) else None,
    )


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [each for each in counts if each is not None]
    return sum(known) if len(known) == len(counts) else None


def consistent(told: RequestSpeculation) -> bool:
    """Whether the histogram agrees with the steps and the accepted tokens beside it."""
    if told.histogram is None:
        return True
    accepted = sum(length * steps for length, steps in enumerate(told.histogram))
    return told.steps in (None, sum(told.histogram)) and told.accepted_tokens in (None, accepted)


def _tuple(values: list[int] | None) -> tuple[int, ...] | None:
    return None if values is None else tuple(values)
