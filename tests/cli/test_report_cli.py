"""`loadgen report` and `loadgen export` on stored runs, sweeps and experiments."""

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from loadgen.adapters.store.run_folder import RunFolder
from loadgen.adapters.store.series_folder import SearchFolder, SweepFolder
from loadgen.cli.app import run_command_line as run_command
from loadgen.core.analysis.analyse import analyse
from loadgen.core.analysis.ladder import knee_of
from loadgen.core.metrics.summary import Sweep
from loadgen.core.record import Failure, FailureKind, Outcome, RequestRecord, TokenSource
from loadgen.core.request import Phase
from loadgen.core.run import ClientFacts, Load, LoadMode, RunManifest, Target, TimingSource
from tests.cli.experiments import stored_experiment

MS = 1_000_000


def made(seq: int, *, concurrency: int) -> RequestRecord:
    """A request of a server whose first token takes 20 ms and each further one 2 ms a concurrent request."""
    sent = (seq // concurrency) * (20 + 18 * concurrency) * MS
    first = sent + 20 * MS
    events = tuple(first + i * 2 * concurrency * MS for i in range(10))
    return RequestRecord(
        seq=seq,
        request_id=f"r-{seq}",
        phase=Phase.MEASURE,
        sent_ns=sent,
        headers_ns=sent + 5 * MS,
        first_ns=first,
        first_output_ns=first,
        last_ns=events[-1],
        closed_ns=events[-1] + MS,
        event_ns=events,
        input_tokens=30,
        output_tokens=10,
        output_tokens_from=TokenSource.SERVER,
        outcome=Outcome.COMPLETED,
        streamed=True,
    )


def failed(seq: int) -> RequestRecord:
    """A request that the server refused with markup in its message."""
    return RequestRecord(
        seq=seq,
        request_id=f"r-{seq}",
        phase=Phase.MEASURE,
        sent_ns=seq * MS,
        closed_ns=(seq + 2) * MS,
        outcome=Outcome.FAILED,
        failure=Failure(kind=FailureKind.HTTP_5XX, http_status=503, message="</td><svg onload=alert(1)>, =1+1"),
    )


def manifest_of(name: str, concurrency: int, planned: int) -> RunManifest:
    """A finished closed-loop run."""
    return RunManifest(
        run_id=name,
        name="nightly",
        started_at="2026-11-30T06:18:00Z",
        origin_unix_ns=0,
        target=Target(url="http://127.0.0.1:8000/v1", endpoint="chat", model="m"),
        load=Load(mode=LoadMode.CONCURRENCY, concurrency=concurrency),
        planned=planned,
        client=ClientFacts(timing_source=TimingSource.USER),
        interrupted=False,
    )


def fill(folder: RunFolder, concurrency: int) -> None:
    """Stores forty requests and a failure, and the manifest; no summary, so that it cannot be read from there."""
    folder.save_manifest(manifest_of(folder.path.name, concurrency, 41))
    writer = folder.record_writer()
    for seq in range(40):
        writer.put(made(seq, concurrency=concurrency))
    writer.put(failed(40))
    writer.close()


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """The folder of a run."""
    folder = RunFolder.create(tmp_path, "20261130-run")
    fill(folder, 4)
    return folder.path


@pytest.fixture
def ladder(tmp_path: Path) -> Path:
    """The folder of a sweep whose process was killed: two levels, no `sweep.json`."""
    sweep = SweepFolder.create(tmp_path, "20261130-sweep")
    for index, concurrency in enumerate((1, 4)):
        fill(sweep.create_run(index, concurrency), concurrency)
    return sweep.path


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs a command line in this process: exit code, stdout, stderr."""

    def call(*arguments: str | Path) -> tuple[int, str, str]:
        code = run_command([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def rows(text: str) -> list[dict[str, str]]:
    """CSV rows by column."""
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_report_gives_the_numbers_of_the_records(stored: Path, command) -> None:
    """Analysed anew, the summary is that of the records; there is no `summary.json` to copy from."""
    folder = RunFolder.open(stored)
    expected = analyse(folder.records, folder.load_manifest()).summary
    code, out, _ = command("report", stored, "--json")
    assert code == 0
    assert json.loads(out) == json.loads(msgspec.json.encode(expected))
    assert expected.latency.ttft_s.p50 == pytest.approx(0.020)


def test_report_ignores_a_stored_summary(stored: Path, command) -> None:
    """A summary that says something else does not change what the records say."""
    before = command("report", stored, "--json")[1]
    summary = json.loads(before)
    summary["latency"]["ttft_s"]["p50"] = 0.001
    (stored / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    assert command("report", stored, "--json")[1] == before


def test_report_as_text(stored: Path, command) -> None:
    """Without options: text for people, plain because stdout is no terminal."""
    code, out, err = command("report", stored)
    assert code == 0
    assert out.startswith("✓ Valid, with doubts  nightly")
    assert "http_5xx" in out
    assert "\x1b" not in out
    assert err == ""


def test_report_as_a_page(stored: Path, tmp_path: Path, command) -> None:
    """The page is a file of its own, markup in a server's message is text, and no draft is left."""
    page = tmp_path / "out" / "report.html"
    page.parent.mkdir()
    code, _, err = command("report", stored, "--html", page)
    assert code == 0
    assert str(page) in err
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "&lt;svg onload=alert(1)&gt;" in text
    assert "<svg onload" not in text
    assert [entry.name for entry in page.parent.iterdir()] == ["report.html"]
    assert command("report", stored, "--html", "-")[1] == text


def test_a_killed_run_is_reported(stored: Path, command) -> None:
    """Records cut in the middle, no summary, no window: the report holds what was recorded and says so."""
    file = stored / "records.jsonl.zst"
    file.write_bytes(file.read_bytes()[:-40])
    manifest = replace(manifest_of("x", 4, 41), interrupted=None, client=None)
    RunFolder.open(stored).save_manifest(manifest)
    code, out, err = command("report", stored, "--json")
    assert code == 0
    assert "the run was killed" in err
    summary = json.loads(out)
    assert summary["interrupted"] is True
    counts = summary["requests"]
    assert counts["planned"] == sum(counts[name] for name in ("completed", "failed", "cancelled", "dropped"))


def test_a_sweep_is_reported_from_the_records_of_its_levels(ladder: Path, tmp_path: Path, command) -> None:
    """Levels, variable and knee come from the level folders alone, also after a kill."""
    code, out, _ = command("report", ladder, "--json")
    assert code == 0
    sweep = msgspec.json.decode(out, type=Sweep)
    assert [level.level for level in sweep.levels] == [1, 4]
    assert sweep.variable == "concurrency"
    assert sweep.sweep_id == ladder.name
    assert sweep.name == "nightly"
    assert sweep.knee == knee_of(sweep.levels, "concurrency")
    assert "Levels of concurrency" in command("report", ladder)[1]
    assert command("report", ladder, "--html", tmp_path / "sweep.html")[0] == 0
    assert "loadgen sweep" in (tmp_path / "sweep.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an experiment: two arms at two levels in two repeats, one cell of which was never measured."""
    out = tmp_path_factory.mktemp("runs") / "experiment-20260101-000000-000-abcdef"
    return stored_experiment(out, requests=12, unfinished=("r2-eagle3/c2",))


def test_an_experiment_is_reported_as_by_its_own_command(experiment: Path, tmp_path: Path, command) -> None:
    """Text, JSON, page and exit code."""
    own, here = (command(*words, experiment) for words in (("experiment", "report"), ("report",)))
    assert here == own
    assert "Does it pay" in here[1]
    assert command("report", experiment, "--json") == command("experiment", "report", experiment, "--json")
    page = tmp_path / "page.html"
    assert command("report", experiment, "--html", page)[0] == own[0]
    assert page.read_text(encoding="utf-8") == command("experiment", "report", experiment, "--html", "-")[1]


def test_a_folder_of_results_leads_to_them(experiment: Path, stored: Path, ladder: Path, command) -> None:
    """What lies in a folder, or what a folder is a part of, is named with its kind and its path."""
    search = SearchFolder.create(stored.parent, "capacity-20270101-000000-000-abcdef").path
    for folder, said in (
        (
            stored.parent,
            f"holds 1 run, 1 sweep and 1 search for a capacity; the newest is the search for a capacity {search}",
        ),
        (experiment.parent, f"holds 1 experiment; the newest is the experiment {experiment}"),
        (experiment / "cells", f"is a part of the experiment {experiment}"),
        (experiment / "cells" / "r1-eagle3", f"is a part of the experiment {experiment}"),
        (ladder / "levels", f"is a part of the sweep {ladder}"),
        (stored.parent / "gone", "no such folder; expected a run, a sweep, a search for a capacity or an experiment"),
        (stored / "manifest.json", "found a file"),
        (stored.parent / ("x" * 300), "cannot be read: File name too long"),
    ):
        for line in (["report", folder], ["export", folder, "--format", "csv"]):
            code, out, err = command(*line)
            assert (code, out, err.count("\n")) == (2, "", 1)
            assert said in err
    assert command("report", experiment / "cells" / "r1-eagle3" / "c1")[0] == 0, "a cell is a run"


def test_export_of_an_experiment_has_a_row_a_cell(experiment: Path, tmp_path: Path, command) -> None:
    """In CSV, JSON and Parquet alike, with what tells cells apart; which are not there is said on stderr."""
    _, text, err = command("export", experiment, "--format", "csv")
    table = rows(text)
    cells = [(row["arm"], row["repeat"], row["level"], row["draft_tokens"]) for row in table]
    assert cells == [
        ("baseline", "1", "1", ""),
        ("baseline", "1", "2", ""),
        ("eagle3", "1", "1", "3"),
        ("eagle3", "1", "2", "3"),
        ("eagle3", "2", "1", "3"),
        ("baseline", "2", "1", ""),
        ("baseline", "2", "2", ""),
    ]
    assert {row["experiment_id"] for row in table} == {experiment.name}
    assert {row["requests.completed"] for row in table} == {"12"}
    assert err == f"loadgen: {experiment}: 7 of 8 cells are measured\n"
    found = json.loads(command("export", experiment, "--format", "json")[1])
    assert (found["schema"], found["experiment_id"], found["name"]) == ("loadgen.cells/1", experiment.name, "nightly")
    assert [cell["summary"]["latency"]["tpot_s"]["p50"] for cell in found["cells"]] == [
        float(row["latency.tpot_s.p50"]) for row in table
    ]
    target = tmp_path / "cells.parquet"
    assert command("export", experiment, "--format", "parquet", "--what", "summary", "-o", target)[0] == 0
    read = pq.read_table(target)
    assert read.schema.names == list(table[0])
    assert read["latency.tpot_s.p50"].to_pylist() == [
        cell["summary"]["latency"]["tpot_s"]["p50"] for cell in found["cells"]
    ]
    assert read["draft_tokens"].to_pylist() == [None, None, 3, 3, 3, None, None]


def test_requests_and_series_of_an_experiment_name_their_cell(experiment: Path, tmp_path: Path, command) -> None:
    """Arm, repeat and level stand in front of each, in every format that holds them."""
    requests = rows(command("export", experiment, "--format", "csv", "--what", "requests")[1])
    assert len(requests) == 7 * 12
    assert {(row["arm"], row["repeat"], row["level"]) for row in requests} >= {("eagle3", "2", "1")}
    told = json.loads(command("export", experiment, "--format", "json", "--what", "requests")[1])
    assert (told[-1]["arm"], told[-1]["repeat"], told[-1]["level"], told[-1]["seq"]) == ("baseline", 2, 2, 11)
    target = tmp_path / "requests.parquet"
    assert "wrote 84 requests" in command("export", experiment, "--format", "parquet", "-o", target)[2]
    assert pq.read_schema(target).names[:3] == ["arm", "repeat", "level"]
    series = json.loads(command("export", experiment, "--format", "json", "--what", "series")[1])
    assert [each["arm"] for each in series].count("eagle3") == 3
    lines = [json.loads(line) for line in command("export", experiment, "--format", "vllm")[1].splitlines()]
    assert [(line["arm"], line["repeat"]) for line in lines][:3] == [("baseline", 1), ("baseline", 1), ("eagle3", 1)]


@pytest.mark.parametrize("name", ["", "empty"])
def test_a_folder_that_is_no_run_is_a_clear_error(tmp_path: Path, command, name: str) -> None:
    """Exit code 2 and one line that names the folder and what was expected."""
    (tmp_path / "empty").mkdir()
    code, out, err = command("report", tmp_path / name)
    assert (code, out) == (2, "")
    assert str(tmp_path / name) in err
    assert "manifest.json" in err
    assert err.count("\n") == 1


def test_a_sweep_without_a_level_is_a_clear_error(tmp_path: Path, command) -> None:
    """Killed before anything began: said, not a traceback."""
    path = SweepFolder.create(tmp_path, "s").path
    code, _, err = command("report", path)
    assert code == 2
    assert "before its first level began" in err


def test_export_csv(stored: Path, ladder: Path, command) -> None:
    """One row a run, one row a level, one row a request, one row a bin."""
    (row,) = rows(command("export", stored, "--format", "csv")[1])
    assert row["requests.completed"] == "40"
    assert [row["level"] for row in rows(command("export", ladder, "--format", "csv")[1])] == ["1", "4"]
    requests = rows(command("export", stored, "--format", "csv", "--what", "requests")[1])
    assert len(requests) == 41
    assert requests[-1]["failure.message"] == "</td><svg onload=alert(1)>, =1+1"
    assert len(rows(command("export", ladder, "--format", "csv", "--what", "requests")[1])) == 82
    assert (
        sum(int(row["sent"]) for row in rows(command("export", stored, "--format", "csv", "--what", "series")[1])) == 41
    )


def test_export_json(stored: Path, ladder: Path, command) -> None:
    """Summary, records and series as strict JSON, for a run and for a sweep."""
    assert json.loads(command("export", stored, "--format", "json")[1])["schema"] == "loadgen.summary/1"
    assert json.loads(command("export", ladder, "--format", "json")[1])["schema"] == "loadgen.sweep/1"
    text = command("export", stored, "--format", "json", "--what", "requests")[1]
    assert msgspec.json.decode(text, type=list[RequestRecord]) == list(RunFolder.open(stored).records())
    both = json.loads(command("export", ladder, "--format", "json", "--what", "requests")[1])
    assert {one["level"] for one in both} == {1.0, 4.0}
    assert json.loads(command("export", stored, "--format", "json", "--what", "series")[1])["step_s"] > 0
    assert len(json.loads(command("export", ladder, "--format", "json", "--what", "series")[1])) == 2


def test_export_vllm(stored: Path, ladder: Path, command) -> None:
    """One object for a run, one a line for a sweep."""
    found = json.loads(command("export", stored, "--format", "vllm")[1])
    assert found["completed"] == 40
    assert found["max_concurrency"] == 4
    assert len(found["itls"]) == 41
    lines = command("export", ladder, "--format", "vllm")[1].splitlines()
    assert [json.loads(line)["max_concurrency"] for line in lines] == [1, 4]


def test_export_parquet(stored: Path, ladder: Path, tmp_path: Path, command) -> None:
    """Requests of a run, and of all levels of a sweep with their level."""
    code, out, err = command("export", stored, "--format", "parquet", "-o", tmp_path / "run.parquet")
    assert (code, out) == (0, "")
    assert "wrote 41 requests" in err
    assert command("export", ladder, "--format", "parquet", "-o", tmp_path / "sweep.parquet")[0] == 0
    assert pq.read_table(tmp_path / "run.parquet").num_rows == 41
    assert set(pq.read_table(tmp_path / "sweep.parquet")["level"].to_pylist()) == {1.0, 4.0}
    levels = tmp_path / "levels.parquet"
    assert "wrote 2 rows" in command("export", ladder, "--format", "parquet", "--what", "summary", "-o", levels)[2]
    assert pq.read_table(levels)["requests.completed"].to_pylist() == [40, 40]
    assert pq.read_table(levels).schema.names == list(rows(command("export", ladder, "--format", "csv")[1])[0])


def test_export_to_a_file(stored: Path, tmp_path: Path, command) -> None:
    """`-o FILE` writes what stdout would have got, `-o -` is stdout."""
    target = tmp_path / "run.csv"
    expected = command("export", stored, "--format", "csv")[1]
    code, out, _ = command("export", stored, "--format", "csv", "-o", target)
    assert (code, out) == (0, "")
    assert target.read_bytes().decode() == expected
    assert command("export", stored, "--format", "csv", "-o", "-")[1] == expected


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--format", "parquet"], ["parquet", "-o FILE"]),
        (["--format", "parquet", "-o", "-"], ["parquet", "-o FILE"]),
        (["--format", "parquet", "--what", "series", "-o", "x"], ["--what series", "requests or summary only"]),
        (["--format", "vllm", "--what", "requests"], ["--what requests", "summary only"]),
        (["--format", "xml"], ["loadgen: --format: expected csv or json or parquet or vllm or openmetrics, got 'xml'"]),
        (["--format", "csv", "--what", "all"], ["loadgen: --what: expected summary or requests or series, got 'all'"]),
        (["--format", "csv", "-o", "no/such/folder/x.csv"], ["no/such/folder/x.csv", "cannot be written"]),
    ],
)
def test_wrong_use_is_a_clear_error(stored: Path, command, arguments: list[str], words: list[str]) -> None:
    """Exit code 2; the message names the option and what was expected."""
    code, out, err = command("export", stored, *arguments)
    assert (code, out) == (2, "")
    for word in words:
        assert word in err


def test_help_names_arguments_as_they_are(command) -> None:
    """No braces in the usage line, and no type beside a flag."""
    for line in (["report"], ["export"], ["trace", "inspect"], ["trace", "convert"], ["trace", "sample"]):
        text = command(*line, "--help")[1]
        assert "{" not in text
        assert re.search(r"Usage: \w+ [a-z ]+ \[OPTIONS\] (DIR|FILE)", text)
        assert not re.search(r"--json +<bool>", text)
