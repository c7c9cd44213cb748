import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from loadgen.sim.server.exchange import Asked, Output, Route
from loadgen.sim.server.language import CANDIDATES, LENGTH_SPREAD, LanguageModel, distribution
from loadgen.sim.server.prompts import chat_ids
from loadgen.sim.server.tokens import END, ids_of, text_of

PROMPT = tuple(chat_ids([{"role": "user", "content": "How high is the lamp?"}]))
MODEL = LanguageModel(output_tokens=60)


def asked(**fields: Any) -> Asked:
    given = {"route": Route.CHAT, "request_id": "r", "model": "m", "prompt_ids": PROMPT, "max_tokens": 500, **fields}
    return Asked(**given)


def answer(model: LanguageModel = MODEL, *, fresh_seed: int = 1, **fields: Any) -> Output:
    (output,) = model.generate(asked(**fields), fresh_seed=fresh_seed)
    return output


def text(output: Output) -> str:
    return "".join(output.texts)


def surprise(seen: Iterable[int], truth: Mapping[int, float]) -> float:
    """Chi-square of what was seen against the truth, in standard deviations above what chance alone gives.

    Candidates expected fewer than five times count as one. Infinite where something impossible was seen.
    """
    counts = Counter(seen)
    total = counts.total()
    if not counts.keys() <= truth.keys():
        return math.inf
    cells = [(counts[token], total * chance) for token, chance in truth.items()]
    rare = [cell for cell in cells if cell[1] < 5]
    cells = [cell for cell in cells if cell[1] >= 5]
    if rare:
        cells.append((sum(count for count, _ in rare), sum(expected for _, expected in rare)))
    square = sum((count - expected) ** 2 / expected for count, expected in cells)
    freedom = len(cells) - 1
    return (square - freedom) / math.sqrt(2 * freedom) if freedom else 0.0


def test_greedy_takes_the_likeliest_token_each_time() -> None:
    """At temperature 0 every token is the one that the distribution after all before it puts first."""
    ids = answer(temperature=0.0, ignore_eos=True, max_tokens=60).ids
    for position, token in enumerate(ids):
        truth = distribution([*PROMPT, *ids[:position]])
        assert token == max(truth, key=truth.__getitem__)
        assert distribution([*PROMPT, *ids[:position]], temperature=0.0) == {token: 1.0}


def test_greedy_depends_on_the_prompt_alone() -> None:
    """No seed changes a greedy answer; another prompt does."""
    plain = answer(temperature=0.0)
    assert plain == answer(temperature=0.0, seed=8) == answer(temperature=0.0, fresh_seed=9)
    assert plain.ids != answer(temperature=0.0, prompt_ids=(*PROMPT, 5)).ids


def test_a_seed_repeats_an_answer() -> None:
    """Equal seeds give equal answers, other seeds others; the fresh seed counts only without one."""
    assert answer(seed=3) == answer(seed=3, fresh_seed=9)
    assert answer(seed=3).ids != answer(seed=4).ids
    assert answer(fresh_seed=3) == answer(seed=3)
    assert answer(seed=-3).ids != answer(seed=3).ids


def test_one_seed_for_all_requests_does_not_make_them_alike() -> None:
    """Requests with the same seed and different prompts have lengths of their own, as a run with a fixed seed needs."""
    assert len({len(answer(seed=0, prompt_ids=(*PROMPT, token)).ids) for token in range(20)}) > 10


def test_choices_differ_and_the_first_is_that_of_a_single_one() -> None:
    """n choices are n answers; asking for more of them does not change the first."""
    choices = MODEL.generate(asked(n=3, seed=5), fresh_seed=1)
    assert len({choice.ids for choice in choices}) == 3
    assert choices[0] == answer(seed=5)


def test_a_shorter_limit_cuts_the_same_answer() -> None:
    """The limit on tokens and ignoring the end change where an answer stops, not what it says."""
    long = answer(seed=3, ignore_eos=True, max_tokens=300)
    assert answer(seed=3, ignore_eos=True, max_tokens=40).ids == long.ids[:40]
    own = answer(seed=3)
    assert own.ids[:-1] == long.ids[: len(own.ids) - 1]


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.6, 1.0), (1.7, 1.0), (1.0, 0.8)])
def test_sampled_tokens_follow_the_distribution(temperature: float, top_p: float) -> None:
    """First tokens, and second tokens after the same first one, come as often as the distribution says."""
    firsts, seconds = [], []
    truth = distribution(PROMPT, temperature=temperature, top_p=top_p)
    usual = max(truth, key=truth.__getitem__)
    for seed in range(4_000):
        first, second = answer(seed=seed, temperature=temperature, top_p=top_p, max_tokens=2, ignore_eos=True).ids
        firsts.append(first)
        if first == usual:
            seconds.append(second)
    assert surprise(firsts, truth) < 4
    assert surprise(seconds, distribution([*PROMPT, usual], temperature=temperature, top_p=top_p)) < 4
    assert surprise(firsts, distribution(PROMPT, temperature=temperature * 1.3, top_p=top_p)) > 4


