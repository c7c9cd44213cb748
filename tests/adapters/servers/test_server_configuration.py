"""What servers tell of their configuration, from the pages that each engine has."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from loadgen.adapters.servers.control import Control
from loadgen.adapters.servers.generic import TargetFacts, probe_target
from loadgen.adapters.servers.kept_page import PAGE_KEPT_BYTES, kept_page
from loadgen.core.request import Endpoint
from loadgen.core.server.configuration import ServerConfiguration, SpeculationConfiguration

GOLDEN = Path(__file__).parents[2] / "golden"
TEXT = "text/plain; version=0.0.4"


def as_json(value: Any, status: int = 200) -> tuple[int, str, bytes]:
    return status, "application/json", json.dumps(value).encode()


def models(owner: str) -> tuple[int, str, bytes]:
    return as_json({"object": "list", "data": [{"id": "m", "object": "model", "owned_by": owner}]})


async def asked(table: dict[str, Any]) -> tuple[TargetFacts, list[tuple[str, str]]]:
    """The facts of a server with these pages, and what it was asked."""
    seen = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        path = request.url.raw_path.decode()
        seen.append((request.method, path))
        status, content_type, body = table.get(path, (404, "text/plain", b""))
        return httpx2.Response(status, headers={"Content-Type": content_type}, content=body)

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer), base_url="http://server") as client:
        return await probe_target(Control(client), endpoint=Endpoint.CHAT), seen


def vllm(info: Any = None, metrics: str = "", **pages: Any) -> dict[str, Any]:
    table: dict[str, Any] = {"/v1/models": models("vllm"), "/metrics": (200, TEXT, metrics.encode()), **pages}
    if info is not None:
        table |= {"/server_info?config_format=json": as_json(info), "/reset_prefix_cache": (405, "text/plain", b"")}
    return table


def recorded(name: str) -> Any:
    return json.loads((GOLDEN / "pages" / f"server_info_{name}.json").read_text())


async def test_a_real_vllm_in_its_development_mode() -> None:
    """Version 0.32 with n-gram drafts: everything, in plain words, and the page itself."""
    facts, seen = await asked(vllm(recorded("ngram")))
    assert facts.configuration == ServerConfiguration(
        speculates=True,
        prefix_caching=True,
        max_num_seqs=16,
        max_num_batched_tokens=2048,
        max_model_len=2048,
        dtype="bfloat16",
        tensor_parallel=1,
        kv_blocks=910,
        kv_block_tokens=128,
        cuda_graph_mode="none",
        async_scheduling=False,
    )
    assert facts.speculation == SpeculationConfiguration(method="ngram", draft_tokens=4, forced=False, lossy=())
    assert facts.capabilities.acceptance is True
    assert facts.cache_reset_path == "/reset_prefix_cache"
    assert ("POST", "/reset_prefix_cache") not in seen, "asking whether it is there resets nothing"
    assert facts.configuration_page is not None
    assert facts.configuration_page["vllm_config"]["cache_config"]["num_gpu_blocks"] == 910


async def test_a_real_vllm_without_drafts() -> None:
    """The same server as a baseline: it says that it does not speculate, which is more than saying nothing."""
    facts, _ = await asked(vllm(recorded("baseline")))
    assert facts.configuration is not None
    assert facts.configuration.speculates is False
    assert facts.speculation is None
    assert facts.capabilities.acceptance is None


@pytest.mark.parametrize(("name", "speculates"), [("ngram", True), ("baseline", False)])
async def test_a_real_vllm_that_shows_its_metrics_alone(name: str, speculates: bool) -> None:
    """Outside the development mode the metrics page tells of the cache, and that drafts are counted."""
    facts, _ = await asked(vllm(metrics=(GOLDEN / "metrics" / f"vllm_0.32_{name}.txt").read_text()))
    assert facts.configuration == ServerConfiguration(
        speculates=speculates, prefix_caching=True, kv_blocks=910, kv_block_tokens=128
    )
    assert facts.speculation == (SpeculationConfiguration() if speculates else None)
    assert (facts.configuration_page, facts.cache_reset_path) == (None, None)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (
            {"rejection_sample_method": "synthetic", "synthetic_acceptance_length": 2.8},
            {"forced": True, "forced_acceptance_length": 2.8, "lossy": ()},
        ),
        (
            {"rejection_sample_method": "synthetic", "synthetic_acceptance_rates": [0.5, 0.25]},
            {"forced": True, "forced_acceptance_length": 1.75, "lossy": ()},
        ),
        ({"rejection_sample_method": "fly"}, {"forced": False, "lossy": ("rejection_sample_method=fly",)}),
        ({"model": "some/head"}, {"draft_model": "some/head", "forced": False, "lossy": ()}),
    ],
)
async def test_how_vllm_verifies(told: dict[str, Any], expected: dict[str, Any]) -> None:
    """Made up, loosely, or exactly; a draft model by its name."""
    config = {"method": "eagle3", "num_speculative_tokens": 3} | told
    facts, _ = await asked(vllm({"vllm_config": {"speculative_config": config}}))
    assert facts.speculation == SpeculationConfiguration(method="eagle3", draft_tokens=3, **expected)


@pytest.mark.parametrize(
    ("compilation", "eager", "expected"),
    [
        ({"cudagraph_mode": 1}, False, "piecewise"),
        ({"cudagraph_mode": [2, 1]}, False, "full_and_piecewise"),
        ({"cudagraph_mode": "FULL_DECODE_ONLY"}, False, "full_decode_only"),
        ({"cudagraph_mode": 2}, True, "none"),
        ({"cudagraph_mode": 77}, False, None),
        ({}, False, None),
    ],
)
async def test_graph_modes_of_vllm(compilation: Any, eager: bool, expected: str | None) -> None:
    """By number, by pair or by name; eager execution has none, and what is not known is not guessed."""
    config = {"model_config": {"enforce_eager": eager}, "compilation_config": compilation}
    facts, _ = await asked(vllm({"vllm_config": config, "vllm_env": {"VLLM_USE_V2_MODEL_RUNNER": "1"}}))
    assert facts.configuration is not None
    assert (facts.configuration.cuda_graph_mode, facts.configuration.runner) == (expected, "v2")


SGLANG = {
    "version": "0.5.23",
    "context_length": 4096,
    "dtype": "bfloat16",
    "quantization": "fp8",
    "tp_size": 2,
    "max_running_requests": None,
    "chunked_prefill_size": 8192,
    "page_size": 16,
    "max_total_num_tokens": 32000,
    "disable_radix_cache": False,
    "disable_cuda_graph": False,
    "disable_overlap_schedule": True,
    "attention_backend": "fa3",
    "api_key": "sk-not-to-be-kept",
    "speculative_algorithm": "EAGLE3",
    "speculative_draft_model_path": "some/head",
    "speculative_num_steps": 3,
    "speculative_eagle_topk": 4,
    "speculative_num_draft_tokens": 16,
    "speculative_accept_threshold_single": 0.9,
    "speculative_accept_threshold_acc": 1.0,
    "internal_states": [{"effective_max_running_requests_per_dp": 48, "avg_spec_accept_length": 2.5}],
}


async def test_sglang() -> None:
    """Its arguments; a tree accepts as many tokens as it is deep; its key and its passing state are not kept."""
    facts, _ = await asked({"/v1/models": models("sglang"), "/server_info": as_json(SGLANG)})
    assert facts.configuration == ServerConfiguration(
        speculates=True,
        prefix_caching=True,
        max_num_seqs=48,
        max_num_batched_tokens=8192,
        max_model_len=4096,
        dtype="bfloat16",
        quantization="fp8",
        tensor_parallel=2,
        kv_blocks=2000,
        kv_block_tokens=16,
        attention_backend="fa3",
        cuda_graph_mode="decode",
        async_scheduling=False,
    )
    assert facts.speculation == SpeculationConfiguration(
        method="EAGLE3",
        draft_tokens=3,
        draft_model="some/head",
        lossy=("speculative_accept_threshold_single=0.9",),
    )
    assert facts.cache_reset_path == "/flush_cache"
    assert facts.configuration_page is not None
    assert facts.configuration_page["api_key"] == "[secret]"
    assert "internal_states" not in facts.configuration_page


async def test_sglang_of_other_kinds() -> None:
    """A baseline, under the page's old name; and lookup, whose drafts are one fewer than the tokens it verifies."""
    baseline = {name: None if name.startswith("speculative") else value for name, value in SGLANG.items()}
    facts, _ = await asked({"/v1/models": models("sglang"), "/get_server_info": as_json(baseline)})
    assert facts.configuration is not None
    assert (facts.configuration.speculates, facts.speculation) == (False, None)
    lookup = SGLANG | {"speculative_algorithm": "NGRAM", "speculative_num_steps": None}
    facts, _ = await asked({"/v1/models": models("sglang"), "/server_info": as_json(lookup)})
    assert facts.speculation is not None
    assert facts.speculation.draft_tokens == 15


