"""What an experiment came to, read from its folder."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from loadgen.adapters.store.experiment_folder import CELLS, ExperimentFolder
from loadgen.adapters.store.run_folder import RECORDS
from loadgen.adapters.store.series_folder import SweepFolder
from loadgen.cli.app import run_command_line
from loadgen.core.comparison.losslessness import (
    FIRST_WORDS,
    LOSSY_ERROR_RATIO,
    PERMUTATIONS,
    POWER_RATIO,
    STATED_LOSS_RATIO,
    Sampling,
)
from loadgen.core.errors import StoreError
from loadgen.wiring.experiment_report import experiment_result
from tests.wiring.experiments import experiment_file, little, run


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> ExperimentFolder:
    """A baseline, itself again and another server, whose answers are shorter, over two ladders of one level each."""
    path = experiment_file(
        tmp_path_factory.mktemp("measured"),
        {"baseline": little(), "other": little("tokens=2")},
        load={"concurrency": [2], "request_rate": [40]},
        level={"num_requests": 12, "warmup_requests": 1},
        workload={"synthetic": {"input_tokens": 32, "output_tokens": 3}, "temperature": 0},
        noise="aa",
        losslessness="greedy",
        price_per_hour=2.0,
    )
    return run(path).folder


def test_an_experiment_is_read_from_its_folder(measured: ExperimentFolder) -> None:
    """A comparison for each ladder, with arms and levels as planned, prices, and what the arms did not do alike."""
    result = experiment_result(measured.path)
    assert result.experiment_id == measured.load_manifest().experiment_id
    assert [comparison.variable for comparison in result.ladders] == ["concurrency", "request_rate_rps"]
    assert [comparison.baseline.levels[0].level for comparison in result.ladders] == [2, 40]
    comparison = result.ladders[0]
    assert [ladder.arm.name for ladder in comparison.ladders] == ["baseline", "other", "baseline-again"]
    assert [[level.requests for level in ladder.levels] for ladder in comparison.ladders] == [[12]] * 3
    assert comparison.price_per_hour == 2
    assert any("other at concurrency 2: answers have 2.0 tokens" in note for note in comparison.notes)
    assert any(note.startswith("not verified to be equal") for note in comparison.notes)


def test_a_late_simulated_server_is_a_doubt(measured: ExperimentFolder, tmp_path: Path) -> None:
    """At every level of its sitting, by the worst of its starts; one that was punctual is none."""
    folder = ExperimentFolder(tmp_path / "late")
    shutil.copytree(measured.path, folder.path)
    for sitting in folder.load_manifest().plan.sittings:
        record = folder.sitting(sitting)
        late = (0.004, 0.02, None) if sitting.arm.name == "other" else (0.004, None)
        starts = tuple(replace(record.starts[0], late_p99_s=late_s) for late_s in late)
        folder.save_sitting(replace(record, starts=starts))
    for comparison in experiment_result(folder.path).ladders:
        for ladder in comparison.ladders:
            (level,) = ladder.levels
            found = [each.evidence for each in level.measurement.findings if each.kind == "simulator_late"]
            assert ["more than 20 ms" in each for each in found] == ([True] if ladder.arm.name == "other" else [])


def test_texts_are_compared_over_all_levels(measured: ExperimentFolder) -> None:
    """Of measured requests, against both starts of the baseline."""
    for comparison in experiment_result(measured.path).ladders:
        found = comparison.arms[0].losslessness
        assert found is not None
        assert (found.sampling, found.requests, found.lossy) == (Sampling.GREEDY, 24, True)
        assert found.reference.identical_ratio == 1
        assert (found.arm.pairs, found.arm.shared_words) == (48, 2)


@pytest.mark.parametrize("calling", [12, 24])
def test_answers_that_call_tools_are_not_compared(measured: ExperimentFolder, tmp_path: Path, calling: int) -> None:
    """Their texts do not hold what was called with what, so equal texts are no agreement. An arm that only calls tools
    is not judged at all, which is said."""
    folder = ExperimentFolder(tmp_path / "tools")
    shutil.copytree(measured.path, folder.path)
    for cell in folder.load_manifest().plan.cells:
        if cell.arm.name == "other" and (calling == 24 or cell.level.name == "c2"):
            run = folder.cell(cell)
            stored = list(run.records())
            (run.path / RECORDS).unlink()
            writer = run.record_writer()
            for record in stored:
                writer.put(replace(record, tool_calls=1))
            writer.close()
    for comparison in experiment_result(folder.path).ladders:
        found = comparison.arms[0].losslessness
        said = [note for note in comparison.notes if "could not be compared with the baseline's" in note]
        if calling == 24:
            assert found is None
            assert len(said) == 1
        else:
            assert found is not None
            assert (found.requests, found.left_out_ratio) == (12, 0.5)
            assert said == []


def test_the_same_folder_says_the_same_again(measured: ExperimentFolder) -> None:
    """Permutations included."""
    assert experiment_result(measured.path) == experiment_result(measured.path)


def test_what_is_not_there_is_told(measured: ExperimentFolder, tmp_path: Path) -> None:
    """An experiment that is not through is reported as far as it came, and never taken for one that is: it lacks runs,
    and maybe its noise floor. Without the baseline there is nothing to say.
    """
    part = tmp_path / "part"
    shutil.copytree(measured.path, part)
    shutil.rmtree(part / CELLS / "r1-other" / "c2")
    result = experiment_result(part)
    concurrency, rates = result.ladders
    assert "r1-other: not measured at c2" in concurrency.notes
    assert concurrency.arms == ()
    assert [level.level for level in rates.arms[0].levels] == [40]
    assert [(each.finished_runs, each.planned_runs, each.complete) for each in result.ladders] == [
        (2, 3, False),
        (3, 3, True),
    ]
    assert result.code == 3
    assert not [note for note in concurrency.notes if "noise floor" in note]
    shutil.rmtree(part / CELLS / "r1-baseline-again" / "c2")
    concurrency, _ = experiment_result(part).ladders
    assert [note for note in concurrency.notes if "noise floor" in note] == [
        "no noise floor at c2: baseline again was not measured there, and nobody knows yet how far the baseline is from"
        " itself"
    ]
    shutil.rmtree(part / CELLS / "r1-baseline")
    with pytest.raises(StoreError, match="baseline, which all is compared with, has no run"):
        experiment_result(part)


def test_the_command(measured: ExperimentFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Text or JSON on stdout, a page and charts where they are wanted."""
    page, charts = tmp_path / "report.html", tmp_path / "deep" / "charts"
    command = ["experiment", "report", str(measured.path)]
    assert run_command_line([*command, "--html", str(page), "--svg", str(charts), "--png", str(tmp_path / "png")]) == 0
    pictures = {path.stem: path.read_bytes()[:4] for path in (tmp_path / "png").iterdir()}
    assert pictures == {path.stem: b"\x89PNG" for path in charts.iterdir()}
    said = capsys.readouterr()
    assert "Does it pay" in said.out
    assert "It is lossy: its answers leave the baseline's more than those leave one another." in " ".join(
        said.out.split()
    )
    assert f"wrote {page}\n" in said.err
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert list(charts.iterdir())
    for chart in charts.iterdir():
        ElementTree.fromstring(chart.read_text())
    assert run_command_line([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "loadgen.result/1"
    assert found["ladders"][0]["schema"] == "loadgen.comparison/1"
    assert found["ladders"][0]["arms"][0]["losslessness"]["lossy"] is True
    assert run_command_line([*command, "--html", "-"]) == 0
    assert capsys.readouterr().out.startswith("<!DOCTYPE html>")


def test_a_folder_that_holds_no_experiment(
    measured: ExperimentFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, and what was expected there; of a run or a sweep, what shows it; of a part, what it is a part of."""
    empty, sweep, cell = (
        tmp_path / "empty",
        SweepFolder.create(tmp_path, "sweep").path,
        measured.path / CELLS / "r1-baseline" / "c2",
    )
    empty.mkdir()
    for path, said in (
        (empty, "expected the folder of an experiment"),
        (cell, f"{cell}: is a run and no experiment; `loadgen report {cell}` shows it"),
        (sweep, f"{sweep}: is a sweep and no experiment; `loadgen report {sweep}` shows it"),
        (cell.parent, f"is a part of the experiment {measured.path}"),
    ):
        assert run_command_line(["experiment", "report", str(path)]) == 2
        assert said in capsys.readouterr().err


def test_the_figures_of_the_test_are_those_in_the_document() -> None:
    """Words compared, draws, and how often a lossless arm is accused."""
    text = " ".join((Path(__file__).parents[2] / "docs" / "experiments.md").read_text().split())
    assert f"how many of the first {FIRST_WORDS} words they share" in text
    assert f"held against {PERMUTATIONS:,} draws" in text
    assert f"at most {LOSSY_ERROR_RATIO * 100:.0f} % of experiments tell any arm apart that only chance does" in text
    assert f"had it changed {STATED_LOSS_RATIO * 100:.0f} % of its words" in text
    assert f"lossy in at least {POWER_RATIO * 100:.0f} % of 100 such draws" in text


SERVER = {"gpu": "h100", "target": "llama-3.1-8b", "workload": "chat"}
DRAFTING = {"method": "eagle3", "draft_tokens": 3}
SHORT = {
    "workload": {"synthetic": {"input_tokens": 64, "output_tokens": 24}, "ignore_eos": True, "temperature": 0},
    "load": {"concurrency": [4]},
    "level": {"num_requests": 16, "warmup_requests": 4},
}


@pytest.mark.slow
def test_a_lossy_verifier_is_caught_and_a_lossless_one_is_not(tmp_path: Path) -> None:
    """On simulated servers, one token in twenty is another than the model's choice."""
    arms = {
        "baseline": {"sim": SERVER},
        "exact": {"sim": SERVER, **DRAFTING},
        "lossy": {"sim": SERVER | {"fault": ["lossy=5%"]}, **DRAFTING},
    }
    path = experiment_file(tmp_path, arms, **SHORT, noise="aa", losslessness="greedy")
    folder = run(path).folder
    (comparison,) = experiment_result(folder.path).ladders
    exact, lossy = (arm.losslessness for arm in comparison.arms)
    assert exact is not None
    assert lossy is not None
    assert (exact.lossy, lossy.lossy) == (False, True)
    assert exact.arm.identical_ratio == 1
    starts = [start for sitting in folder.load_manifest().plan.sittings for start in folder.sitting(sitting).starts]
    seeds = [re.findall(r"--seed (\d+)", start.how or "") for start in starts]
    assert seeds == [["0"], ["1"], ["2"], ["3"]]


@pytest.mark.slow
def test_forced_runs_and_the_model_explain_an_arm(tmp_path: Path) -> None:
    """On simulated servers: what a step has to emit, what no drafter can pass, and what was expected."""
    arms = {"baseline": {"sim": SERVER}, "eagle3": {"sim": SERVER, **DRAFTING}}
    path = experiment_file(tmp_path, arms, **SHORT, explain="forced")
    (comparison,) = experiment_result(run(path).folder.path).ladders
    (arm,) = comparison.arms
    (level,) = arm.levels
    assert level.expected is not None
    assert level.expected.bounds is not None
    assert level.explanation is not None
    assert level.explanation.needed is not None
    assert 1 < level.explanation.needed.length.value < 1.6
    assert level.explanation.perfect_drafter is not None
    assert level.gain is not None
    assert level.explanation.perfect_drafter.value > level.gain.verdict.speedup.value > 1
    assert set(level.told.acceptance_length_by_origin) == {"counters", "per_request", "stream"}


def gated(measured: ExperimentFolder, folder: Path, *gates: str) -> Path:
    """The same experiment, with gates in its file."""
    shutil.copytree(measured.path, folder)
    path = folder / "experiment.json"
    manifest = json.loads(path.read_text())
    manifest["file"]["gates"] = gates
    path.write_text(json.dumps(manifest))
    return folder


def test_gates_decide_how_a_report_ends(
    measured: ExperimentFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each at each level of each ladder; one that fails is told and makes it 1, an invalid measurement 3 first."""
    kept = gated(measured, tmp_path / "kept", "ttft_s.mean > 10000x", "error_ratio > 10%")
    assert [len(each.gates) for each in experiment_result(kept).ladders] == [2, 2]
    assert run_command_line(["experiment", "report", str(kept)]) == 0
    assert "Kept 2 of 2" in " ".join(capsys.readouterr().out.split())
    failing = gated(measured, tmp_path / "failing", "ttft_s.mean < 10000x", "error_ratio > 10%")
    result = experiment_result(failing)
    assert [(each.gate, each.at) for each in result.failed_gates] == [
        ("ttft_s.mean < 10000x", "concurrency 2"),
        ("ttft_s.mean < 10000x", "40 requests/s"),
    ]
    assert run_command_line(["experiment", "report", str(failing)]) == 1
    assert "Failed other at concurrency 2: ttft_s.mean is " in " ".join(capsys.readouterr().out.split())
    ladder = result.ladders[0]
    verdict = replace(ladder.baseline.levels[0].measurement, valid=False)
    level = replace(ladder.baseline.levels[0], measurement=verdict)
    invalid = replace(ladder, baseline=replace(ladder.baseline, levels=(level,)))
    assert replace(result, ladders=(invalid,)).code == 3