def test_late_tokens_follow_the_distribution_too() -> None:
    """Over one long answer, the rank of each token among its candidates comes as often as the distributions say."""
    ids = answer(seed=1, ignore_eos=True, max_tokens=2_000).ids
    ranks: Counter[int] = Counter()
    expected: Counter[int] = Counter()
    for position in range(1_000, 1_300):
        truth = distribution([*PROMPT, *ids[:position]])
        ranks[sorted(truth, key=truth.__getitem__, reverse=True).index(ids[position])] += 1
        expected.update(dict(enumerate(sorted((chance for chance in truth.values()), reverse=True))))
    share = {rank: count / expected.total() for rank, count in expected.items()}
    assert surprise(ranks.elements(), share) < 4


def test_a_distribution_is_one() -> None:
    """Probabilities sum to 1, over eight candidates, and fewer where top_p leaves some out; colder is sharper."""
    warm, cold = distribution(PROMPT), distribution(PROMPT, temperature=0.5)
    cut = distribution(PROMPT, top_p=0.6)
    assert len(warm) == CANDIDATES > len(cut)
    for truth in (warm, cold, cut):
        assert sum(truth.values()) == pytest.approx(1)
    assert max(cold.values()) > max(warm.values())
    kept = sum(warm[token] for token in cut)
    assert kept >= 0.6 > kept - min(warm[token] for token in cut)
    assert cut == pytest.approx({token: warm[token] / kept for token in cut})


def test_temperatures_near_zero_count_as_a_hundredth() -> None:
    """As in vLLM, a temperature that is small and not 0 is raised to 0.01, where a little of chance is left."""
    prompts = [[*PROMPT, token] for token in range(40)]
    cold = [distribution(prompt, temperature=0.001) for prompt in prompts]
    assert cold == [distribution(prompt, temperature=0.01) for prompt in prompts]
    assert min(max(truth.values()) for truth in cold) < 1
    assert distribution(PROMPT, temperature=1e-6) == distribution(PROMPT, temperature=0.0)


def test_no_answer_goes_in_circles() -> None:
    """A long greedy answer does not repeat itself: no run of eight tokens comes twice."""
    ids = answer(temperature=0.0, ignore_eos=True, max_tokens=20_000).ids
    assert len({ids[at : at + 8] for at in range(len(ids) - 7)}) == len(ids) - 7


def test_a_different_token_changes_all_that_follows() -> None:
    """After one other token the greedy text goes elsewhere and does not come back."""
    one = answer(temperature=0.0, ignore_eos=True, max_tokens=50, prompt_ids=(*PROMPT, ids_of(" lamp")[0])).ids
    other = answer(temperature=0.0, ignore_eos=True, max_tokens=50, prompt_ids=(*PROMPT, ids_of(" barn")[0])).ids
    assert sum(a == b for a, b in zip(one, other, strict=True)) < 5


def test_a_written_answer_reads_as_the_same_tokens() -> None:
    """The text of an answer is cut into the very tokens that it was written in, so a next turn finds it cached."""
    for seed in range(20):
        output = answer(seed=seed)
        assert ids_of(text(output)) == [token for token in output.ids if token != END]
        assert output.texts == tuple("" if token == END else text_of([token]) for token in output.ids)


def test_an_answer_goes_on_where_the_prompt_stopped() -> None:
    """After a word comes a word with its space, or a mark; after a space or in a new message, no further space."""
    within = answer(prompt_ids=tuple(ids_of("The lamp")), seed=1).texts[0]
    after_space = answer(prompt_ids=tuple(ids_of("The lamp is high. ")), seed=1).texts[0]
    assert within[0] in " .,"
    assert after_space[0].isupper()
    assert answer(seed=1).texts[0][0].isupper()


