"""Whether two servers may be compared: on pages that real servers gave, and on settings made up."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loadgen.adapters.servers.vllm_facts import speculation_of
from loadgen.core.comparison.footing import Served, Standing, footing
from loadgen.core.experiment.plan import PlannedArm, Role
from loadgen.core.server.configuration import ServerConfiguration, SpeculationConfiguration

PAGES = Path(__file__).parents[2] / "golden" / "pages"
BASELINE = PlannedArm(name="baseline", label="Baseline", role=Role.BASELINE, of="baseline")
NGRAM = PlannedArm(name="ngram", label="n-gram", role=Role.COMPARED, of="ngram", method="ngram", draft_tokens=4)
WHOLE = ServerConfiguration(
    speculates=False,
    prefix_caching=True,
    max_num_seqs=8,
    max_num_batched_tokens=2048,
    max_model_len=4096,
    dtype="bfloat16",
    quantization="fp8",
    tensor_parallel=1,
    kv_blocks=1000,
    kv_block_tokens=16,
    attention_backend="FLASH_ATTN",
    cuda_graph_mode="full",
    async_scheduling=True,
    runner="v2",
)
DRAFTS = SpeculationConfiguration(method="ngram", draft_tokens=4, forced=False)


def recorded(name: str) -> Served:
    """A real server's own page, without the settings that are read out of it."""
    return Served(engine="vllm", model="m", page=json.loads((PAGES / f"server_info_{name}.json").read_text()))


def plain(**changes: Any) -> Served:
    """A server without speculation that tells everything."""
    configuration = replace(WHOLE, **{name: value for name, value in changes.items() if hasattr(WHOLE, name)})
    rest = {name: value for name, value in changes.items() if not hasattr(WHOLE, name)}
    return Served(**{"engine": "vllm", "engine_version": "1", "model": "m", "configuration": configuration} | rest)


def drafting(**changes: Any) -> Served:
    return plain(**{"speculates": True, "speculation": DRAFTS} | changes)


@pytest.mark.parametrize("name", ["ngram", "eagle"])
def test_a_real_server_that_speculates_is_equal_to_one_that_does_not(name: str) -> None:
    """Of all that they tell, what is not speculation follows from it or is of that start, each with its reason."""
    found = footing(recorded("baseline"), recorded(name), replace(NGRAM, method=name))
    assert found.objections == ()
    assert [each.setting for each in found.of(Standing.START)] == ["vllm_config.instance_id"]
    settled = {each.setting.rpartition(".")[2] for each in found.of(Standing.CONSEQUENCE)}
    assert {"max_num_scheduled_tokens", "per_request_spec_decode_metrics"} <= settled
    assert ("disable_nccl_for_dp_synchronization" in settled) == (name == "ngram")
    assert ("num_gpu_blocks" in settled) == (name == "eagle")
    assert all(each.reason for each in found.differences)
    assert any(each.setting.startswith("vllm_config.speculative_config.") for each in found.of(Standing.COMPARED))


def test_the_same_server_again_may_not_differ() -> None:
    """What would follow from speculation is no excuse for another start of the baseline."""
    again = replace(BASELINE, role=Role.AGAIN)
    settings = {each.setting for each in footing(recorded("baseline"), recorded("ngram"), again).of(Standing.UNEQUAL)}
    assert "vllm_config.scheduler_config.max_num_scheduled_tokens" in settings
    assert "vllm_config.speculative_config.num_speculative_tokens" in settings
    assert footing(recorded("baseline"), recorded("baseline"), again).differences == ()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("engine", "sglang"),
        ("engine_version", "2"),
        ("model", "another"),
        ("prefix_caching", False),
        ("max_num_seqs", 4),
        ("max_num_batched_tokens", 4096),
        ("max_model_len", 8192),
        ("dtype", "float16"),
        ("quantization", "awq"),
        ("tensor_parallel", 2),
        ("kv_block_tokens", 32),
        ("attention_backend", "FLASHINFER"),
        ("cuda_graph_mode", "piecewise"),
        ("runner", "v1"),
    ],
)
def test_what_makes_servers_unequal(setting: str, value: Any) -> None:
    """Whatever bears on speed and does not follow from speculation; it is said with both values."""
    found = footing(plain(), drafting(**{setting: value}), NGRAM)
    (difference,) = found.of(Standing.UNEQUAL)
    assert (difference.setting, difference.arm, difference.reason) == (setting, value, None)
    assert found.objections == (f"{setting} is {value}, at the baseline {difference.baseline}",)


@pytest.mark.parametrize(
    ("setting", "value"), [("kv_blocks", 900), ("async_scheduling", False), ("max_model_len", 2048)]
)
def test_what_follows_from_speculation(setting: str, value: Any) -> None:
    """A smaller cache, scheduling ahead switched off, a shorter context: none of it is held against an arm."""
    found = footing(plain(), drafting(**{setting: value}), NGRAM)
    assert found.objections == ()
    assert [each.setting for each in found.of(Standing.CONSEQUENCE)] == [setting]
    again = footing(plain(), plain(**{setting: value}), BASELINE)
    assert [each.setting for each in again.of(Standing.UNEQUAL)] == [setting]