async def test_tensorrt_llm() -> None:
    """Info metrics and gauges of a newer version; the limits alone of an older one."""
    labels = {
        "model": 'model="m",dtype="bfloat16",quantization="FP8",max_model_len="8192"',
        "parallel": 'tensor_parallel_size="4"',
        "speculative": 'spec_enabled="true",spec_method="Eagle",spec_num_tokens="5",spec_draft_model="some/head"',
        "kv_cache": 'enable_block_reuse="True",page_size="64"',
    }
    limits = "trtllm_max_batch_size_static 256.0\ntrtllm_kv_cache_max_blocks 1000.0\n"
    infos = "".join(f"trtllm_{name}_config_info{{{pairs}}} 1.0\n" for name, pairs in labels.items())
    table = {"/v1/models": models("tensorrt_llm"), "/metrics": as_json([])}
    facts, _ = await asked(table | {"/prometheus/metrics": (200, TEXT, (infos + limits).encode())})
    assert facts.configuration == ServerConfiguration(
        speculates=True,
        prefix_caching=True,
        max_num_seqs=256,
        max_model_len=8192,
        dtype="bfloat16",
        quantization="FP8",
        tensor_parallel=4,
        kv_blocks=1000,
        kv_block_tokens=64,
    )
    assert facts.speculation == SpeculationConfiguration(method="Eagle", draft_tokens=5, draft_model="some/head")
    assert facts.max_model_len == 8192
    facts, _ = await asked(table | {"/prometheus/metrics": (200, TEXT, limits.encode())})
    assert facts.configuration == ServerConfiguration(max_num_seqs=256, kv_blocks=1000)


