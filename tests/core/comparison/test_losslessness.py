"""Whether an arm leaves answers alone, on a language model whose distribution is known."""

import random

import numpy as np
import pytest

from loadgen.core.comparison.losslessness import LOSSY_ERROR_RATIO, POWER_RATIO, Losslessness, Sampling, losslessness
from loadgen.sim.server.exchange import Asked, Route
from loadgen.sim.server.language import LanguageModel

EXACT, LOSSY = LanguageModel(output_tokens=24), LanguageModel(output_tokens=24, lossy_ratio=0.05)


Answers = dict[tuple[str, int], dict[int, str]]


def answers(
    model: LanguageModel, sampling: Sampling, *, requests: int, repeats: int, seed: int, tokens: int = 24
) -> Answers:
    """Texts of the model to prompts that are the same whatever the seed, which is that of sampled tokens."""
    luck = random.Random(seed)

    def text(request: int) -> str:
        asked = Asked(
            route=Route.COMPLETIONS,
            request_id="r",
            model="m",
            prompt_ids=(1, 2, request),
            max_tokens=tokens,
            temperature=0.0 if sampling is Sampling.GREEDY else 0.7,
        )
        return "".join(model.generate(asked, fresh_seed=luck.getrandbits(40))[0].texts)

    return {("c1", request): {repeat: text(request) for repeat in range(repeats)} for request in range(requests)}


def drawn(model: LanguageModel, sampling: Sampling, *, seed: int, requests: int = 60, repeats: int = 2) -> Losslessness:
    """An arm that answers by this model, against the exact one."""
    baseline, again, arm = (
        answers(one, sampling, requests=requests, repeats=repeats, seed=3 * seed + place)
        for place, one in enumerate((EXACT, EXACT, model))
    )
    return losslessness(baseline, again, {"arm": arm}, sampling, np.random.default_rng(seed))["arm"]


def same(*texts: str, requests: int = 20) -> Answers:
    """Requests that are all answered so, one text a repeat."""
    return {("c1", request): dict(enumerate(texts)) for request in range(requests)}


def judged(arm: Answers, *, baseline: Answers | None = None, again: Answers | None = None) -> Losslessness:
    """Greedy answers of an arm, against a baseline that repeats itself unless another is given."""
    base = baseline or same("one two three four")
    return losslessness(base, again or base, {"arm": arm}, Sampling.GREEDY, np.random.default_rng(1))["arm"]


def test_a_lossless_arm_is_hardly_ever_accused() -> None:
    """At most in 5 % of experiments, and chance, whichever way the answers of servers that never repeat themselves are
    judged; what chance does is spread evenly."""
    found: dict[Sampling, list[Losslessness]] = {sampling: [] for sampling in Sampling}
    for seed in range(24):
        baseline, again, arm = (
            answers(EXACT, Sampling.SAMPLED, requests=30, repeats=1, seed=3 * seed + place, tokens=8)
            for place in range(3)
        )
        for sampling, judged_so in found.items():
            rng = np.random.default_rng(seed)
            judged_so.append(losslessness(baseline, again, {"arm": arm}, sampling, rng)["arm"])
    for judged_so in found.values():
        assert sum(each.lossy for each in judged_so) <= 4
        assert 0.3 < np.median([each.p_value for each in judged_so]) < 0.7


def test_a_lossy_verifier_is_caught_by_greedy_answers() -> None:
    """One token in twenty is another than the model's choice: the difference to the baseline comes after about so many
    words, and the baseline never differs from itself."""
    found = drawn(LOSSY, Sampling.GREEDY, seed=1)
    assert found.lossy
    assert found.p_value < 0.001
    assert found.reference.identical_ratio == 1
    assert found.reference.words_to_difference is None
    assert 0.4 < found.arm.identical_ratio < 0.6
    assert found.arm.words_to_difference is not None
    assert 12 < found.arm.words_to_difference < 30


