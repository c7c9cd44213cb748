"""Counts taken record by record."""

from collections import Counter

import numpy as np

from loadgen.core.analysis.columns import Columns
from loadgen.core.metrics.per_request import (
    first_event_tokens,
    has_one_token_events,
    hides_reasoning,
    is_streamed,
    output_tokens,
    streamed_tokens,
    tpot_s,
)
from loadgen.core.metrics.summary import FailureSample, TokenCounts
from loadgen.core.record import FailureKind, Outcome, RequestRecord, TokenSource
from loadgen.core.request import Phase
from loadgen.core.run import RunManifest
from loadgen.core.speculation.tally import AcceptanceTally
from loadgen.core.stats.sample import Sample
from loadgen.core.stream.answer import Note


class Gaps:
    """Gaps between neighbouring events in ns, pooled over completed requests, those of one-token events apart."""

    def __init__(self) -> None:
        self.one_token, self.others = Sample(), Sample()
        self.requests, self.one_token_requests = 0, 0

    def observe(self, record: RequestRecord) -> None:
        """Adds a completed request's gaps, if it was streamed in two events or more."""
        if not is_streamed(record) or len(record.event_ns) < 2:
            return
        gaps = np.diff(np.array(record.event_ns, dtype=np.int64))
        one_token = has_one_token_events(record)
        (self.one_token if one_token else self.others).extend(gaps)
        self.requests += 1
        self.one_token_requests += one_token


class Tokens:
    """Token counts. A count that no request has is None; what is not counted is never guessed from events."""

    def __init__(self) -> None:
        self._input: int | None = None
        self._output: int | None = None
        self._completed = self._without_server_count = self._partial = 0

    def observe(self, record: RequestRecord) -> None:
        """Adds a measured request of any outcome."""
        output = output_tokens(record)
        if record.outcome is not Outcome.COMPLETED:
            self._partial += output or 0
            return
        self._completed += 1
        self._without_server_count += record.output_tokens_from is not TokenSource.SERVER
        if record.input_tokens is not None:
            self._input = (self._input or 0) + record.input_tokens
        if output is not None:
            self._output = (self._output or 0) + output

    def result(self) -> TokenCounts:
        """The summary's section."""
        return TokenCounts(
            input=self._input,
            output=self._output,
            output_from_server=self._completed > 0 and self._without_server_count == 0,
            requests_without_server_count=self._without_server_count,
            partial_output=self._partial,
        )