@pytest.mark.parametrize(
    ("setting", "value"), [("kv_blocks", 600), ("async_scheduling", False), ("max_model_len", 2048)]
)
def test_nothing_follows_from_a_speculation_that_is_not_there(setting: str, value: Any) -> None:
    """An arm without drafts, beside a baseline without, has no excuse to differ; nor has one whose drafts are those of
    the baseline, as far as both tell and the experiment says."""
    other = replace(NGRAM, name="other", method=None, draft_tokens=None)
    (found,) = footing(plain(), plain(**{setting: value}), other).differences
    assert (found.setting, found.standing) == (setting, Standing.UNEQUAL)
    (found,) = footing(drafting(), drafting(**{setting: value}), other).differences
    assert found.standing is Standing.UNEQUAL
    against_drafts = footing(drafting(), plain(**{setting: value}), other)
    assert {each.setting: each.standing for each in against_drafts.differences}[setting] is Standing.CONSEQUENCE


def test_it_follows_in_one_direction_only() -> None:
    """Scheduling ahead is never switched on for speculation."""
    found = footing(plain(async_scheduling=False), drafting(), NGRAM)
    assert [each.setting for each in found.of(Standing.UNEQUAL)] == ["async_scheduling"]


def test_names_and_addresses_of_a_start_are_its_own() -> None:
    """vLLM draws the name of a buffer at each start; where it listens is no matter either. What it loads is."""
    names = ("VLLM_OBJECT_STORAGE_SHM_BUFFER_NAME", "VLLM_NIXL_SIDE_CHANNEL_PORT", "VLLM_HOST_IP", "VLLM_NCCL_SO_PATH")
    baseline, again = (plain(page={"vllm_env": dict.fromkeys(names, value)}) for value in ("a", "b"))
    found = footing(baseline, again, BASELINE)
    assert [each.setting for each in found.of(Standing.START)] == [f"vllm_env.{name}" for name in names[:3]]
    assert [each.setting for each in found.of(Standing.UNEQUAL)] == ["vllm_env.VLLM_NCCL_SO_PATH"]


@pytest.mark.parametrize(("kv_blocks", "standing"), [(985, Standing.START), (975, Standing.UNEQUAL)])
def test_a_cache_is_measured_anew_at_each_start(kv_blocks: int, standing: Standing) -> None:
    """A little more or less of it is no difference between two starts of the baseline; 2.5 % is."""
    (difference,) = footing(plain(), plain(kv_blocks=kv_blocks), BASELINE).differences
    assert difference.standing is standing


def test_what_a_server_does_not_tell_is_not_verified() -> None:
    """It is named, and neither equal nor a difference; nothing at all is told by a server of no known engine."""
    found = footing(plain(dtype=None), drafting(runner=None), NGRAM)
    assert (found.unverified, found.objections) == (("dtype", "runner"), ())
    nothing = footing(Served(), Served(), BASELINE)
    assert nothing.unverified[0] == "engine"
    assert len(nothing.unverified) == 13
    assert nothing.differences == ()


def test_no_quantization_on_a_page_of_everything_is_none() -> None:
    """Not something that was left out."""
    page: dict[str, Any] = {"quantization": None}
    baseline, arm = plain(quantization=None, page=page), drafting(page=page)
    found = footing(baseline, arm, NGRAM)
    assert found.unverified == ()
    assert [each.setting for each in found.of(Standing.UNEQUAL)] == ["quantization"]


def test_other_settings_of_other_engines_are_not_compared() -> None:
    """Their pages have nothing in common; that the engines differ is enough."""
    found = footing(plain(page={"a": 1}), drafting(engine="sglang", page={"b": 2}), NGRAM)
    assert [each.setting for each in found.of(Standing.UNEQUAL)] == ["engine"]
    assert [
        each.setting
        for each in footing(plain(page={"a": {"b": 1}}), drafting(page={"a": {}}), NGRAM).of(Standing.UNEQUAL)
    ] == ["a.b"]


@pytest.mark.parametrize(
    ("server", "arm", "said"),
    [
        (drafting(), BASELINE, "speculates, of which the experiment says nothing"),
        (plain(), NGRAM, "does not speculate, and the experiment says that it does, by ngram"),
        (drafting(speculation=replace(DRAFTS, draft_tokens=5)), NGRAM, "drafts 5 tokens, and the experiment says 4"),
        (drafting(speculation=replace(DRAFTS, forced=True)), NGRAM, "is forced, of which the experiment says nothing"),
        (drafting(), replace(NGRAM, forced_length=5), "is not forced, and the experiment says that it is"),
        (
            drafting(speculation=replace(DRAFTS, forced=True, forced_acceptance_length=2.5)),
            replace(NGRAM, forced_length=5),
            "is forced to 2.5 tokens a step, and the experiment says 5",
        ),
    ],
)
def test_a_server_that_is_not_what_it_is_taken_for(server: Served, arm: PlannedArm, said: str) -> None:
    """It is an objection even where it equals the baseline's."""
    found = footing(server, server, arm)
    (surprise,) = found.surprises
    assert surprise.endswith(said)
    assert found.objections[0] == surprise


def test_a_forced_server_that_says_so_is_what_it_is_taken_for() -> None:
    """As vLLM tells it."""
    told = speculation_of(
        {"method": "ngram", "num_speculative_tokens": 4, "rejection_sample_method": "synthetic"}
        | {"synthetic_acceptance_length": 5}
    )
    assert footing(plain(), drafting(speculation=told), replace(NGRAM, forced_length=5)).objections == ()
