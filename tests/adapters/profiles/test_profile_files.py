"""Server profiles: reading them, and what a wrong one is told."""

from pathlib import Path

import pytest

from loadgen.adapters.profiles.files import find_profile, load_profile, profile_paths, search_path
from loadgen.adapters.profiles.model import DraftMethod
from loadgen.core.errors import ConfigError

OURS = sorted((Path(__file__).parents[3] / "server_profiles").glob("*.yaml"))
WHOLE = """\
name: mine
description: one of ours
engine: vllm
model: meta-llama/Llama-3.1-8B-Instruct
speculation:
  method: ngram
  draft_tokens: 5
  config: {prompt_lookup_max: 7}
simulator:
  gpu: h100
"""


def profile_of(text: str, folder: Path) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text)
    return path


def test_a_whole_profile(tmp_path: Path) -> None:
    """Every section; the engine's own keys are kept as they are."""
    found = load_profile(profile_of(WHOLE, tmp_path))
    assert found.profile.engine == "vllm"
    assert found.profile.speculation is not None
    assert (found.profile.speculation.method, found.profile.speculation.draft_tokens) == (DraftMethod.NGRAM, 5)
    assert found.profile.speculation.config == {"prompt_lookup_max": 7}
    assert found.profile.simulator == {"gpu": "h100"}
    assert found.file.where("simulator", "gpu") == f"{tmp_path}/mine.yaml:10: simulator.gpu"


def test_a_baseline_has_no_speculation(tmp_path: Path) -> None:
    """The section is left out, and so may be the simulator's."""
    profile = load_profile(profile_of("".join(WHOLE.splitlines(keepends=True)[:4]), tmp_path)).profile
    assert (profile.speculation, profile.simulator, profile.method_name) == (None, {}, "none")


