"""The servers of an experiment: on equal footing or not, together, run on, idle, simulated."""

from pathlib import Path
from threading import Timer

import pytest

from loadgen.core.comparison.footing import Standing
from loadgen.core.errors import ConfigError, ExitCode
from loadgen.wiring.experiment_report import experiment_result
from tests.cli.commands import ChatServer
from tests.wiring.experiments import Watcher, asked, begun, experiment_file, little, manifests, run

pytestmark = pytest.mark.slow


def test_unequal_servers_are_refused(tmp_path: Path) -> None:
    """Before the arm gets any load, and with what differs; where it is allowed it is measured, said and stored."""
    arms = {"baseline": little(), "other": little('model_config.dtype="torch.float16"')}
    path = experiment_file(tmp_path, arms, load={"concurrency": [1]})
    with pytest.raises(ConfigError, match=r"other is not on equal footing: dtype is float16, at the baseline bfloat16"):
        run(path)
    folder = begun(path)
    assert list(folder.ends()) == ["r1-baseline/c1"]
    assert asked(folder, "r1-other") == []

    allow = experiment_file(tmp_path, arms, load={"concurrency": [1]}, allow_unequal=True)
    allowed = run(allow, resume=folder.path)
    assert allowed.code is ExitCode.DONE
    assert "other: dtype is float16, at the baseline bfloat16" in allowed.remarks
    footing = allowed.folder.sitting(allowed.manifest.plan.sittings[1]).starts[-1].footing
    assert footing is not None
    assert [each.setting for each in footing.of(Standing.UNEQUAL)] == ["dtype", "vllm_config.model_config.dtype"]


def test_servers_together_that_cannot_forget_under_rates(tmp_path: Path) -> None:
    """All of a repeat are up before the first is sent anything, and stay up to its end. Each cell has a salt of its
    own, so that no cache carries over."""
    arms = {"baseline": little("no-reset")}
    finished = run(experiment_file(tmp_path, arms, noise="aa", servers="together", load={"request_rate": [50, 100]}))
    assert (finished.code, next(iter(finished.ends))) == (ExitCode.DONE, "r1-baseline/rps50")
    baseline, again = (finished.folder.sitting(sitting).starts[0] for sitting in finished.manifest.plan.sittings)
    assert again.started_at < finished.ends["r1-baseline/rps50"].ended_at
    assert (baseline.stopped, again.stopped) == ("asked", "asked")
    salts = [line.split()[1] for name in ("r1-baseline", "r1-baseline-again") for line in asked(finished.folder, name)]
    assert len(salts) == 20
    assert [len({*salts[place : place + 5]}) for place in (0, 5, 10, 15)] == [1, 1, 1, 1]
    assert len({*salts, "-"}) == 5


def test_servers_that_run_on(tmp_path: Path) -> None:
    """They are left running, and a run says that their cache may know its prompts."""
    with ChatServer() as chat:
        arms = {"baseline": {"url": chat.url}, "other": {"url": chat.url}}
        finished = run(experiment_file(tmp_path, arms, load={"concurrency": [1]}))
        (start,) = finished.folder.sitting(finished.manifest.plan.sittings[1]).starts
    assert (finished.code, start.stopped) == (ExitCode.DONE, "left running")
    assert "cannot be told to forget prompts" in manifests(finished.folder)["r1-other/c1"]["notes"][0]


def test_a_level_waits_until_the_server_is_idle(tmp_path: Path) -> None:
    """What an earlier one left running there would be measured with it."""
    busy = tmp_path / "busy"
    busy.touch()
    found: list[bool] = []

    def look(title: str) -> None:
        found.append(busy.exists())
        if len(found) == 1:
            Timer(1.0, busy.unlink).start()

    finished = run(experiment_file(tmp_path, {"baseline": little(f"busy={busy}")}, noise="aa"), watcher=Watcher(look))
    assert finished.code is ExitCode.DONE
    assert found == [True, False, False, False]


def test_simulated_servers_stand_on_equal_footing(tmp_path: Path) -> None:
    """A speculative arm, its forced runs and the baseline once more, in the words of either engine.

    What differs because it speculates is no warning; the report tells it with its reason, and that nothing was measured
    but simulated servers.
    """
    for dialect in ("vllm", "sglang"):
        sim = {"speed": 20, "dialect": dialect}
        (tmp_path / dialect).mkdir()
        path = experiment_file(
            tmp_path / dialect,
            {"baseline": {"sim": sim}, "eagle3": {"sim": sim, "method": "eagle3", "draft_tokens": 2}},
            workload={"synthetic": {"input_tokens": 32, "output_tokens": 8}, "ignore_eos": True},
            load={"concurrency": [2]},
            noise="aa",
            explain="forced",
        )
        watcher = Watcher()
        finished = run(path, watcher=watcher)
        assert (finished.code, len(finished.ends)) == (ExitCode.DONE, 5)
        for sitting in finished.manifest.plan.sittings:
            (start,) = finished.folder.sitting(sitting).starts
            assert start.footing is not None
            assert start.footing.objections == ()
            assert bool(start.footing.of(Standing.COMPARED)) == (sitting.arm.method is not None)
            assert start.late_p99_s is not None
        assert not any("differ" in line for line in watcher.lines)
        (comparison,) = experiment_result(finished.folder.path).ladders
        assert any("no engine was measured for baseline, eagle3 (k = 2): " in note for note in comparison.notes)
        assert any("weights and cache of the drafter take memory" in note for note in comparison.notes)
