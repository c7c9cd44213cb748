"""What is wrong with profiles that can be read."""

from pathlib import Path

import pytest

from loadgen.adapters.profiles.capabilities import capabilities
from loadgen.adapters.profiles.check import differences, objections
from loadgen.adapters.profiles.check_vllm import version_of
from loadgen.adapters.profiles.files import ProfileFile, load_profile

FOLDER = Path(__file__).parents[3] / "server_profiles"
OURS = [load_profile(path) for path in sorted(FOLDER.glob("*.yaml"))]

WHOLE = """\
name: mine
description: one of ours
engine: vllm
image: vllm/vllm-openai:v0.33.0
model: acme/llm
arguments:
  max-model-len: 8192
  max-num-seqs: 128
  max-num-batched-tokens: 8192
  attention-backend: FLASH_ATTN
environment:
  VLLM_USE_V2_MODEL_RUNNER: 1
"""
KEY = "enforce_eager: true"
DRAFTING = """\
speculation:
  method: eagle3
  draft_tokens: 3
  model: acme/head
  config: {enforce_eager: true}
"""


def written(folder: Path, text: str, name: str = "mine") -> ProfileFile:
    path = folder / f"{name}.yaml"
    path.write_text(text.replace("name: mine", f"name: {name}"))
    return load_profile(path)


def texts(found: ProfileFile, *others: ProfileFile, fatal: bool = True) -> list[str]:
    """Place and words of objections, without the folder."""
    folder = f"{found.file.path.parent}/"
    return [
        f"{each.where}: {each.text}".replace(folder, "") for each in objections(found, others) if each.fatal is fatal
    ]


@pytest.mark.parametrize("found", OURS, ids=lambda found: found.profile.name)
def test_nothing_is_wrong_with_ours(found: ProfileFile) -> None:
    """Not even in passing; an arm needs no other profile to be right."""
    assert objections(found, OURS) == ()
    assert found.baseline is None or objections(found) == ()


@pytest.mark.parametrize(
    ("line", "instead", "objection"),
    [
        # of a version
        ("v0.33.0", "v0.9.0", None),
        ("v0.33.0", "v0.8.5", "mine.yaml:14: speculation.method: vLLM 0.8.5 does not know eagle3; it takes 0.9"),
        # of places
        ("max-model-len", "port: 1\n  max-model-len", "mine.yaml:7: arguments.port: this stands under 'port'"),
        (
            "max-model-len",
            "tensor-parallel-size: 2\n  max-model-len",
            "mine.yaml:7: arguments.tensor-parallel-size: this stands under 'gpus'",
        ),
        (
            "max-model-len",
            "speculative-config: {}\n  max-model-len",
            "mine.yaml:7: arguments.speculative-config: speculation stands under 'speculation'",
        ),
        (KEY, "num_speculative_tokens: 5", "num_speculative_tokens: this stands under 'speculation.draft_tokens'"),
        # of options
        (
            "max-num-seqs",
            "max-num-seq",
            "mine.yaml:8: arguments.max-num-seq: vLLM 0.32 has no such option; did you mean max-num-seqs?",
        ),
        ("v0.33.0\nmodel: acme/llm\narguments:", "v0.32.1\nmodel: acme/llm\narguments:\n  quux: 1", "no such option"),
        ("arguments:", "arguments:\n  quux: 1", None),
        ("v0.33.0\nmodel: acme/llm\narguments:", "v0.32.1\nmodel: acme/llm\narguments:\n  seed: false", "no --no-seed"),
        # of keys
        (KEY, "enforce_eagre: true", "config.enforce_eagre: vLLM knows no such key; did you mean enforce_eager?"),
        (KEY, "quux: 1", "config.quux: vLLM knows no such key"),
        (
            KEY,
            "disable_by_batch_size: 8",
            "config.disable_by_batch_size: gone from vLLM; speculation.draft_tokens_by_batch",
        ),
        (KEY, "tensor_parallel_size: 1", "config.tensor_parallel_size: vLLM calls it draft_tensor_parallel_size"),
        (
            KEY,
            "draft_tensor_parallel_size: 2",
            "config.draft_tensor_parallel_size: expected 1 or as many as the server has, 1",
        ),
        (KEY + "}\n", "draft_tensor_parallel_size: 2}\ngpus: 2\n", None),
        # of what is measured
        (KEY, "rejection_sample_method: fly", "config.rejection_sample_method: lossy"),
        (KEY, "rejection_sample_method: block", None),
        (KEY, "rejection_sample_method: synthetic", "config.rejection_sample_method: acceptance is forced"),
        (KEY, "synthetic_acceptance_length: 2", "config.synthetic_acceptance_length: acceptance is forced"),
        # of equal footing
        (
            "  VLLM_USE_V2_MODEL_RUNNER: 1",
            "  A: 1",
            "mine.yaml:11: environment: expected VLLM_USE_V2_MODEL_RUNNER, 0 or 1",
        ),
        (KEY, "parallel_drafting: true", "config.parallel_drafting: this takes VLLM_USE_V2_MODEL_RUNNER: 0"),
        (KEY, "xpress_topc: 4", None),
        ("RUNNER: 1", "RUNNER: 0", None),
        (
            "max-num-batched-tokens: 8192",
            "max-num-batched-tokens: 511",
            "mine.yaml:9: arguments.max-num-batched-tokens: a step of 128 requests with 3 drafts takes 512 tokens",
        ),
        ("max-num-batched-tokens: 8192", "max-num-batched-tokens: 512", None),
        (
            "max-model-len: 8192",
            "enable-trace-replay: true",
            "mine.yaml:7: arguments.enable-trace-replay: vLLM does not replay",
        ),
    ],
)
def test_what_is_wrong_with_a_drafter(tmp_path: Path, line: str, instead: str, objection: str | None) -> None:
    """Said once, where it stands, and only then."""
    text = WHOLE + DRAFTING
    assert line in text
    found = texts(written(tmp_path, text.replace(line, instead)))
    assert len(found) == (objection is not None)
    if objection is not None:
        assert objection in found[0]