def test_ignoring_the_end_gives_every_token_asked_for() -> None:
    """With ignore_eos an answer has exactly max_tokens tokens and ends for its length."""
    output = answer(ignore_eos=True, max_tokens=700, seed=1)
    assert (len(output.ids), output.finish_reason, output.stop_reason) == (700, "length", None)
    assert END not in output.ids


def test_an_answer_ends_by_itself() -> None:
    """Without ignore_eos it ends with the end token, which has no text, or at the limit without one."""
    output = answer(seed=1)
    assert (output.ids[-1], output.texts[-1], output.finish_reason) == (END, "", "stop")
    cut = answer(seed=1, max_tokens=len(output.ids) - 1)
    assert cut.ids == output.ids[:-1]
    assert cut.finish_reason == "length"
    assert answer(seed=1, max_tokens=len(output.ids)) == output


def test_no_answer_is_empty() -> None:
    """However short the answers of a model are, each has a word before its end."""
    brief = LanguageModel(output_tokens=1)
    assert all(text(answer(brief, seed=seed)) for seed in range(50))


def test_own_lengths_are_log_normal_around_the_mean() -> None:
    """Over many seeds the lengths' mean and the spread of their logarithms are what the model was made with."""
    lengths = [len(answer(seed=seed, max_tokens=10_000).ids) for seed in range(1_500)]
    logarithms = [math.log(length) for length in lengths]
    middle = sum(logarithms) / len(lengths)
    spread = math.sqrt(sum((value - middle) ** 2 for value in logarithms) / len(lengths))
    assert sum(lengths) / len(lengths) == pytest.approx(60, rel=0.1)
    assert spread == pytest.approx(LENGTH_SPREAD, rel=0.06)


def test_min_tokens_come_before_the_end() -> None:
    """At least min_tokens tokens come before the end token, as vLLM holds the end back until then."""
    short = LanguageModel(output_tokens=3)
    assert len(answer(short, seed=1).ids) < 20
    assert len(answer(short, seed=1, min_tokens=40).ids) == 41
    assert answer(short, seed=1, min_tokens=40, max_tokens=40).finish_reason == "length"


@pytest.mark.parametrize("length", [1, 3, 12])
def test_a_stop_string_ends_the_text_before_it(length: int) -> None:
    """The text ends where the first stop string begins; the token that completes it is the last."""
    whole = answer(seed=3, ignore_eos=True, max_tokens=60)
    at = text(whole).index(" ", 80) - 2
    stop = text(whole)[at : at + length]
    output = answer(seed=3, ignore_eos=True, max_tokens=60, stop=("never written", stop))
    assert text(output) == text(whole)[: text(whole).index(stop)]
    assert (output.finish_reason, output.stop_reason) == ("stop", stop)
    complete = [stop in "".join(whole.texts[:tokens]) for tokens in range(61)]
    assert len(output.ids) == complete.index(True) == len(output.texts) == len(output.logprobs)
    assert output.ids == whole.ids[: len(output.ids)]


def test_the_first_stop_string_to_be_complete_counts() -> None:
    """Of several stop strings the one that is complete first ends the text, wherever it stands in the list."""
    whole = text(answer(seed=3, ignore_eos=True, max_tokens=60))
    early, late = whole[50:54], whole[90:94]
    for stops in ((early, late), (late, early)):
        assert answer(seed=3, ignore_eos=True, max_tokens=60, stop=stops).stop_reason == early


def test_a_short_stop_string_within_a_long_one_counts_first() -> None:
    """A stop string that begins later but is complete earlier ends the text, where it begins."""
    whole = text(answer(seed=3, ignore_eos=True, max_tokens=60))
    output = answer(seed=3, ignore_eos=True, max_tokens=60, stop=(whole[50:80], whole[55:62]))
    assert (text(output), output.stop_reason) == (whole[: whole.index(whole[55:62])], whole[55:62])


def test_no_text_is_sent_that_a_stop_string_may_take_back() -> None:
    """Until the end the last characters, one fewer than the longest stop string has, are held back."""
    whole = answer(seed=3)
    held = answer(seed=3, stop=("never written",))
    assert held.ids == whole.ids
    assert text(held) == text(whole)
    for tokens in range(1, len(whole.ids)):
        assert "".join(held.texts[:tokens]) == "".join(whole.texts[:tokens])[: -len("never written") + 1]


def test_each_tokens_own_text_is_known_where_it_is_told() -> None:
    """With log-probabilities: also where stop strings hold text back, and that of the end token, which adds none."""
    output = answer(seed=3, stop=("never written",), logprobs=0)
    assert output.tokens == tuple(text_of([token]) for token in output.ids)
    assert output.tokens != output.texts
    assert (output.ids[-1], output.tokens[-1]) == (END, "<|end|>")
    assert answer(seed=3).tokens == ()


