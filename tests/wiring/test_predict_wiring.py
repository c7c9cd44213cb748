"""From options to a prediction."""

from pathlib import Path
from typing import Any

import pytest

from loadgen.core.errors import ConfigError
from loadgen.core.simulation.speculator import Method
from loadgen.options.predict import PredictOptions
from loadgen.options.resolve import resolve
from loadgen.wiring.predict import modelled_server, predicted


def options(**given: Any) -> PredictOptions:
    return resolve(PredictOptions, given, environment={})


def test_nothing_given_is_a_whole_question() -> None:
    """EAGLE-3 with three draft tokens for Llama-3.1-8B on an H100, chat, from 1 to 256."""
    found = predicted(options())
    assert [point.concurrency for point in found.points] == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert (found.method, found.draft_tokens, found.measured) == (Method.EAGLE3, 3, False)
    assert (found.setting.target, found.setting.gpu) == ("Llama-3.1-8B", "H100 SXM")
    assert found.traffic.context_tokens == 447 + 658 / 2
    assert found.points[0].fits_memory


def test_rates_set_the_draft_length_and_what_is_known() -> None:
    """Four rates are four draft tokens; the best length by batch goes no further, and no workload is combined."""
    found = predicted(options(acceptance="0.8,0.6,0.4,0.3", method="eagle"))
    assert found.draft_tokens == 4
    assert found.points[0].acceptance_length == pytest.approx(3.1)
    assert max(tokens for _, _, tokens in found.draft_tokens_by_batch) <= 4
    assert found.bounds[0].combined is None
    assert found.bounds[0].oracle_length is not None


def test_a_length_alone_says_nothing_by_position() -> None:
    """The mean is as given; what needs the positions is left out."""
    found = predicted(options(acceptance_length="2.5"))
    assert found.points[0].acceptance_length == pytest.approx(2.5)
    assert (found.draft_tokens_by_batch, found.bounds[0].oracle_length) == ((), None)


def test_lookup_takes_the_workloads_coverage_and_given_rates_do_not() -> None:
    """Given rates speak of all steps unless a coverage is given too."""
    assert modelled_server(options(method="ngram")).speculator.coverage_ratio < 0.5
    assert modelled_server(options(method="ngram", acceptance="0.9")).speculator.coverage_ratio == 1
    given = modelled_server(options(method="ngram", acceptance="0.9", coverage="0.25"))
    assert given.speculator.tokens_per_step(1) == pytest.approx(1 + 0.25 * 0.9)


def test_a_context_moves_the_prompt_and_not_the_answer() -> None:
    """The mean context is the prompt and half of the answer, unless a prompt is given too."""
    traffic = predicted(options(context="3000", output_tokens="200")).traffic
    assert (traffic.prompt_tokens, traffic.output_tokens, traffic.context_tokens) == (2900, 200, 3000)
    traffic = predicted(options(context="3000", input_tokens="10")).traffic
    assert (traffic.prompt_tokens, traffic.context_tokens) == (10, 3000)


def test_combined_bounds_are_for_the_method_they_were_measured_with() -> None:
    """EAGLE on a workload has them; EAGLE-3, whose spans nobody published, does not."""
    assert predicted(options(method="eagle")).bounds[0].combined is not None
    assert predicted(options(method="eagle3")).bounds[0].combined is None


@pytest.mark.parametrize("method", Method)
def test_each_method_takes_its_memory(method: Method) -> None:
    """Lookup takes none; heads and draft models take weights and cache."""
    server = modelled_server(options(method=method.value, target="qwen3-8b"))
    taken = server.memory.plain_tokens - server.memory.speculative_tokens
    assert (taken == 0) == method.looks_up_text
    assert (server.draft is not None) == (method is Method.DRAFT_MODEL)


def test_measured_times_bring_their_levels_and_no_server(tmp_path: Path) -> None:
    """Without a named server nothing of the model's remains; with one its memory and prompts are back."""
    file = tmp_path / "steps.csv"
    file.write_text("concurrency,t_ar_s,t_sd_s\n1,0.007,0.009\n32,0.009,0.016\n")
    found = predicted(options(step_times=str(file)))
    assert [point.concurrency for point in found.points] == [1, 32]
    assert found.points[0].tpot_ar_s == 0.007
    assert (found.setting.target, found.points[0].fits_memory, found.measured) == (None, None, True)
    found = predicted(options(step_times=str(file), gpu="h100"))
    assert found.points[1].tpot_ar_s > 0.009
    assert found.points[1].fits_memory


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"gpu": "h1"}, "--gpu: expected one of a100-40g, a100, h100,.*got 'h1'"),
        ({"target": "gpt-9"}, "--target: expected one of llama-3.1-8b"),
        ({"workload": "poems"}, "--workload: expected one of code-editing, chat"),
        ({"method": "magic"}, "--method: .*'ngram'.*got 'magic'"),
        ({"acceptance": "0.5,0.6"}, "--acceptance: .*do not rise.*0.6 after 0.5 at position 2"),
        ({"acceptance": "1.5"}, "--acceptance: .*between 0 and 1"),
        ({"acceptance": ""}, "--acceptance: expected at least one rate"),
        ({"acceptance": "0.5", "draft_tokens": "2"}, "--acceptance: expected a rate for each of 2 draft tokens, got 1"),
        ({"acceptance_length": "4.5"}, "--acceptance-length: .*from 1 to 4 with 3 draft tokens, got 4.5"),
        ({"acceptance_length": "nan"}, "--acceptance-length: "),
        ({"acceptance_length": "2", "acceptance": "0.5"}, "expected one of --acceptance and --acceptance-length"),
        ({"draft": "qwen3-0.6b"}, "--draft is for --method draft_model"),
        ({"draft_tokens": "0"}, "--draft-tokens: "),
        ({"draft_tokens": "21"}, "--draft-tokens: "),
        ({"coverage": "0"}, "--coverage: "),
        ({"context": "0"}, "--context: "),
        ({"concurrency": "0,4"}, "--concurrency: expected numbers above 0"),
        ({"concurrency": "4,4"}, "--concurrency: a level stands twice"),
        ({"gpus": "0"}, "--gpus: "),
    ],
)
def test_wrong_options_are_named(given: dict[str, str], message: str) -> None:
    """The option, what was expected, and what it held."""
    with pytest.raises(ConfigError, match=message):
        options(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "draft_model", "target": "deepseek-v3"}, "--draft: no small relative of deepseek-v3 is known"),
        ({"step_times": "no/such.csv"}, "--step-times: no/such.csv cannot be read"),
        ({"step_times": "1:7ms"}, "--step-times: expected CONCURRENCY:PLAIN:SPECULATIVE"),
        ({"step_times": "1:7ms:9ms", "concurrency": "2"}, "concurrency 2 lies outside of the measured step times"),
        ({"step_times": "1.5:7ms:9ms"}, "--step-times: expected at least one whole concurrency"),
    ],
)
def test_what_only_the_build_can_tell_is_named(given: dict[str, str], message: str) -> None:
    """Errors name the option that would mend them."""
    with pytest.raises(ConfigError, match=message):
        predicted(options(**given))