def test_differences_that_rounding_makes_are_no_loss() -> None:
    """One token in five hundred: enough answers tell the arm from the baseline, which never differs from itself, but a
    server that verifies in a batch does as much."""
    found = drawn(LanguageModel(output_tokens=24, lossy_ratio=0.002), Sampling.GREEDY, seed=1, requests=400)
    assert found.differs
    assert found.p_value < 0.001
    assert found.arm.words_to_difference is not None
    assert found.arm.words_to_difference > 200
    assert not found.lossy
    assert found.cleared


def rounded(ratio: float, seed: int) -> Losslessness:
    """An arm of a hundred answers of 24 words, each word another with that probability."""
    words, luck = [str(place) for place in range(24)], random.Random(seed)
    base, arm = same(" ".join(words), requests=100), same(requests=100)
    for texts in arm.values():
        texts[0] = " ".join("x" if luck.random() < ratio else word for word in words)
    return judged(arm, baseline=base)


def test_rounding_near_its_limit_is_hardly_ever_taken_for_loss() -> None:
    """One word in two hundred and fifty: by chance many such arms differ in more than one word of 200. Ten times as
    many are a loss, and seen as one."""
    found = [rounded(0.004, seed) for seed in range(16)]
    assert sum((each.arm.words_to_difference or 1000) < 200 for each in found) >= 2
    assert sum(each.lossy for each in found) == 0
    assert all(rounded(0.04, seed).lossy for seed in range(3))


def test_one_request_is_one_event_however_often_it_was_repeated() -> None:
    """Three of forty requests differ, in every repeat; that is no evidence of more than three of them."""
    base = same(*[" ".join(map(str, range(20)))] * 8, requests=40)
    arm = same(*[" ".join(map(str, range(20)))] * 8, requests=40)
    for request in range(3):
        arm["c1", request] = dict.fromkeys(range(8), "0 1 2 x")
    assert not judged(arm, baseline=base).lossy
    for request in range(20):
        arm["c1", request] = dict.fromkeys(range(8), "0 1 2 x")
    assert judged(arm, baseline=base).lossy


def test_a_verifier_that_loses_much_is_caught_by_sampled_answers() -> None:
    """Sampled answers differ anyway, so it takes more of them, or more loss, than greedy ones."""
    verifier = LanguageModel(output_tokens=24, lossy_ratio=0.5)
    found = drawn(verifier, Sampling.SAMPLED, seed=1, requests=300)
    assert found.lossy
    assert found.arm.shared_words <= found.reference.shared_words


def test_a_verifier_that_prefers_likely_tokens_is_caught_by_sampled_answers() -> None:
    """Its answers agree with the baseline's more than the baseline's with themselves."""
    baseline, again = (answers(EXACT, Sampling.SAMPLED, requests=200, repeats=1, seed=seed) for seed in (1, 2))
    likely = answers(EXACT, Sampling.GREEDY, requests=200, repeats=1, seed=3)
    sides = baseline, again, {"arm": likely}
    found = losslessness(*sides, Sampling.SAMPLED, np.random.default_rng(1))["arm"]
    assert found.lossy
    assert not losslessness(*sides, Sampling.GREEDY, np.random.default_rng(1))["arm"].lossy


