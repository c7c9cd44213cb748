"""Options of the simulated server, and the profile beneath them."""

from pathlib import Path
from typing import Any

import pytest

from loadgen.core.errors import ConfigError
from loadgen.core.simulation.speculator import Method
from loadgen.core.simulation.step_time import StepTime
from loadgen.options.resolve import resolve
from loadgen.options.sim import SimOptions

PROFILE = """\
name: mine
description: one of ours
engine: sglang
model: Qwen/Qwen3-8B
speculation:
  method: draft_model
  draft_tokens: 2
  model: Qwen/Qwen3-0.6B
simulator:
  gpu: a100
  acceptance: [0.8, 0.6]
  max_num_seqs: 32
  fault: ["reset=3@1%"]
"""


def sim_options(environment: dict[str, str] | None = None, config: Path | None = None, **given: Any) -> SimOptions:
    return resolve(SimOptions, given, config=config, environment=environment or {})


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(PROFILE)
    return path


def test_nothing_given_is_a_baseline_on_this_machine() -> None:
    """vLLM's dialect, no speculation, real time, the port that vLLM takes, nothing going wrong."""
    options = sim_options()
    assert (options.host, options.port, options.dialect, options.method) == ("127.0.0.1", 8000, "vllm", None)
    assert (options.speed, options.fault, options.prefix_caching, options.seed) == (1.0, [], True, 0)


def test_none_is_a_method() -> None:
    """By its name, and as YAML's null."""
    assert sim_options(method="none").method is None
    assert sim_options(method=None).method is None
    assert sim_options(method="mtp").method is Method.MTP


def test_values_of_their_own_kind() -> None:
    """Step times, ranges of batch sizes, durations and repeated faults are read from text."""
    options = sim_options(
        method="eagle3",
        draft_tokens_by_batch="1-64:3,65-128:1,129-512:0",
        switch_time="2ms",
        graph_tokens="512",
        graph_miss_time="3ms",
        fault=["reset=3@1%", "restart=30s"],
        prefix_caching=False,
    )
    assert options.draft_tokens_by_batch == ((1, 64, 3), (65, 128, 1), (129, 512, 0))
    assert (options.switch_time, options.graph_miss_time) == (0.002, 0.003)
    assert options.fault == ["reset=3@1%", "restart=30s"]
    assert sim_options({"LOADGEN_FAULT": "reset=3@1%,restart=30s"}).fault == options.fault
    assert not options.prefix_caching


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("8ms", StepTime(fixed_s=0.008, per_token_s=0.0, per_context_token_s=0.0)),
        ("0.008", StepTime(fixed_s=0.008, per_token_s=0.0, per_context_token_s=0.0)),
        ("5.9ms:21us:39.3ns", StepTime(fixed_s=0.0059, per_token_s=21e-6, per_context_token_s=39.3e-9)),
        ("6ms:0:0:1.2ms", StepTime(fixed_s=0.006, per_token_s=0.0, per_context_token_s=0.0, overhead_s=0.0012)),
    ],
)
def test_step_times(text: str, step: StepTime) -> None:
    """One time for all steps, or what a step reads and computes; fractions of a nanosecond count."""
    found = sim_options(step_time=text).step_time
    assert found is not None
    assert (found.fixed_s, found.per_token_s) == pytest.approx((step.fixed_s, step.per_token_s))
    assert (found.per_context_token_s, found.overhead_s) == pytest.approx((step.per_context_token_s, step.overhead_s))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "magic"}, r"--method: expected one of none, ngram, .*suffix; got 'magic'"),
        ({"dialect": "tgi"}, r"--dialect: input should be 'vllm'.*got 'tgi'"),
        ({"port": "70000"}, r"--port: .*less than or equal to 65535"),
        ({"port": "-1"}, r"--port: .*greater than or equal to 0"),
        ({"host": ""}, r"--host: .*at least 1 character"),
        ({"model_name": ""}, r"--model-name: .*at least 1 character"),
        ({"speed": "0"}, r"--speed: .*greater than or equal to 0\.001"),
        ({"speed": "inf"}, r"--speed: .*less than or equal to 1000"),
        ({"speed": "nan"}, r"--speed: "),
        ({"step_time": "fast"}, r"--step-time: expected a time above 0 such as 8ms"),
        ({"step_time": "0"}, r"--step-time: expected a time above 0"),
        ({"step_time": "1ms:2us"}, r"--step-time: expected one time such as 8ms, or FIXED:PER_TOKEN:"),
        ({"acceptance": "0.8"}, r"--acceptance is for a speculative --method; there is none"),
        ({"draft_tokens": "3"}, r"--draft-tokens is for a speculative --method"),
        ({"draft_tokens_by_batch": "1-8:1"}, r"--draft-tokens-by-batch is for a speculative --method"),
        ({"method": "mtp", "draft_tokens_by_batch": "1-8"}, r"--draft-tokens-by-batch: expected FIRST-LAST:TOKENS"),
        ({"method": "mtp", "draft_tokens_by_batch": "2-8:1"}, r"--draft-tokens-by-batch: .*without a gap from 1 on"),
        ({"method": "mtp", "draft_tokens_by_batch": "1-8:4"}, r"--draft-tokens-by-batch: expected 0 to 3 draft tokens"),
        ({"method": "mtp", "acceptance": "0.5,0.6"}, r"--acceptance: expected acceptance rates that do not rise"),
        (
            {"method": "mtp", "acceptance_length": "4.5"},
            r"--acceptance-length: expected an acceptance length from 1 to",
        ),
        ({"method": "mtp", "request_share": "1"}, r"--request-share: .*less than 1"),
        ({"graph_miss_time": "1ms"}, r"--graph-miss-time needs --graph-tokens"),
        ({"kv_blocks": "0"}, r"--kv-blocks: .*greater than 0"),
    ],
)
def test_a_wrong_option_is_named_with_what_was_expected(given: dict[str, Any], message: str) -> None:
    """The error says which option, what it held and what would do."""
    with pytest.raises(ConfigError, match=message):
        sim_options(**given)