@pytest.mark.parametrize(
    ("line", "instead", "objection"),
    [
        ("RUNNER: 0", "RUNNER: 1", "suffix decoding takes the first model runner"),
        ("packages: [arctic-inference==0.1.1]\n", "", "suffix decoding takes the package arctic-inference"),
        ("  async-scheduling: false\n", "", "on the first model runner suffix turns asynchronous scheduling off"),
        ("method: suffix", "method: ngram", None),
        (
            "  draft_tokens: 3",
            "  draft_tokens: 3\n  draft_tokens_by_batch: [[1, 128, 3]]",
            "with suffix decoding vLLM ignores this",
        ),
    ],
)
def test_suffix_decoding_takes_the_first_runner(tmp_path: Path, line: str, instead: str, objection: str | None) -> None:
    """With a package, without asynchronous scheduling."""
    text = WHOLE.replace("RUNNER: 1", "RUNNER: 0").replace(
        "  max-num-seqs", "  async-scheduling: false\n  max-num-seqs"
    )
    text = text.replace("model: acme", "packages: [arctic-inference==0.1.1]\nmodel: acme")
    text += "speculation:\n  method: suffix\n  draft_tokens: 3\n  config: {suffix_decoding_max_cached_requests: 0}\n"
    assert texts(written(tmp_path, text)) == []
    assert line in text
    if objection is None:
        text = text.replace("  config: {suffix_decoding_max_cached_requests: 0}\n", "")
    found = texts(written(tmp_path, text.replace(line, instead)))
    assert len(found) == (objection is not None)
    assert objection is None or objection in found[0]


def test_draft_lengths_by_batch_mean_nothing_under_data_parallelism(tmp_path: Path) -> None:
    """Where they end before the server does it is only remarked: vLLM goes on with the last."""
    text = WHOLE + DRAFTING + "  draft_tokens_by_batch: [[1, 64, 3], [65, 127, 0]]\n"
    found, baseline = written(tmp_path, text), written(tmp_path, WHOLE, "base")
    assert texts(found, baseline) == []
    (remark,) = texts(found, baseline, fatal=False)
    assert "ends at 127, and the server takes 128 (max-num-seqs)" in remark
    assert texts(written(tmp_path, text.replace("127", "128")), baseline, fatal=False) == []
    (copies,) = texts(written(tmp_path, text.replace("max-num-seqs: 128", "data-parallel-size: 2")))
    assert "under data parallelism vLLM ignores this" in copies