def test_a_baseline_that_differs_from_itself_is_the_measure() -> None:
    """Servers do not repeat their texts to the bit; an arm that differs as often as the baseline does is not lossy."""
    texts = ("one two three four", "one two three five")
    sides = [{("c1", request): {0: texts[request // half % 2]} for request in range(64)} for half in (1, 2, 4)]
    found = judged(sides[2], baseline=sides[0], again=sides[1])
    assert (found.arm.identical_ratio, found.reference.identical_ratio) == (0.5, 0.5)
    assert not found.lossy


def test_agreement_is_told_in_words() -> None:
    """Pairs of the arm are with either start of the baseline."""
    arm, baseline = same("one two, and more", "one two three four"), same(*["one two three four"] * 2)
    found = judged(arm, baseline=baseline)
    assert found.requests == 20
    assert found.arm.pairs == 80
    assert found.reference.pairs == 40
    assert found.arm.identical_ratio == 0.5
    assert found.arm.shared_words == 2.5
    assert found.arm.words_to_difference == pytest.approx((40 * 1 + 40 * 4 + 40) / 40)


def test_a_language_without_spaces_is_counted_by_its_signs() -> None:
    """A sentence of it is not one word."""
    found = judged(same("今日は雨です"), baseline=same("今日は晴です"))
    assert found.arm.shared_words == 3


def test_only_repeats_that_all_have_are_compared() -> None:
    """A request that failed once is compared where it did not; one that failed always is left out."""
    arm = same("one two three four", requests=5)
    arm["c1", 0] = {7: "something else"}
    assert judged(arm).requests == 4
    assert judged(arm).arm.identical_ratio == 1
    assert judged(arm).p_value == 1


def test_without_a_common_request_there_is_nothing_to_say() -> None:
    """No verdict is made up."""
    base = same("one")
    assert losslessness(base, base, {"arm": {}}, Sampling.GREEDY, np.random.default_rng(1)) == {}


def test_more_arms_make_a_claim_harder() -> None:
    """A p-value that does for one arm does not for one among many."""
    base = same("one two")
    arm = same("one two")
    for request in range(5):
        arm["c1", request] = {0: "one three"}
    alone = losslessness(base, base, {"arm": arm}, Sampling.GREEDY, np.random.default_rng(1))["arm"]
    others = {f"other {place}": base for place in range(9)}
    among = losslessness(base, base, {"arm": arm} | others, Sampling.GREEDY, np.random.default_rng(1))["arm"]
    assert LOSSY_ERROR_RATIO / 10 < alone.p_value < LOSSY_ERROR_RATIO
    assert alone.lossy
    assert not among.lossy


def test_a_claim_that_is_settled_makes_the_next_one_easier() -> None:
    """Holm: beside arms that are lossy beyond doubt, another is judged as though it were alone."""
    base, arm = same("one two"), same("one two")
    for request in range(5):
        arm["c1", request] = {0: "one three"}
    arms = {"doubtful": arm, "clear": same("three four"), "as clear": same("five six")}
    found = losslessness(base, base, arms, Sampling.GREEDY, np.random.default_rng(1))
    assert LOSSY_ERROR_RATIO / 3 < found["doubtful"].p_value < LOSSY_ERROR_RATIO
    assert found["doubtful"].lossy
    assert found["clear"].lossy


@pytest.mark.parametrize(("requests", "words", "cleared"), [(2, 200, False), (4, 200, False), (5, 200, True)])
def test_an_arm_is_cleared_when_the_test_could_have_accused_it(requests: int, words: int, cleared: bool) -> None:
    """Of four requests the least p-value is 3^-4, which accuses nobody, so it clears nobody; of five long answers one
    word changed in twenty leaves the baseline's for certain."""
    base = same(" ".join(map(str, range(words))), requests=requests)
    found = judged(base, baseline=base)
    assert (found.lossy, found.cleared) == (False, cleared)


def test_few_wholly_wrong_answers_are_no_clearance() -> None:
    """All of four are wrong, and the test cannot say so; nor does it say that they are right."""
    base, wrong = same("a b c d e f", requests=4), same("g h i j k l", requests=4)
    found = judged(wrong, baseline=base)
    assert found.arm.identical_ratio == 0
    assert (found.lossy, found.cleared) == (False, False)
    assert judged(same("g h", requests=9), baseline=same("a b", requests=9)).lossy


def test_answers_of_nothing_are_answers() -> None:
    """A baseline that says nothing agrees with itself, and an arm that says something does not."""
    assert judged(same("a b"), baseline=same("")).lossy
    assert not judged(same(""), baseline=same("")).lossy


def test_short_answers_clear_only_in_numbers() -> None:
    """One word in twenty changed is seen in few answers of two words."""
    assert not judged(same("a b", requests=30), baseline=same("a b", requests=30)).cleared
    assert judged(same("a b", requests=300), baseline=same("a b", requests=300)).cleared


def test_more_arms_make_a_clearance_harder() -> None:
    """As they make a claim harder: what would be accused alone would not be among ten."""
    base = same(" ".join(map(str, range(200))), requests=5)
    arms = {f"arm {place}": base for place in range(10)}
    found = losslessness(base, base, arms, Sampling.GREEDY, np.random.default_rng(1))
    assert not any(each.cleared for each in found.values())


def test_the_stated_loss_is_seen_where_an_arm_is_cleared() -> None:
    """On the language model: what clears the exact arm catches one that changes a token in twenty, and sampled answers
    of the same number, which part anyway, clear nobody."""
    assert drawn(EXACT, Sampling.GREEDY, seed=1, requests=40).cleared
    caught = [drawn(LOSSY, Sampling.GREEDY, seed=seed, requests=40).lossy for seed in range(10)]
    assert np.mean(caught) >= POWER_RATIO
    assert not drawn(EXACT, Sampling.SAMPLED, seed=1, requests=40).cleared


@pytest.mark.parametrize("other", ["a\n  b c", "a\nb  c", "a\nb c\n", " a\nb c"])
def test_blanks_are_part_of_an_answer(other: str) -> None:
    """Indentation is what Python code means; answers are the same only where their blanks are."""
    found = judged(same(other), baseline=same("a\nb c"))
    assert found.arm.identical_ratio == 0
    assert found.lossy


def test_answers_without_a_text_are_left_out_and_counted() -> None:
    """A request that failed or called a tool is no agreement."""
    arm: dict[tuple[str, int], dict[int, str | None]] = {key: {0: "one two"} for key in same("one two")}
    for request in range(5):
        arm["c1", request] = {0: None}
    found = losslessness(same("one two"), same("one two"), {"arm": arm}, Sampling.GREEDY, np.random.default_rng(1))
    assert (found["arm"].requests, found["arm"].left_out_ratio) == (15, 0.25)


@pytest.mark.parametrize("sampling", Sampling)
def test_answers_that_all_agree_are_no_evidence(sampling: Sampling) -> None:
    """Chance alone then always sets them as far apart, which is not at all."""
    base = same("one two three")
    found = losslessness(base, base, {"arm": base}, sampling, np.random.default_rng(1))["arm"]
    assert found.p_value == 1
    assert not found.lossy


def test_sampled_answers_are_judged_by_their_first_words() -> None:
    """After the first difference nothing is comparable: that the baseline's two starts happen to part later than the
    arm does, all of them after the eighth word, says nothing."""
    first = "a b c d e f g h"
    sides = same(f"{first} i j k l"), same(f"{first} i j k m"), {"arm": same(f"{first} n o p q")}
    found = losslessness(*sides, Sampling.SAMPLED, np.random.default_rng(1))["arm"]
    assert found.p_value == 1
    assert losslessness(*sides, Sampling.GREEDY, np.random.default_rng(1))["arm"].differs


def test_which_side_is_evidence() -> None:
    """Agreement beyond the baseline's own accuses an arm of sampled answers, never one of greedy answers, which can
    only agree less; agreement below it accuses both."""
    one, other = same("a b c d"), same("a x y z")
    more, less = (one, other, {"arm": one}), (one, one, {"arm": other})
    lossy = {
        (sampling, name): losslessness(*sides, sampling, np.random.default_rng(1))["arm"].lossy
        for sampling in Sampling
        for name, sides in (("more", more), ("less", less))
    }
    assert lossy == {
        (Sampling.GREEDY, "more"): False,
        (Sampling.GREEDY, "less"): True,
        (Sampling.SAMPLED, "more"): True,
        (Sampling.SAMPLED, "less"): True,
    }