def test_a_profile_fills_what_is_left_open(profile: Path) -> None:
    """Dialect, served name, target and draft by their names on Hugging Face, speculation, and the simulator's own."""
    options = sim_options(profile=str(profile))
    assert (options.dialect, options.model_name, options.target) == ("sglang", "Qwen/Qwen3-8B", "qwen3-8b")
    assert (options.method, options.draft_tokens, options.draft) == (Method.DRAFT_MODEL, 2, "qwen3-0.6b")
    assert (options.gpu, options.acceptance, options.max_num_seqs) == ("a100", [0.8, 0.6], 32)
    assert options.fault == ["reset=3@1%"]


def test_a_profile_of_a_real_server_is_imitated_as_it_is_started() -> None:
    """GPUs together, limits of vLLM by the same names, draft lengths by batch."""
    together = sim_options(profile="llama-3.3-70b-eagle3")
    assert (together.gpus, together.target, together.max_model_len) == (4, "llama-3.1-70b", 8192)
    assert (together.max_num_seqs, together.max_num_batched_tokens) == (128, 8192)
    dynamic = sim_options(profile="llama-3.1-8b-eagle3-dynamic")
    assert dynamic.draft_tokens_by_batch == ((1, 16, 3), (17, 64, 1), (65, 128, 0))
    assert sim_options(profile="sglang-llama-3.1-8b-baseline").max_num_seqs == 256


def test_every_other_source_wins_over_the_profile(profile: Path, tmp_path: Path) -> None:
    """File, environment and command line, each over the one before; a length takes the place of rates."""
    config = tmp_path / "sim.yaml"
    config.write_text(f"profile: {profile}\ngpu: l4\nmax-num-seqs: 8\nspeed: 2\n")
    options = sim_options(
        {"LOADGEN_MAX_NUM_SEQS": "16", "LOADGEN_SPEED": "3"}, config, speed="4", acceptance_length="2"
    )
    assert (options.gpu, options.max_num_seqs, options.speed) == ("l4", 16, 4.0)
    assert (options.acceptance, options.acceptance_length) == (None, 2.0)
    assert options.method is Method.DRAFT_MODEL