@pytest.mark.parametrize(
    ("version", "runner", "objection"),
    [("0.33.0", 1, None), ("0.33.0", 0, "on the first model runner"), ("0.32.0", 1, "on any model runner")],
)
def test_looking_up_text_may_cost_asynchronous_scheduling(
    tmp_path: Path, version: str, runner: int, objection: str | None
) -> None:
    """Which the baseline keeps, unless it is turned off for both."""
    text = WHOLE.replace("0.33.0", version).replace("RUNNER: 1", f"RUNNER: {runner}")
    text += "speculation: {method: ngram, draft_tokens: 3}\n"
    found = texts(written(tmp_path, text))
    assert len(found) == (objection is not None)
    assert objection is None or f"{objection} ngram turns asynchronous scheduling off" in found[0]
    assert texts(written(tmp_path, text.replace("max-num-seqs", "async-scheduling: false\n  max-num-seqs"))) == []


@pytest.mark.parametrize(
    ("line", "instead", "remark"),
    [
        ("  max-model-len: 8192\n", "", "mine.yaml:6: arguments: max-model-len is left open"),
        ("  attention-backend: FLASH_ATTN\n", "", "mine.yaml:6: arguments: attention-backend is left open"),
        ("v0.33.0", "mine", "mine.yaml:4: image: the tag of vllm/vllm-openai:mine names no version"),
    ],
)
def test_what_is_only_remarked(tmp_path: Path, line: str, instead: str, remark: str) -> None:
    """It may be right, and then nothing is wrong."""
    text = (WHOLE + DRAFTING).replace(line, instead)
    baseline = written(tmp_path, WHOLE.replace(line, instead), "base")
    found = written(tmp_path, text)
    assert texts(found, baseline) == []
    assert any(each.startswith(remark) for each in texts(found, baseline, fatal=False))


def test_a_baseline_cannot_tell_of_drafts(tmp_path: Path) -> None:
    """vLLM does not start with an option for what it does not do."""
    told = WHOLE.replace("max-model-len", "per-request-spec-decode-metrics: summary\n  max-model-len")
    (objection,) = texts(written(tmp_path, told))
    assert objection.startswith("mine.yaml:7: arguments.per-request-spec-decode-metrics: vLLM refuses this")
    assert texts(written(tmp_path, told + DRAFTING)) == []


@pytest.mark.parametrize(
    ("line", "instead", "unlike"),
    [
        ("", "", None),
        ("max-num-seqs: 128", "max-num-seqs: 64", "--max-num-seqs 64 and 128"),
        ("v0.33.0", "v0.32.0", "image vllm/vllm-openai:v0.32.0 and vllm/vllm-openai:v0.33.0"),
        ("RUNNER: 1", "RUNNER: 0", "VLLM_USE_V2_MODEL_RUNNER 0 and 1"),
        ("model: acme/llm", "model: acme/llm\nshared_memory: 8g", "shared_memory 8g and none"),
        ("model: acme/llm", "model: acme/llm\ngpus: 2", "gpus 2 and 1"),
        ("model: acme/llm", "model: acme/llm\nweights: acme/llm-fp8", "weights acme/llm-fp8 and none"),
        ("  attention-backend: FLASH_ATTN\n", "", "--attention-backend none and FLASH_ATTN"),
    ],
)
def test_a_profile_for_itself_has_an_equal_without_speculation(
    tmp_path: Path, line: str, instead: str, unlike: str | None
) -> None:
    """Among all of its engine and model; in what the nearest one differs is told, and how to keep them equal."""
    baseline = written(tmp_path, WHOLE, "base")
    far = written(tmp_path, WHOLE.replace("8192", "1024").replace("max-num-seqs: 128", "max-num-seqs: 1"), "far")
    found = written(tmp_path, (WHOLE + DRAFTING).replace(line, instead) if line else WHOLE + DRAFTING)
    told = texts(found, far, baseline)
    assert len(told) == (unlike is not None)
    if unlike is not None:
        assert told[0].startswith(f"mine.yaml:1: name: differs from base in more than speculation: {unlike}.")
        assert "`baseline: base`" in told[0]


