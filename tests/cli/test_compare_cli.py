"""`loadgen compare` as a user calls it."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loadgen.adapters.store.run_folder import RunFolder
from loadgen.adapters.store.series_folder import SearchFolder, SweepFolder
from loadgen.cli.app import run_command_line
from loadgen.core.record import RequestRecord
from loadgen.core.run import Load, LoadMode
from loadgen.wiring.sim import spawn_simulator
from tests.cli.commands import loadgen
from tests.cli.experiments import stored_experiment
from tests.core.analysis.factory import manifest, summarised
from tests.core.comparison.sides import OPTIONS, records


def stored(folder: RunFolder, made: Sequence[RequestRecord], **changes: Any) -> Path:
    """A run folder of these records."""
    load = Load(mode=LoadMode.CONCURRENCY, concurrency=1, num_requests=60, seed=5)
    folder.save_manifest(manifest(**{"options": OPTIONS, "load": load} | changes))
    writer = folder.record_writer()
    for record in made:
        writer.put(record)
    writer.close()
    return folder.path


def run_at(out: Path, name: str, made: Sequence[RequestRecord], **changes: Any) -> Path:
    """A run folder of its own; the run has the folder's name."""
    return stored(RunFolder.create(out, name), made, name=name, **changes)


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """The command, run in this process: exit code, what it printed, what it told."""
    code = run_command_line(["compare", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    """A run, and one in which everything took a tenth longer."""
    return run_at(tmp_path, "old", records()), run_at(tmp_path, "new", records(slower=1.1))


def test_a_run_beside_itself_is_named(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """However its path is written; others are compared without a word."""
    old, new = runs
    assert "is the baseline itself: every ratio is 1" in command(capsys, old, new.parent / "new" / ".." / "old")[2]
    assert command(capsys, old, new)[2] == ""


def test_json_has_the_agreed_shape(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Names, metrics with baseline, candidate, ratio and interval, and gates."""
    code, out, err = command(capsys, *runs, "--json", "--fail-on", "tpot_s.p50 > 2x")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert (found["schema"], found["baseline"]["name"]) == ("loadgen.compare/1", "old")
    (candidate,) = found["candidates"]
    assert (candidate["name"], candidate["level"], candidate["paired"]) == ("new", 1, True)
    pair = candidate["metrics"]["tpot_s.p50"]
    assert list(pair) == ["baseline", "candidate", "ratio", "low", "high"]
    assert pair["ratio"] == pytest.approx(1.1)
    assert pair["low"] <= pair["ratio"] <= pair["high"]
    assert [(gate["gate"], gate["failed"]) for gate in found["gates"]] == [("tpot_s.p50 > 2x", False)]


def test_a_failed_gate_is_exit_code_1(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Each in words on stderr, the report all the same on stdout; a gate that held is not mentioned there."""
    gates = ("--fail-on", "tpot_s.p50 > +5%", "--fail-on", "ttft_s.p50 > 1s", "--fail-on-interval", "ttft_s.p99 > 1x")
    code, out, err = command(capsys, *runs, *gates)
    assert code == 1
    assert [line.partition(" is ")[0] for line in err.splitlines()] == [
        "loadgen: gate failed: new at concurrency 1: tpot_s.p50",
        "loadgen: gate failed: new at concurrency 1: ttft_s.p99 cannot be judged: it has no value;"
        " p99 takes 100 requests",
    ]
    assert "✓ passed: new at concurrency 1: ttft_s.p50 is 55 ms: not > 1s" in out
    assert command(capsys, runs[1], runs[0], "--fail-on", "tpot_s.p50 > +5%")[0] == 0


def test_a_gate_that_cannot_be_read_is_exit_code_2(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is read."""
    assert command(capsys, runs[0], "gone", "--fail-on", "tpot_s.p50 = 1x") == (
        2,
        "",
        "loadgen: gate 'tpot_s.p50 = 1x', column 12: expected one of > < >= <=\n",
    )


def test_unlike_runs_are_exit_code_2(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """With what differs, on lines of their own; unless they are allowed."""
    other = run_at(tmp_path, "other", records(), options=OPTIONS | {"temperature": 1.0})
    code, out, err = command(capsys, runs[0], other)
    assert (code, out) == (2, "")
    assert err.splitlines()[1:] == ["  other at concurrency 1: temperature is 1.0, at the baseline 0.0"]
    code, out, _ = command(capsys, runs[0], other, "--allow-unlike")
    assert code == 0
    assert "temperature: 1.0, at the baseline 0.0" in out


def test_an_invalid_measurement_is_exit_code_3(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Before a failed gate, and named; --allow-invalid leaves what the gates say."""
    late = records(lag_ms=900.0)
    slow = {"load": Load(mode=LoadMode.RATE, request_rate_rps=2.5, burstiness=1.0, num_requests=60, seed=5)}
    good, bad = run_at(tmp_path, "good", records(lag_ms=0.0), **slow), run_at(tmp_path, "bad", late, **slow)
    gate = ("--fail-on", "e2el_s.p50 > 0.5x")
    code, out, err = command(capsys, good, bad, *gate)
    assert code == 3
    assert err.splitlines()[-1] == "loadgen: invalid: bad at 2.5 requests/s"
    assert "✗ Invalid: bad at 2.5 requests/s; do not use it" in out
    assert command(capsys, good, bad, *gate, "--allow-invalid")[0] == 1
    assert command(capsys, good, bad, "--allow-invalid")[0] == 0


def test_markdown_goes_to_a_file_or_to_stdout(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Beside the report, or alone."""
    path = tmp_path / "comment.md"
    _, out, err = command(capsys, *runs, "--markdown", path)
    assert err == f"wrote {path}\n"
    assert out.startswith("Against old")
    _, alone, _ = command(capsys, *runs, "--markdown", "-")
    assert alone == path.read_text()
    assert alone.startswith("### Comparison against `old`\n")


def test_ladders_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sweep's levels each against its like, and against a stored summary of one of them."""
    sweeps = []
    for name, levels in (("a", (1, 2)), ("b", (2, 4))):
        sweeps.append(SweepFolder.create(tmp_path, name))
        for place, level in enumerate(levels):
            load = Load(mode=LoadMode.CONCURRENCY, concurrency=level, num_requests=60, seed=place)
            stored(sweeps[-1].create_run(place + 1, level), records(20), load=load)
    code, out, _ = command(capsys, *(sweep.path for sweep in sweeps), "--json", "--fail-on", "error_ratio > 0")
    found = json.loads(out)
    assert code == 1
    assert [(each["name"], each["level"]) for each in found["candidates"]] == [("b", 2)]
    assert found["unmatched"] == [{"name": "a", "at": "concurrency 1"}, {"name": "b", "at": "concurrency 4"}]
    kept = tmp_path / "baseline.json"
    load = Load(mode=LoadMode.CONCURRENCY, concurrency=4, num_requests=60)
    kept.write_bytes(msgspec.json.encode(summarised(records(20), load=load)))
    code, out, _ = command(capsys, kept, sweeps[1].path)
    assert code == 0
    assert "b at concurrency 4" in out
    assert "no intervals" in out


def test_of_the_same_name_each_goes_by_the_end_of_its_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As short as tells all of them apart, however long the way to it is and however it is written."""
    paths = [
        stored(RunFolder.create(tmp_path / "very" / "deep" / place, folder), records(20), name="same")
        for place, folder in (("x", "a"), ("x", "b"), ("y", "a"))
    ]
    out = command(capsys, *paths[:2])[1]
    assert out.startswith("Against a\n")
    assert "\nb at concurrency 1" in out
    out = command(capsys, paths[0] / ".." / "a", *paths[1:])[1]
    assert out.startswith("Against x/a\n")
    assert "\nx/b at concurrency 1" in out
    assert "\ny/a at concurrency 1" in out


def test_what_cannot_be_compared_is_said(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Nothing there, a search, a sweep that never began, an empty folder, one of several runs, part of a sweep."""
    search, sweep = SearchFolder.create(tmp_path, "search").path, SweepFolder.create(tmp_path, "sweep").path
    empty = tmp_path / "empty"
    empty.mkdir()
    for path, said in (
        (tmp_path / "gone", "no such folder; expected a run, a sweep or an experiment, or a file with"),
        (search, "is a search for a capacity, whose levels are its own; give runs of its probes/"),
        (sweep, "ended before its first level began"),
        (empty, "expected the folder of a run"),
        (tmp_path, "holds 2 runs, 1 sweep and 1 search for a capacity"),
        (sweep / "levels", f"is a part of the sweep {sweep}"),
    ):
        code, out, err = command(capsys, runs[0], path)
        assert (code, out) == (2, "")
        assert said in err


def test_a_run_that_was_killed_is_said(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It never came to write how it ended, and its records are cut."""
    killed = run_at(tmp_path, "killed", records(), interrupted=None)
    path = killed / "records.jsonl.zst"
    os.truncate(path, path.stat().st_size - 5)
    said = command(capsys, runs[0], killed, "--allow-invalid")[1]
    assert "candidate: the run was interrupted or killed" in said
    assert "baseline: the run was" not in said


@pytest.fixture
def experiments(tmp_path: Path) -> tuple[Path, Path]:
    """Two of the same requests: in the second everything of the arm that drafts takes a tenth longer."""
    return (
        stored_experiment(tmp_path / "experiment-a", name="old"),
        stored_experiment(tmp_path / "experiment-b", name="new", arms={"baseline": 1.0, "eagle3": 0.66}),
    )


def test_experiments_meet_by_arm_and_level(
    experiments: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """In the shape of every comparison, over all repeats; gates hold at every arm and level, Markdown names them."""
    gates = ("--fail-on-interval", "tpot_s.mean > 1.02x", "--markdown", tmp_path / "comment.md")
    code, out, err = command(capsys, *experiments, "--json", *gates)
    found = json.loads(out)
    assert (code, found["schema"], found["baseline"]["name"]) == (1, "loadgen.compare/1", "old")
    of_arm = {(each["arm"], each["level"]): each for each in found["candidates"]}
    assert list(of_arm) == [("baseline", 1), ("baseline", 2), ("eagle3", 1), ("eagle3", 2)]
    for (arm, level), each in of_arm.items():
        pair = each["metrics"]["tpot_s.mean"]
        assert (each["name"], each["at"]) == ("new", f"concurrency {level} of {arm}")
        assert (each["paired"], each["repeats"], each["valid"]) == (True, 2, True)
        assert pair["ratio"] == pytest.approx(1.1 if arm == "eagle3" else 1.0, rel=0.02)
        assert pair["low"] < pair["ratio"] < pair["high"]
        assert "one start" not in str(each["notes"]), "two repeats are two starts"
    failed = [gate["at"] for gate in found["gates"] if gate["failed"]]
    assert failed == ["concurrency 1 of eagle3", "concurrency 2 of eagle3"]
    assert "gate failed: new at concurrency 1 of eagle3: tpot_s.mean is" in err
    assert "**`new` at concurrency 2 of eagle3**" in (tmp_path / "comment.md").read_text()
    assert "new at concurrency 1 of baseline" in command(capsys, *experiments)[1]


def test_what_one_experiment_lacks_is_left_out_and_said(
    experiments: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A repeat of a cell, an arm, a level: the rest is compared, and a gate fails where the candidate has nothing."""
    part = stored_experiment(
        tmp_path / "part",
        arms={"baseline": 1.0, "eagle3": 0.6, "ngram": 0.8},
        levels=(1,),
        unfinished=("r2-eagle3/c1",),
    )
    code, out, _ = command(capsys, experiments[0], part, "--json", "--fail-on", "error_ratio > 0")
    found = json.loads(out)
    assert code == 1
    assert [(each["arm"], each["repeats"]) for each in found["candidates"]] == [("baseline", 2), ("eagle3", 1)]
    assert "baseline: left out, since the other lacks it: repeat 2" in found["candidates"][1]["notes"]
    assert [each["at"] for each in found["unmatched"]] == [
        "concurrency 2 of baseline",
        "concurrency 2 of eagle3",
        "concurrency 1 of ngram",
    ]
    assert [gate["at"] for gate in found["gates"] if gate["failed"]] == [
        "concurrency 2 of baseline",
        "concurrency 2 of eagle3",
    ]


def test_experiments_of_other_requests_are_refused(
    experiments: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """By their digest, whatever it is that differs; what settings tell is told. Allowed, they have no intervals."""
    reseeded = stored_experiment(tmp_path / "reseeded", options=OPTIONS | {"seed": 6})
    hotter = stored_experiment(tmp_path / "hotter", options=OPTIONS | {"temperature": 1.0})
    code, out, err = command(capsys, experiments[0], reseeded)
    assert (code, out) == (2, "")
    assert (
        "nightly at concurrency 1 of baseline: digest of the requests (seeds and place in the data included) is" in err
    )
    assert len(err.splitlines()) == 1 + 4, "a line for each level of each arm"
    assert "temperature is 1.0, at the baseline 0.0" in command(capsys, experiments[0], hotter)[2]
    code, out, _ = command(capsys, experiments[0], reseeded, "--allow-unlike", "--json")
    assert code == 0
    first = json.loads(out)["candidates"][0]
    assert first["metrics"]["tpot_s.mean"]["low"] is None
    assert "no intervals: the experiments did not measure the same requests" in first["notes"]


def test_an_experiment_is_compared_with_experiments(
    experiments: tuple[Path, Path], runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A run has no arms; a cell of the experiment is a run, and can be given. One without a finished cell is said."""
    code, _, err = command(capsys, experiments[0], runs[0])
    assert code == 2
    assert "experiment-a is an experiment and old is not" in err
    cell = experiments[0] / "cells" / "r1-baseline" / "c1"
    assert command(capsys, cell, runs[0], "--allow-unlike")[0] == 0
    empty = stored_experiment(
        tmp_path / "empty-one", repeats=1, levels=(1,), unfinished=("r1-baseline/c1", "r1-eagle3/c1")
    )
    assert "no cell of the experiment is finished" in command(capsys, experiments[0], empty)[2]


@pytest.mark.slow
def test_a_server_twice_as_fast(tmp_path: Path) -> None:
    """Two simulated servers of the same model, one with its time at double speed: half the TPOT, and sure of it."""
    folders = []
    for speed in (2, 4):
        with spawn_simulator(
            "--gpu", "a100", "--target", "llama-3.1-8b", "--seed", "1", "--speed", str(speed)
        ) as server:
            load = ("--concurrency", 2, "--num-requests", 20, "--output-tokens", 24, "--ignore-eos", "--seed", 3)
            out = tmp_path / str(speed)
            loadgen("run", "--url", server.url, *load, "--name", f"speed {speed}", "--no-progress", out=out)
            folders += out.iterdir()
    done = loadgen("compare", *folders, "--json", "--fail-on-interval", "tpot_s.mean > 0.7x", out=tmp_path)
    pair = done.summary["candidates"][0]["metrics"]["tpot_s.mean"]
    assert done.code == 0
    assert pair["low"] < pair["ratio"] < pair["high"]
    assert pair["ratio"] == pytest.approx(0.5, abs=0.1)
    turned = loadgen("compare", *folders[::-1], "--fail-on-interval", "tpot_s.mean > 1.5x", out=tmp_path)
    assert turned.code == 1