async def test_tensorrt_llm_with_its_iterations_alone() -> None:
    """Without a Prometheus page its list of iterations is what can be read."""
    facts, _ = await asked({"/v1/models": models("tensorrt_llm"), "/metrics": as_json([])})
    assert (facts.metrics_path, facts.configuration) == ("/metrics", None)


async def test_llamacpp() -> None:
    """Its slots say that it drafts when its properties do not; of the slots nothing is kept."""
    props = {"total_slots": 4, "build_info": "b9000", "default_generation_settings": {"n_ctx": 4096}}
    slot = {"id": 0, "speculative": True, "prompt": "private", "params": {"speculative.n_max": 3}}
    table = {"/v1/models": models("llamacpp"), "/props": as_json(props), "/slots": as_json([slot])}
    facts, _ = await asked(table)
    assert facts.configuration == ServerConfiguration(speculates=True, max_num_seqs=4, max_model_len=4096)
    assert facts.speculation == SpeculationConfiguration(draft_tokens=3)
    assert "private" not in repr(facts)
    facts, _ = await asked(table | {"/slots": as_json({"error": {}}, 501)})
    assert facts.configuration == ServerConfiguration(max_num_seqs=4, max_model_len=4096)


@pytest.mark.parametrize("broken", ["", "<html>", "[]", '{"vllm_config": "a=1, b=2"}', '{"vllm_config": {"a": [1]}}'])
async def test_a_page_of_no_use_is_no_error(broken: str) -> None:
    """Whatever stands at the page's place: nothing is known then, and nothing made up."""
    facts, _ = await asked(vllm(**{"/server_info?config_format=json": (200, "application/json", broken.encode())}))
    assert facts.speculation is None
    assert facts.configuration in (None, ServerConfiguration(), ServerConfiguration(speculates=False))


def test_a_pages_own_secrets_are_not_kept() -> None:
    """Keys, tokens and passwords by their names, user info in addresses; not a model's words."""
    page = {
        "hf_token": "hf_abc",
        "VLLM_API_KEY": "k",
        "ssl_keyfile_password": "p",
        "nested": [{"admin_api_key": ["one", "two"], "proxy": "http://me:word@host/x"}],
        "eos_token": "</s>",
        "max_num_batched_tokens": 8192,
        "api_key": None,
    }
    assert kept_page(page) == {
        "hf_token": "[secret]",
        "VLLM_API_KEY": "[secret]",
        "ssl_keyfile_password": "[secret]",
        "nested": [{"admin_api_key": ["[secret]", "[secret]"], "proxy": "http://host/x"}],
        "eos_token": "</s>",
        "max_num_batched_tokens": 8192,
        "api_key": None,
    }


def test_a_page_without_end_is_not_kept() -> None:
    """What is larger than any configuration."""
    assert kept_page({"a": "x" * PAGE_KEPT_BYTES}) is None
    assert kept_page(None) is None