def test_without_an_equal_it_is_remarked(tmp_path: Path) -> None:
    """There is nothing to compare it with."""
    found = written(tmp_path, WHOLE + DRAFTING)
    other = written(tmp_path, WHOLE.replace("acme/llm", "acme/other"), "other")
    simulated = written(tmp_path, WHOLE.replace("image: vllm/vllm-openai:v0.33.0\n", ""), "simulated")
    assert texts(found, other, simulated) == []
    assert "nothing to compare it with" in texts(found, other, simulated, fatal=False)[0]


def test_servers_that_differ_say_in_what() -> None:
    """The two runners of one model; nothing for an arm and its baseline."""
    by_name = {found.profile.name: found.profile for found in OURS}
    v1, v2 = by_name["llama-3.1-8b-runner-v1-baseline"], by_name["llama-3.1-8b-baseline"]
    assert differences(by_name["llama-3.1-8b-suffix"], v1) == ()
    assert differences(v1, v2) == (
        "packages ['arctic-inference==0.1.1'] and none",
        "VLLM_USE_V2_MODEL_RUNNER 0 and 1",
        "--async-scheduling False and none",
    )


@pytest.mark.parametrize(
    ("config", "objection"),
    [
        ("{speculative_accept_threshold_single: 0.9}", "lossy"),
        ("{speculative_accept_threshold_single: 1}", None),
    ],
)
def test_sglang_may_be_lossy(tmp_path: Path, config: str, objection: str | None) -> None:
    """Below a threshold of 1."""
    base = "name: mine\ndescription: d\nengine: sglang\nimage: lmsysorg/sglang:v0.5.23\nmodel: acme/llm\n"
    text = base + f"speculation: {{method: mtp, draft_tokens: 1, config: {config}}}\n"
    found = texts(written(tmp_path, text))
    assert len(found) == (objection is not None)
    assert objection is None or objection in found[0]


@pytest.mark.parametrize("version", ["0.32.0", "0.33.0"])
def test_a_key_may_be_newer_than_the_version(tmp_path: Path, version: str) -> None:
    """As methods may."""
    text = (WHOLE + DRAFTING).replace(KEY, "draft_lm_head_quantization: fp8").replace("0.33.0", version)
    assert ["vLLM 0.32.0 has no such key; it takes 0.33" in each for each in texts(written(tmp_path, text))] == (
        [True] if version == "0.32.0" else []
    )


@pytest.mark.parametrize(("key", "objections"), [("draft_max", 1), ("spec_draft_p_min", 0)])
def test_options_that_llamacpp_gave_up(tmp_path: Path, key: str, objections: int) -> None:
    """Before it renamed them."""
    base = "name: mine\ndescription: d\nengine: llamacpp\nimage: a/llama.cpp:server-b1\nmodel: acme/llm\n"
    text = base + f"speculation: {{method: draft_model, model: d, draft_tokens: 1, config: {{{key}: 1}}}}\n"
    assert len(texts(written(tmp_path, text))) == objections


def test_a_version_is_read_from_a_tag(tmp_path: Path) -> None:
    """With a platform behind it; a digest changes nothing."""
    for tag, version in (("v0.33.0-x86_64", (0, 33, 0)), ("v0.33.0@sha256:abc", (0, 33, 0)), ("mine", None)):
        assert version_of(written(tmp_path, WHOLE.replace("v0.33.0", tag)).profile) == version


def test_what_a_server_can_do_follows_from_how_it_is_started() -> None:
    """Pages of vLLM's development mode, counters of drafts where there are any."""
    by_name = {found.profile.name: capabilities(found.profile) for found in OURS}
    assert by_name["llama-3.1-8b-baseline"] == ("token_ids", "cache_reset", "cache_salt", "configuration")
    assert set(by_name["llama-3.1-8b-eagle3"]) - set(by_name["llama-3.1-8b-baseline"]) == {
        "speculation_counters",
        "forced_acceptance",
    }
    assert "speculation_per_request" in by_name["sglang-llama-3.1-8b-eagle3"]
    assert by_name["llamacpp-qwen3-8b-baseline"] == ()