@pytest.mark.parametrize(
    ("line", "instead", "message"),
    [
        ("engine: vllm", "engine: tgi", r"mine\.yaml:3: engine: input should be 'vllm', 'sglang', .*, got 'tgi'"),
        ("engine: vllm\n", "", r"mine\.yaml:1: engine: this field is needed"),
        ("  draft_tokens: 5", "  draft_tokens: 0", r"mine\.yaml:7: speculation\.draft_tokens: .*greater than 0, got 0"),
        ("  draft_tokens: 5\n", "", r"mine\.yaml:5: speculation\.draft_tokens: this field is needed"),
        ("  method: ngram", "  metod: ngram", r"mine\.yaml:6: speculation\.metod: no such field; did you mean method"),
        ("  method: ngram", "  method: magic", r"mine\.yaml:6: speculation\.method: input should be 'ngram'.*'magic'"),
        ("simulator:", "simulation:", r"mine\.yaml:9: simulation: no such field; did you mean simulator"),
        ("engine: vllm", "engine: vllm\nquux: 1", r"mine\.yaml:4: quux: no such field; expected one of name, desc"),
        ("name: mine", "name: mine-", r"mine\.yaml:1: name: expected at most 63 small letters, .*; got 'mine-'"),
        ("name: mine", "name: yours", r"mine\.yaml:1: name: expected the name of the file, 'mine', got 'yours'"),
        ("model: meta", "name: mine\nmodel: meta", r"mine\.yaml:4: name stands twice, first in line 1"),
        ("  gpu: h100", "  gpu: h100\n  gpu: l4", r"mine\.yaml:11: simulator\.gpu stands twice, first in line 10"),
        ("  gpu: h100", f"  gpu: {'[' * 5000}", "nested too deeply to be read"),
        ("  gpu: h100", "  gpu: [h100", r"mine\.yaml:11: not YAML"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(tmp_path: Path, line: str, instead: str, message: str) -> None:
    """File, line, field, and what was expected there."""
    assert line in WHOLE
    with pytest.raises(ConfigError, match=message):
        load_profile(profile_of(WHOLE.replace(line, instead), tmp_path))


def test_a_profile_that_is_not_there(tmp_path: Path) -> None:
    """The file is named, with the reason; an empty one lacks its fields."""
    with pytest.raises(ConfigError, match=r"mine\.yaml: cannot be read: No such file"):
        load_profile(tmp_path / "mine.yaml")
    with pytest.raises(ConfigError, match=r"mine\.yaml:1: name: this field is needed\n.*:1: description"):
        load_profile(profile_of("", tmp_path))


def test_an_alias_is_read_and_one_of_itself_refused(tmp_path: Path) -> None:
    """What is written once may be meant twice; a list that holds itself has no end."""
    aliased = WHOLE.replace("  gpu: h100", "  gpu: &gpu h100\n  fault: [*gpu]")
    assert load_profile(profile_of(aliased, tmp_path)).profile.simulator["fault"] == ["h100"]
    endless = WHOLE.replace("  gpu: h100", "  fault: &all [*all]")
    with pytest.raises(ConfigError, match=r"mine\.yaml:10: an alias stands for what it is in"):
        load_profile(profile_of(endless, tmp_path))


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_ours_can_be_read(path: Path) -> None:
    """Each profile that comes with the project."""
    assert load_profile(path).profile.name == path.stem


def test_there_are_ours() -> None:
    """Simulated: a baseline and each way of drafting. For GPUs: what a comparison of each model takes."""
    names = {path.stem for path in OURS}
    assert names >= {f"sim-{method}" for method in ("baseline", "ngram", "draft-model", "eagle3", "mtp", "suffix")}
    for model in ("llama-3.1-8b", "qwen3-8b"):
        arms = ("baseline", "ngram-k3", "ngram-k5", "suffix", "draft-model", "eagle3", "eagle3-dynamic")
        assert names >= {f"{model}-{arm}" for arm in arms}
    assert "llama-3.1-8b-eagle" in names
    for family in ("qwen3.5-9b", "llama-3.3-70b", "sglang-llama-3.1-8b", "llamacpp-qwen3-8b", "qwen3-0.6b-cpu"):
        of_family = [path for path in OURS if path.stem.startswith(f"{family}-")]
        assert {load_profile(path).profile.speculation is None for path in of_family} == {True, False}


ARM = """\
name: arm
description: the same, speculating
baseline: mine
speculation:
  method: ngram
  draft_tokens: 3
simulator:
  gpu: l4
"""
BASELINE = """\
name: mine
description: one of ours
engine: vllm
image: vllm/vllm-openai:v0.33.0
model: meta-llama/Llama-3.1-8B-Instruct
arguments:
  max-model-len: 8192
environment:
  HF_TOKEN: ${HF_TOKEN:-}
simulator:
  gpu: h100
  workload: chat
"""


def arm_of(folder: Path, text: str = ARM, *, baseline: str | None = BASELINE) -> Path:
    if baseline is not None:
        (folder / "mine.yaml").write_text(baseline)
    (folder / "arm.yaml").write_text(text)
    return folder / "arm.yaml"


def test_an_arm_is_its_baseline_and_speculates(tmp_path: Path) -> None:
    """Everything else is the baseline's; the simulator's options may be added to."""
    found = load_profile(arm_of(tmp_path))
    baseline = load_profile(tmp_path / "mine.yaml").profile
    own = {"name", "description", "speculation", "simulator"}
    assert found.baseline == "mine"
    assert found.profile.model_dump(exclude=own) == baseline.model_dump(exclude=own)
    assert found.profile.simulator == {"gpu": "l4", "workload": "chat"}
    assert found.profile.method_name == "ngram"


def test_an_arm_of_ones_own_may_name_one_of_our_baselines(tmp_path: Path) -> None:
    """A few lines are enough for another draft length; a profile beside it comes first."""
    text = ARM.replace("baseline: mine", "baseline: llama-3.1-8b-baseline")
    ours = load_profile(OURS[0].parent / "llama-3.1-8b-baseline.yaml").profile
    assert load_profile(arm_of(tmp_path, text, baseline=None)).profile.arguments == ours.arguments
    (tmp_path / "llama-3.1-8b-baseline.yaml").write_text(BASELINE.replace("name: mine", "name: llama-3.1-8b-baseline"))
    assert load_profile(tmp_path / "arm.yaml").profile.arguments == {"max-model-len": 8192}


def test_a_value_is_where_it_is_said(tmp_path: Path) -> None:
    """In the arm, or in its baseline."""
    found = load_profile(arm_of(tmp_path))
    assert found.where("simulator", "gpu") == f"{tmp_path}/arm.yaml:8: simulator.gpu"
    assert found.where("simulator", "workload") == f"{tmp_path}/mine.yaml:12: simulator.workload"
    assert found.where("arguments", "max-model-len") == f"{tmp_path}/mine.yaml:7: arguments.max-model-len"


@pytest.mark.parametrize(
    ("line", "instead", "message"),
    [
        ("baseline: mine", "baseline: other", r"arm\.yaml:3: baseline: expected the name of a profile beside this one"),
        ("baseline: mine", f"baseline: {'a' * 5000}", r"arm\.yaml:3: baseline: expected the name of a profile beside"),
        (
            "draft_tokens: 3",
            f"draft_tokens: 3\n  config: {{a: [hf_{'a' * 20}]}}",
            r"arm\.yaml:7: speculation\.config: a secret does not belong in a file",
        ),
        ("baseline: mine", "baseline: ../mine", r"arm\.yaml:3: baseline: expected the name of a profile beside this"),
        ("baseline: mine", "baseline: mine\nengine: vllm", r"arm\.yaml:4: engine: no such field; "),
        ("speculation:\n  method: ngram\n  draft_tokens: 3\n", "", r"arm\.yaml:1: speculation: this field is needed"),
        ("method: ngram", "method: eagle3", r"arm\.yaml:4: speculation\.model: expected the model that drafts: eagle3"),
        (
            "draft_tokens: 3",
            "draft_tokens: 3\n  draft_tokens_by_batch: [[1, 8, 3], [10, 20, 1]]",
            r"arm\.yaml:7: speculation\.draft_tokens_by_batch\.1: expected .* that begins at 9, got \[10, 20, 1\]",
        ),
        (
            "draft_tokens: 3",
            "draft_tokens: 3\n  config: {a: .inf}",
            r"arm\.yaml:7: speculation\.config: expected what JSON",
        ),
        (
            "draft_tokens: 3",
            "draft_tokens: 3\n  draft_tokens_by_batch: [[1, 8, 5]]",
            r"arm\.yaml:7: speculation\.draft_tokens_by_batch: expected at most draft_tokens, which is 3; got 5",
        ),
    ],
)
def test_a_wrong_arm_is_named_with_its_line(tmp_path: Path, line: str, instead: str, message: str) -> None:
    """A field of the baseline's in it above all: that is how the two would drift apart."""
    assert line in ARM
    with pytest.raises(ConfigError, match=message):
        load_profile(arm_of(tmp_path, ARM.replace(line, instead)))


@pytest.mark.parametrize(
    ("line", "instead", "message"),
    [
        ("v0.33.0", "latest", r"mine\.yaml:4: image: expected an image with a tag that stays what it is"),
        (":v0.33.0", "", r"mine\.yaml:4: image: expected an image with a tag"),
        (
            "max-model-len: 8192",
            "--max-model-len: 8192",
            r"mine\.yaml:7: arguments\.--max-model-len: expected a long opt",
        ),
        ("max-model-len: 8192", "api-key: abc", r"mine\.yaml:7: arguments\.api-key: a command line is seen by others"),
        ("max-model-len: 8192", "x: '${HF_TOKEN}'", r"mine\.yaml:7: arguments\.x: \$\{NAME\} is for environment"),
        (
            "max-model-len: 8192",
            "max-model-len:",
            r"mine\.yaml:7: arguments\.max-model-len: expected a number, .* got None$",
        ),
        ("max-model-len: 8192", "x: [true]", r"mine\.yaml:7: arguments\.x: expected a number, a text.* got \[True\]$"),
        ("max-model-len: 8192", "x: {a: .nan}", r"mine\.yaml:7: arguments\.x: expected what JSON can hold"),
        ("max-model-len: 8192", "x: {a: 2026-01-01}", r"mine\.yaml:7: arguments\.x: expected what JSON can hold"),
        ("${HF_TOKEN:-}", "hf_abc", r"mine\.yaml:9: environment\.HF_TOKEN: a secret does not belong in a file"),
        ("HF_TOKEN: ${HF_TOKEN:-}", "GITHUB_TOKEN: abc", r"mine\.yaml:9: environment\.GITHUB_TOKEN: a secret does not"),
        ("HF_TOKEN: ${HF_TOKEN:-}", "A: https://me:pass@hub", r"mine\.yaml:9: environment\.A: a secret does not"),
        ("max-model-len: 8192", "x: {api_key: abc}", r"mine\.yaml:7: arguments\.x: a command line is seen by others"),
        ("${HF_TOKEN:-}", "x\n  A: $B", r"mine\.yaml:9: .*HF_TOKEN: a secret"),
        ("HF_TOKEN: ${HF_TOKEN:-}", "A: $B", r"mine\.yaml:9: environment\.A: expected \$\{NAME\} or \$\{NAME:-\}"),
        (
            "HF_TOKEN: ${HF_TOKEN:-}",
            "'A=1; touch it; B': c",
            r"mine\.yaml:9: environment\.A=1; touch it; B: expected the name of a variable",
        ),
        ("HF_TOKEN: ${HF_TOKEN:-}", "A: ${1}", r"mine\.yaml:9: environment\.A: expected \$\{NAME\}"),
        ("HF_TOKEN: ${HF_TOKEN:-}", r'A: "a\0"', r"mine\.yaml:9: environment\.A: expected text without control char"),
        ("max-model-len: 8192", r'x: "\e[2J"', r"mine\.yaml:7: arguments\.x: expected text without control char"),
        ("max-model-len: 8192", r'x: [1, "\ud800"]', r"mine\.yaml:7: arguments\.x: expected text without control"),
        ("meta-llama/Llama-3.1-8B-Instruct", r'"a\nb"', r"mine\.yaml:5: model: expected a name or a path on"),
        ("meta-llama/Llama-3.1-8B-Instruct", "''", r"mine\.yaml:5: model: expected a name or a path on one line"),
        ("meta-llama/Llama-3.1-8B-Instruct", "--help", r"mine\.yaml:5: model: expected a name or a path on one line"),
        ("meta-llama/Llama-3.1-8B-Instruct", "s3://me:pass@hub/x", r"mine\.yaml:5: model: a secret does not belong"),
        ("one of ours", f"hf_{'a' * 20}", r"mine\.yaml:2: description: a secret does not belong"),
        ("max-model-len: 8192", f"x: hf_{'a' * 20}", r"mine\.yaml:7: arguments\.x: a command line is seen by others"),
        (
            "vllm/vllm-openai:v0.33.0",
            "https://me:pass@hub/x:v1",
            r"mine\.yaml:4: image: expected an image with a tag .*; got 'https://hub/x:v1'",
        ),
        ("vllm/vllm-openai:v0.33.0", r'"a:1\nRUN b"', r"mine\.yaml:4: image: expected an image with a tag"),
        ("vllm/vllm-openai:v0.33.0", "a:${TAG}", r"mine\.yaml:4: image: expected an image with a tag"),
        ("vllm/vllm-openai:v0.33.0", "'a:'", r"mine\.yaml:4: image: expected an image with a tag"),
        ("simulator:", "health: /$a\nsimulator:", r"mine\.yaml:10: health: string should match pattern"),
        ("simulator:", "shared_memory: 8 GB\nsimulator:", r"mine\.yaml:10: shared_memory: expected a size such as 8g"),
        (
            "simulator:",
            "packages: [x>=1]\nsimulator:",
            r"mine\.yaml:10: packages\.0: expected NAME==VERSION, got 'x>=1'",
        ),
        ("simulator:", "gpus: true\nsimulator:", r"mine\.yaml:10: gpus: expected a number, got True"),
        (
            "simulator:",
            "port: 0\nsimulator:",
            r"mine\.yaml:10: port: input should be greater than or equal to 1, got 0",
        ),
    ],
)
def test_a_wrong_value_is_named_with_its_line(tmp_path: Path, line: str, instead: str, message: str) -> None:
    """Secrets and tags that move above all, also when an arm is read."""
    assert line in BASELINE
    arm = arm_of(tmp_path, baseline=BASELINE.replace(line, instead))
    for path in (arm, tmp_path / "mine.yaml"):
        with pytest.raises(ConfigError, match=message):
            load_profile(path)


@pytest.mark.parametrize(
    "baseline",
    [
        ARM.replace("name: arm", "name: mine").replace("baseline: mine", "baseline: x"),
        BASELINE + "speculation: {method: ngram, draft_tokens: 3}\n",
    ],
)
def test_a_baseline_does_not_speculate(tmp_path: Path, baseline: str) -> None:
    """Nor is it an arm of another."""
    with pytest.raises(ConfigError, match=r"arm\.yaml:3: baseline: expected a profile without speculation"):
        load_profile(arm_of(tmp_path, baseline=baseline))


def test_profiles_are_found_by_name_in_order_of_folders(tmp_path: Path) -> None:
    """Given folders first, then those of the variable, then ours; a path is a path."""
    given, named = tmp_path / "given", tmp_path / "named"
    for folder, gpu in ((given, "l4"), (named, "a100")):
        folder.mkdir()
        (folder / "mine.yaml").write_text(WHOLE.replace("gpu: h100", f"gpu: {gpu}"))
    variables = {"LOADGEN_PROFILES_DIR": str(named)}
    assert find_profile("mine", search_path([given], variables)).profile.simulator == {"gpu": "l4"}
    assert find_profile("mine", search_path((), variables)).profile.simulator == {"gpu": "a100"}
    assert find_profile(str(named / "mine.yaml"), ()).profile.simulator == {"gpu": "a100"}
    assert find_profile("sim-eagle3", search_path((), variables)).profile.method_name == "eagle3"
    assert [*profile_paths(search_path([given], {}))] == sorted({"mine", *(path.stem for path in OURS)})


def test_a_name_that_is_not_there_is_told_what_is_near(tmp_path: Path) -> None:
    """And a folder that is not there is named."""
    with pytest.raises(
        ConfigError, match=r"no such profile: 'llama-3.1-8b-eagel3' in .*; did you mean llama-3\.1-8b-eagle3"
    ):
        find_profile("llama-3.1-8b-eagel3", search_path((), {}))
    with pytest.raises(ConfigError, match="absent: expected a folder with profiles: No such file"):
        find_profile("x", [tmp_path / "absent"])