def test_another_method_leaves_the_profiles_speculation_out_as_a_whole(profile: Path) -> None:
    """Rates of one drafter say nothing about another, and a baseline has none; the server stays the same."""
    plain = sim_options(profile=str(profile), method="none")
    assert (plain.method, plain.draft_tokens, plain.acceptance, plain.draft) == (None, None, None, None)
    other = sim_options(profile=str(profile), method="eagle3")
    assert (other.method, other.draft_tokens, other.acceptance) == (Method.EAGLE3, None, None)
    assert (plain.gpu, other.gpu, plain.max_num_seqs) == ("a100", "a100", 32)
    same = sim_options(profile=str(profile), method="draft_model")
    assert same.acceptance == [0.8, 0.6]


def test_another_target_does_not_keep_the_profiles_name(profile: Path) -> None:
    """A server of another model does not serve under the first one's name, even if that one is unknown here."""
    assert sim_options(profile=str(profile), target="llama-3.1-8b").model_name is None
    profile.write_text(PROFILE.replace("Qwen/Qwen3-8B", "acme/secret"))
    assert sim_options(profile=str(profile), target="llama-3.1-8b").target == "llama-3.1-8b"


@pytest.mark.parametrize(
    ("line", "instead", "message"),
    [
        ("Qwen/Qwen3-8B", "acme/secret", r"mine\.yaml:4: model: the simulator does not know 'acme/secret'; .*target"),
        ("Qwen/Qwen3-0.6B", "acme/tiny", r"mine\.yaml:8: speculation\.model: .*'acme/tiny'; .*simulator\.draft"),
        ("gpu: a100", "gpu: a1000", r"mine\.yaml:10: simulator\.gpu: expected one of a100-40g, .*; got 'a1000'"),
        ("gpu: a100", "gpuu: a100", r"mine\.yaml:10: simulator\.gpuu: the simulator has no such option"),
        ("gpu: a100", "method: mtp", r"mine\.yaml:10: simulator\.method: in a profile this stands under 'speculation'"),
        ("gpu: a100", "profile: x", r"mine\.yaml:10: simulator\.profile: the simulator has no such option"),
        ("max_num_seqs: 32", "max_num_seqs: few", r"mine\.yaml:12: simulator\.max_num_seqs: .*integer.*'few'"),
    ],
)
def test_a_wrong_line_of_a_profile_is_named(profile: Path, line: str, instead: str, message: str) -> None:
    """File, line and field, as for a configuration file."""
    profile.write_text(PROFILE.replace(line, instead))
    with pytest.raises(ConfigError, match=message):
        sim_options(profile=str(profile))


def test_a_name_among_the_simulators_options_does_for_an_unknown_model(profile: Path) -> None:
    """The served name stays the profile's; what is imitated is said beside it."""
    text = PROFILE.replace("Qwen/Qwen3-8B", "acme/secret").replace("gpu: a100", "target: qwen3-32b")
    profile.write_text(text)
    options = sim_options(profile=str(profile))
    assert (options.model_name, options.target) == ("acme/secret", "qwen3-32b")


def test_a_named_draft_model_does_for_an_unknown_one(profile: Path) -> None:
    """In the profile it stands in under the profile's name; on the command line it takes its place."""
    text = PROFILE.replace("Qwen/Qwen3-0.6B", "acme/tiny")
    profile.write_text(text)
    named = sim_options(profile=str(profile), draft="llama-3.2-1b")
    assert (named.draft, named.speculation_config) == ("llama-3.2-1b", {})
    profile.write_text(text.replace("gpu: a100", "draft: llama-3.2-1b"))
    stands_in = sim_options(profile=str(profile))
    assert stands_in.draft == "llama-3.2-1b"
    assert stands_in.speculation_config == {"speculative_draft_model_path": "acme/tiny"}