class Failures:
    """Failures grouped by kind and HTTP status, with the first message of each group."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[FailureKind, int | None]] = Counter()
        self._examples: dict[tuple[FailureKind, int | None], str] = {}

    def observe(self, record: RequestRecord) -> None:
        """Adds a failed request; another is ignored."""
        if record.failure is None:
            return
        key = (record.failure.kind, record.failure.http_status)
        self._counts[key] += 1
        if record.failure.message is not None:
            self._examples.setdefault(key, record.failure.message)

    def by_kind(self) -> dict[str, int]:
        """Kind to count, most frequent first."""
        kinds: Counter[str] = Counter()
        for (kind, _), count in self._counts.items():
            kinds[kind.value] += count
        return dict(sorted(kinds.items(), key=lambda item: (-item[1], item[0])))

    def samples(self) -> tuple[FailureSample, ...]:
        """One a group, most frequent first."""
        groups = sorted(self._counts.items(), key=lambda item: (-item[1], item[0][0], item[0][1] or 0))
        return tuple(
            FailureSample(kind=kind.value, http_status=status, count=count, example=self._examples.get((kind, status)))
            for (kind, status), count in groups
        )


class Oddities:
    """What the verdict asks of completed requests beyond the summary: counts and sums, all over completed requests.

    A pair of sums is over the requests that have both numbers. `max_output_tokens` is the run's own bound on answers:
    no more than that was asked for, whatever the data says. `bounded` answers are those of a known length that were
    asked for by such a bound or the data's own; `longest` is what the longest of those beyond it had, and its bound.
    """

    def __init__(self, *, max_output_tokens: int | None = None) -> None:
        self._max_output_tokens = max_output_tokens
        self.bounded = self.beyond_bound = self.below_bound = 0
        self.longest: tuple[int, int] | None = None
        self.not_streamed = self.reasoning_hidden = self.decode_untimed = 0
        self.timed = self.first_event_several = 0
        self.overstated_sum = 0.0
        self.counted_by_server = self.server_stream_difference = 0
        self.planned_output = self.actual_output = self.planned_input = self.actual_input = 0
        self.cached_input = self.input_beside_cached = 0
        self.connected = self.events = self.stalled_events = 0
        self.in_session = False

    def observe(self, record: RequestRecord) -> None:
        """Adds one completed request."""
        hidden = hides_reasoning(record)
        tokens = streamed_tokens(record)
        self.not_streamed += record.streamed is False
        self.reasoning_hidden += hidden
        if is_streamed(record) and tokens is not None and tokens >= 2:
            first = first_event_tokens(record)
            if tpot_s(record) is None:
                self.decode_untimed += 1
            else:
                self.timed += 1
                self.first_event_several += first > 1
                self.overstated_sum += (first - 1) / (tokens - 1)
        if record.output_tokens_from is TokenSource.SERVER and record.output_tokens is not None:
            if record.event_tokens is not None and not hidden:
                self.counted_by_server += record.output_tokens
                difference = abs(record.output_tokens - sum(record.event_tokens))
                self.server_stream_difference += difference if difference > 1 else 0  # one: a stop token has no text
            asked = None if record.planned_output_tokens is None else self._bound(record)
            if asked is not None:
                self.planned_output += asked
                self.actual_output += record.output_tokens
        self._hold_against_bound(record)
        if record.input_tokens is not None:
            if record.planned_input_tokens is not None:
                self.planned_input += record.planned_input_tokens
                self.actual_input += record.input_tokens
            if record.cached_input_tokens is not None:
                self.cached_input += record.cached_input_tokens
                self.input_beside_cached += record.input_tokens
        self.connected += record.connect_ns is not None
        self.events += len(record.event_ns)
        self.stalled_events += record.stalled_events
        self.in_session = self.in_session or record.session_id is not None

    def _hold_against_bound(self, record: RequestRecord) -> None:
        bound = self._bound(record)
        counted = record.output_tokens_from in (TokenSource.SERVER, TokenSource.STREAM)
        if bound is None or record.output_tokens is None or not counted:
            return
        self.bounded += 1
        self.below_bound += record.output_tokens < bound
        if record.output_tokens > bound:
            self.beyond_bound += 1
            self.longest = max(self.longest or (0, 0), (record.output_tokens, bound))

    def _bound(self, record: RequestRecord) -> int | None:
        """The most output tokens that were asked for; None without a bound.

        The run's own bound is one of each answer: for several to one request nothing says what it comes to in all.
        """
        if self._max_output_tokens is None:
            return record.planned_output_tokens
        if Note.SEVERAL_CHOICES in record.notes:
            return None
        planned = record.planned_output_tokens
        return self._max_output_tokens if planned is None else min(planned, self._max_output_tokens)


class Tallies:
    """Everything that one pass over the records counts, and their columns."""

    def __init__(self, manifest: RunManifest) -> None:
        self.columns = Columns(manifest.slo)
        self.gaps, self.tokens, self.failures = Gaps(), Tokens(), Failures()
        most = manifest.options.get("max_tokens")
        self.acceptance = AcceptanceTally(manifest.server.get("speculation"), max_output_tokens=most)
        self.oddities = Oddities(max_output_tokens=most)
        self.resent = self.generated = self.completed_tokens = self.uncounted = self.prompted = self.unprompted = 0

    def observe(self, record: RequestRecord) -> None:
        """Adds one record of any phase and outcome."""
        self.columns.observe(record)
        self.acceptance.observe(record)
        generated = output_tokens(record)
        self.generated += generated or 0
        self.completed_tokens += (generated or 0) if record.outcome is Outcome.COMPLETED else 0
        self.uncounted += generated is None and record.first_ns is not None
        self.prompted += record.input_tokens or 0
        self.unprompted += record.input_tokens is None and record.sent_ns is not None
        if record.phase is not Phase.MEASURE:
            return
        self.tokens.observe(record)
        self.failures.observe(record)
        self.resent += record.resent
        if record.outcome is Outcome.COMPLETED:
            self.gaps.observe(record)
            self.oddities.observe(record)