def test_stop_strings_are_not_looked_for_before_min_tokens() -> None:
    """A stop string that is complete within min_tokens does not end the answer; a later one does."""
    whole = answer(seed=3, ignore_eos=True, max_tokens=200)
    output = answer(seed=3, ignore_eos=True, max_tokens=200, stop=(".",), min_tokens=100)
    assert "." in "".join(whole.texts[:100])
    assert 100 < len(output.ids) < 200
    assert whole.texts[len(output.ids) - 1] == "."
    assert "." not in "".join(whole.texts[100 : len(output.ids) - 1])


def test_a_stop_string_may_begin_within_min_tokens() -> None:
    """What counts is where a stop string is complete: one that begins in the last of min_tokens ends the answer."""
    whole = answer(seed=3, ignore_eos=True, max_tokens=60)
    stop = whole.texts[29][-2:] + whole.texts[30]
    output = answer(seed=3, ignore_eos=True, max_tokens=60, stop=(stop,), min_tokens=30)
    assert (len(output.ids), output.stop_reason) == (31, stop)


def test_log_probabilities_are_those_at_temperature_one() -> None:
    """Whatever the temperature, each token has its logarithm at temperature 1, and the best candidates theirs."""
    output = answer(seed=3, temperature=0.7, logprobs=3, max_tokens=30, ignore_eos=True)
    for position, token in enumerate(output.ids):
        truth = distribution([*PROMPT, *output.ids[:position]])
        best = sorted(truth, key=truth.__getitem__, reverse=True)[:3]
        assert output.logprobs[position] == pytest.approx(math.log(truth[token]))
        assert [name for name, _ in output.top_logprobs[position]] == [text_of([rival]) for rival in best]
        assert [value for _, value in output.top_logprobs[position]] == pytest.approx(
            [math.log(truth[rival]) for rival in best]
        )


def test_alternatives_are_given_only_where_asked_for() -> None:
    """Without logprobs, or with none of the alternatives, there are none; the end's own has probability 1."""
    assert answer(seed=3).top_logprobs == answer(seed=3, logprobs=0).top_logprobs == ()
    ended = answer(seed=3, logprobs=2)
    assert ended.logprobs[-1] == 0.0
    assert len(ended.top_logprobs) == len(ended.ids)


def test_a_lossy_verifier_replaces_tokens_after_the_first() -> None:
    """With a ratio of 1 every token but the first is another than the greedy one, and the text goes on from there."""
    output = answer(LanguageModel(output_tokens=60, lossy_ratio=1.0), temperature=0.0, ignore_eos=True, max_tokens=40)
    for position, token in enumerate(output.ids):
        truth = distribution([*PROMPT, *output.ids[:position]])
        assert token in truth
        assert (token == max(truth, key=truth.__getitem__)) == (position == 0)


def test_a_lossy_verifier_shifts_the_distribution() -> None:
    """Second tokens follow the mixture of the model's choice and, with the ratio, an equal choice of the others."""
    ratio = 0.3
    model = LanguageModel(output_tokens=60, lossy_ratio=ratio)
    usual = answer(temperature=0.0).ids[0]
    pairs = [answer(model, seed=seed, max_tokens=2, ignore_eos=True).ids for seed in range(6_000)]
    seconds = [second for first, second in pairs if first == usual]
    truth = distribution([*PROMPT, usual])
    mixture = {t: (1 - ratio) * chance + ratio * (1 - chance) / (CANDIDATES - 1) for t, chance in truth.items()}
    assert surprise(seconds, mixture) < 4
    assert surprise(seconds, truth) > 10
    assert surprise([first for first, _ in pairs], distribution(PROMPT)) < 4


def test_without_errors_a_lossy_verifier_changes_nothing() -> None:
    """A ratio of 0 is the model itself, and with a small one the text is the same up to the first error."""
    clean = answer(seed=3, ignore_eos=True)
    assert answer(LanguageModel(output_tokens=60, lossy_ratio=0.0), seed=3, ignore_eos=True) == clean
    lossy = answer(LanguageModel(output_tokens=60, lossy_ratio=0.02), seed=3, ignore_eos=True)
    agreed = next(at for at, (a, b) in enumerate(zip(clean.ids, lossy.ids, strict=True)) if a != b)
    assert agreed > 3
