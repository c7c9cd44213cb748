"""What a run and a sweep keep of the server they measure, against simulated servers whose every step is known."""

import gzip
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from loadgen.adapters.store.run_folder import RunFolder
from loadgen.cli.app import run_command_line
from loadgen.sim.child import ChildServer
from loadgen.wiring.sim import spawn_simulator
from tests.cli.commands import ChatServer, loadgen
from tests.fakes.scripted_server import Peer, Request, plain

FAST = ("--step-time", "4ms")
DRAFTS = (*FAST, "--method", "eagle3", "--draft-tokens", "3", "--acceptance-length", "2")
MADE_UP = '{"rejection_sample_method": "synthetic", "synthetic_acceptance_length": 2.0}'
LOAD = ("--concurrency", 8, "--num-requests", 40, "--output-tokens", 65, "--ignore-eos")
SOUND = ("foreign_traffic", "server_partly_read", "scrape_failed", "server_restarted")
"""Doubts that a quiet server of one's own gives no reason for."""

Run = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def drafting() -> Iterator[ChildServer]:
    """vLLM with two tokens a step, and it says so."""
    with spawn_simulator(*DRAFTS, "--speculation-config", MADE_UP) as server:
        yield server


@pytest.fixture(scope="module")
def baseline() -> Iterator[ChildServer]:
    """vLLM without drafts."""
    with spawn_simulator(*FAST) as server:
        yield server


@pytest.fixture
def measure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command against a server, in this process, and gives what it printed as JSON."""

    def call(server: ChildServer | ChatServer, *arguments: object, command: str = "run") -> dict[str, Any]:
        line = [command, "--url", server.url, "--json", "--no-progress", "--out", tmp_path, "--scrape-interval", "0.2s"]
        code = run_command_line([str(word) for word in (*line, *arguments)])
        said = capsys.readouterr()
        assert code in (0, 3), said.err  # 3: a busy machine is a poor client, which is not this test's matter
        return json.loads(said.out)  # type: ignore[no-any-return]

    return call


@dataclass
class Counting(ChatServer):
    """Counts its answers of two tokens on one page of two engines, in turn; `hides` it from the first answer on."""

    hides: bool = False

    def _reply(self, request: Request) -> tuple[bytes, ...]:
        if "/metrics" not in request.line:
            return super()._reply(request)
        answers = len(self.bodies)
        if self.hides and answers:
            return (plain(b"gone", status="404 Not Found"),)
        lines = [
            f'vllm:{name}_tokens_total{{engine="{engine}",model_name="m"}} {tokens * ((answers + 1 - engine) // 2)}\n'
            for name, tokens in (("prompt", 3), ("generation", 2))
            for engine in (0, 1)
        ]
        return (plain("".join(lines).encode()),)


@dataclass
class Owned(ChatServer):
    """Says that it is vLLM; `page` gives its metrics page by the number of answers that were asked of it."""

    page: Callable[[int], bytes] = field(kw_only=True)
    pause_s: float = 0.0

    def _serve(self, peer: Peer) -> None:
        while (request := peer.read_request()) is not None:
            peer.send(*self._reply(request), pause_s=self.pause_s if request.line.startswith("POST") else 0.0)

    def _reply(self, request: Request) -> tuple[bytes, ...]:
        if "/v1/models" in request.line:
            return (plain(b'{"data": [{"id": "m", "owned_by": "vllm"}]}'),)
        return (self.page(len(self.bodies)),) if "/metrics" in request.line else super()._reply(request)


def counted(tokens: object) -> bytes:
    """A page with as many output tokens; each answer has two."""
    page = f'process_start_time_seconds 5\nvllm:generation_tokens_total{{engine="0",model_name="m"}} {tokens}\n'
    return plain(page.encode()).replace(b"application/json", b"text/plain")


def test_a_drafter_of_which_nothing_is_accepted_is_reported(
    measure: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every form of the report holds, with an acceptance length of 1 and no table of positions that none reached."""
    options = (*FAST, "--method", "eagle3", "--draft-tokens", "3", "--acceptance-length", "1")
    with spawn_simulator(*options) as server:
        summary = measure(server, "--concurrency", 4, "--num-requests", 8, "--output-tokens", 9, "--ignore-eos")
    assert summary["speculation"]["acceptance_length"] == 1.0
    folder, page = tmp_path / summary["run_id"], tmp_path / "page.html"
    assert run_command_line(["report", str(folder)]) in (0, 3)
    text = capsys.readouterr().out
    assert "Acceptance length" in text
    assert "draft token  accepted" not in text
    assert run_command_line(["report", str(folder), "--html", str(page)]) in (0, 3)
    assert "Acceptance by draft token" not in page.read_text(encoding="utf-8")


def folder_of(summary: dict[str, Any], out: Path) -> RunFolder:
    return RunFolder.open(out / summary["run_id"])


def lengths(summary: dict[str, Any]) -> dict[str, float | None]:
    """Acceptance length by origin."""
    return {view["origin"]: view["acceptance_length"] for view in summary["speculation"]["views"]}


def kinds(summary: dict[str, Any]) -> set[str]:
    return {finding["kind"] for finding in summary["verdict"]["findings"]}


def test_every_origin_reads_the_acceptance_that_is_forced(
    drafting: ChildServer, measure: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two tokens a step by counters, by each answer's own account and by the stream, and their counts are equal.

    The server's configuration, tokens and times stand beside; the stored run tells the same again.
    """
    summary = measure(drafting, *LOAD)
    assert lengths(summary) == {"counters": 2.0, "per_request": 2.0, "stream": 2.0}
    assert all(each["agrees"] for each in summary["speculation"]["agreement"])
    assert (summary["speculation"]["method"], summary["speculation"]["draft_tokens"]) == ("eagle3", 3)
    server, folder = summary["server"], folder_of(summary, tmp_path)
    records = list(folder.records())
    assert (server["scraped"], server["processes"], server["resets"], server["notes"]) == (True, 1, [], [])
    assert server["speculation"]["forced_acceptance_length"] == 2.0
    assert server["configuration"]["max_num_seqs"] == 256
    assert server["generation_tokens_delta"] == 40 * 65
    assert server["prompt_tokens_delta"] == sum(record.input_tokens or 0 for record in records)
    assert server["request_times"]["decode_s"] == pytest.approx(32 * 0.004, rel=0.01)
    assert "forced_acceptance" in kinds(summary)
    assert kinds(summary).isdisjoint(SOUND)

    scrapes = list(folder.scrapes())
    assert len(scrapes) == server["scrapes"] >= 3
    assert scrapes[0].taken_ns < min(record.sent_ns or 0 for record in records)
    assert folder.load_manifest().server["configuration_page"]["vllm_config"]["scheduler_config"]["max_num_seqs"] == 256
    assert run_command_line(["report", str(folder.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == summary


def test_a_baseline_has_no_speculation_and_no_zeros_for_it(baseline: ChildServer, measure: Run) -> None:
    """Null; and one page under two addresses is one process, counted once."""
    other_name = f"{baseline.url.replace('127.0.0.1', 'localhost')}/metrics"
    pages = ("--metrics-url", f"{baseline.url}/metrics", "--metrics-url", other_name)
    summary = measure(baseline, "--num-requests", 4, "--output-tokens", 4, "--ignore-eos", *pages)
    assert summary["speculation"] is None
    server = summary["server"]
    assert (server["speculation"], server["configuration"]["speculates"]) == (None, False)
    assert (server["processes"], server["generation_tokens_delta"]) == (1, 16)
    assert any("counted once" in note for note in server["notes"])
    assert kinds(summary).isdisjoint(SOUND)


def test_engines_of_one_page_are_summed(measure: Run) -> None:
    """Two engines behind one front end: neither is a replica that was not read, nor traffic of others."""
    with Counting() as both:
        summary = measure(both, "--num-requests", 7, "--metrics-url", both.url)
    server = summary["server"]
    assert (server["processes"], server["prompt_tokens_delta"], server["generation_tokens_delta"]) == (2, 7 * 3, 7 * 2)
    assert (server["scraped"], server["resets"], server["notes"]) == (True, [], [])
    assert kinds(summary).isdisjoint(SOUND)


def test_a_page_that_goes_in_the_middle_is_said(measure: Run) -> None:
    """Nothing is made of a part of the run: no tokens over it, and a warning that says why."""
    with Counting(hides=True) as going:
        summary = measure(going, "--num-requests", 3, "--metrics-url", going.url)
    server = summary["server"]
    assert (server["scraped"], server["generation_tokens_delta"]) == (False, None)
    assert server["failed_example"].endswith("HTTP 404")
    assert "page 0 was not read after the last request" in server["notes"]
    assert kinds(summary) & set(SOUND) == {"scrape_failed"}


HUGE = gzip.compress(b"#" * (64 * 2**20), 1)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (plain(b"", status="401 Unauthorized"), "HTTP 401"),
        (plain(b"", status="500 Internal Server Error"), "HTTP 500"),
        (plain(b"", status="307 Moved", headers="Location: /metrics/\r\n"), "HTTP 307: redirects elsewhere"),
    ],
    ids=["401", "500", "307"],
)
def test_a_page_that_is_withheld_from_the_start_is_said(reply: bytes, reason: str, measure: Run) -> None:
    """A server that is known to have one, and refuses: a warning with the reason, and no figure at all."""
    with Owned(page=lambda answers: reply) as server:
        summary = measure(server, "--num-requests", 3)
    told = summary["server"]
    assert (told["scraped"], told["failed_scrapes"]) == (False, told["scrapes"])
    assert told["failed_example"].endswith(reason) or reason in told["failed_example"]
    assert (told["generation_tokens_delta"], told["running_requests"]["peak"], summary["speculation"]) == (None,) * 3
    (finding,) = [each for each in summary["verdict"]["findings"] if each["kind"] == "scrape_failed"]
    assert finding["severity"] == "warning"
    assert reason in finding["evidence"]


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (plain(b"", status="503 Service Unavailable"), "HTTP 503"),
        (plain(b"vllm:generation_tok"), "cut off"),
        (plain(HUGE, headers="Content-Encoding: gzip\r\n"), "4 MiB or more"),
        (b"nonsense\r\n\r\n", "RemoteProtocolError"),
    ],
    ids=["503", "half", "bomb", "no HTTP"],
)
def test_a_page_that_breaks_at_the_end_leaves_no_half_sum(broken: bytes, reason: str, measure: Run) -> None:
    """Good before the first request and bad after the last: a warning with the reason, not zero, not a part."""
    with Owned(page=lambda answers: broken if answers else counted(0)) as server:
        summary = measure(server, "--num-requests", 3)
    told = summary["server"]
    assert (told["scraped"], told["generation_tokens_delta"]) == (False, None)
    assert reason in told["failed_example"]
    assert kinds(summary) & set(SOUND) == {"scrape_failed"}


@pytest.mark.parametrize(
    ("in_the_middle", "found", "delta"),
    [("NaN", set(), 12), ("1", {"server_restarted"}, None), ("+Inf", set(), 12)],
)
def test_what_a_counter_does_in_the_middle(
    in_the_middle: str, found: set[str], delta: int | None, measure: Run
) -> None:
    """Without a number it is a gap, and what it counted is known all the same; below its old value it is a restart."""

    def page(answers: int) -> bytes:
        return counted(in_the_middle if 2 <= answers < 5 else 100 + 2 * answers)

    with Owned(page=page, pause_s=0.05) as server:
        summary = measure(server, "--num-requests", 6, "--concurrency", 1)
    assert kinds(summary) & set(SOUND) == found
    assert summary["server"]["generation_tokens_delta"] == delta
    if found:
        assert re.search(r"fell or went.* between [\d.]+ s and [\d.]+ s", summary["server"]["resets"][0])


@pytest.fixture
def nvml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """NVIDIA's library, as a module of that name that plays two GPUs."""
    played = tmp_path / "library"
    played.mkdir()
    (played / "pynvml.py").write_text(
        "from tests.fakes.scripted_nvml import NVMLError, ScriptedNvml\n"
        "globals().update((name, getattr(library, name)) for library in [ScriptedNvml()] for name in dir(library)"
        " if name.startswith('nvml'))\n"
    )
    monkeypatch.syspath_prepend(played)
    yield
    sys.modules.pop("pynvml", None)


@pytest.mark.usefixtures("nvml")
def test_gpus_of_this_machine_stand_beside_the_server(
    measure: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Power, use, memory and energy in summary and report; of the GPUs that were named alone."""
    with Counting() as server:
        both, second = (
            measure(server, "--num-requests", 3, "--metrics-url", server.url, "--local-gpus", which)
            for which in ("all", "1")
        )
    gpus = both["server"]["gpus"]
    assert (gpus["count"], gpus["power_w"]) == (2, pytest.approx(502.5))
    assert gpus["utilisation_ratio"] == {"mean": None, "peak": None}, "one of the two does not tell it"
    assert (gpus["energy_origin"], gpus["energy_j"] > 0) == ("power", True)
    assert kinds(both).isdisjoint(SOUND)
    assert (second["server"]["gpus"]["count"], second["server"]["gpus"]["power_w"]) == (1, pytest.approx(90))
    assert run_command_line(["report", str(folder_of(both, tmp_path).path)]) == 0
    shown = capsys.readouterr().out
    assert f"2 GPUs, {gpus['power_w']:.3g} W on average" in " ".join(shown.split())


def test_gpus_that_cannot_be_read_stop_before_any_load(
    nvml: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that is not there, and no library at all: said in words, and nothing is sent."""
    with Counting() as server:
        line = ["run", "--url", server.url, "--out", str(tmp_path / "runs"), "--local-gpus"]
        assert run_command_line([*line, "5"]) == 2
        assert "--local-gpus: GPUs cannot be read: this machine has 2 of them" in capsys.readouterr().err
        sys.modules["pynvml"] = None  # type: ignore[assignment]
        assert run_command_line([*line, "all"]) == 2
        assert "pip install '.[gpu]'" in capsys.readouterr().err
        assert server.bodies == []


@pytest.mark.slow
def test_prompts_are_kept_apart_in_the_cache_by_salt_or_reset(
    baseline: ChildServer, measure: Run, tmp_path: Path
) -> None:
    """The same prompts again are found in the cache; under a salt they are not, and after a reset neither."""
    same = ("--num-requests", 4, "--seed", 7, "--input-tokens", 200, "--output-tokens", 2)
    measure(baseline, *same)
    again = measure(baseline, *same)
    salted = measure(baseline, *same, "--cache-salt", "random")
    reset = measure(baseline, *same, "--reset-prefix-cache")
    hits = [summary["server"]["prefix_hit_ratio"] for summary in (again, salted, reset)]
    assert hits[0] > 0.5
    assert hits[1:] == [0.0, 0.0]
    asked = folder_of(salted, tmp_path).load_manifest().first_request
    assert asked is not None
    assert len(asked["cache_salt"]) == 16


def test_nothing_is_read_where_nobody_wants_it(baseline: ChildServer, measure: Run, tmp_path: Path) -> None:
    """No file, no figures, no doubt."""
    summary = measure(baseline, "--num-requests", 2, "--output-tokens", 2, "--no-scrape")
    assert not (folder_of(summary, tmp_path).path / "server.jsonl.zst").exists()
    assert (summary["server"]["scraped"], summary["server"]["scrapes"]) == (False, 0)
    assert "scrape_failed" not in kinds(summary)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dialect", "origins"),
    [
        ("sglang", {"counters": 2.0, "per_request": 2.0, "stream": 2.0, "gauge": 2.0}),
        ("tensorrt-llm", {"counters": 2.0, "gauge": 2.0}),
        ("llamacpp", {"counters": 2.0, "per_request": None}),
    ],
)
def test_other_engines_read_it_too(dialect: str, origins: dict[str, float | None], measure: Run) -> None:
    """From every origin that the engine has: llama.cpp counts no steps of a request, TensorRT-LLM tells no request."""
    with spawn_simulator(*DRAFTS, "--dialect", dialect) as server:
        summary = measure(server, *LOAD, "--num-requests", 80)
    assert lengths(summary) == {
        origin: None if length is None else pytest.approx(length, abs=0.02) for origin, length in origins.items()
    }
    assert all(each["agrees"] for each in summary["speculation"]["agreement"])
    assert summary["server"]["scraped"] is True
    assert summary["server"]["generation_tokens_delta"] == 80 * 65
    assert kinds(summary).isdisjoint(SOUND)


@pytest.mark.slow
def test_traffic_of_others_is_noticed(baseline: ChildServer, measure: Run, tmp_path: Path) -> None:
    """A tenth more by another client during the run."""
    answers = ("--output-tokens", 20, "--ignore-eos")
    line = ("--url", baseline.url, "--num-requests", 8, *answers, "--quiet", "--no-scrape")
    with ThreadPoolExecutor() as others:
        other = others.submit(loadgen, "run", *line, out=tmp_path / "other")
        summary = measure(baseline, "--num-requests", 80, "--concurrency", 1, *answers)
        assert other.result().code in (0, 3)
    assert "foreign_traffic" in kinds(summary)
    assert summary["server"]["generation_tokens_delta"] == 88 * 20


@pytest.mark.slow
def test_replicas_are_summed(baseline: ChildServer, drafting: ChildServer, measure: Run) -> None:
    """Two processes behind two addresses, of which one does the work: both are counted, each once."""
    pages = ("--metrics-url", f"{baseline.url},{drafting.url}")
    server = measure(baseline, *LOAD, *pages)["server"]
    assert (server["processes"], server["generation_tokens_delta"]) == (2, 40 * 65)


@pytest.mark.slow
def test_a_page_of_another_replica_does_not_hold_the_work(
    baseline: ChildServer, drafting: ChildServer, measure: Run
) -> None:
    """Only the idle replica's page is read: that the client's tokens are on no page is said."""
    with ThreadPoolExecutor() as others:
        line = ("--url", drafting.url, "--num-requests", 4, "--output-tokens", 65, "--ignore-eos", "--quiet")
        other = others.submit(loadgen, "run", *line, "--no-scrape", out=Path("/nowhere"))
        summary = measure(baseline, *LOAD, "--concurrency", 2, "--metrics-url", drafting.url)
        other.result()
    assert "server_partly_read" in kinds(summary)


@pytest.mark.slow
def test_a_restart_in_the_window_voids_the_counters(measure: Run) -> None:
    """The server goes down for half a second: said, and its counters are null rather than small."""
    with spawn_simulator(*DRAFTS, "--fault", "restart=3s:500ms") as server:
        summary = measure(server, "--concurrency", 2, "--duration", "6s", "--output-tokens", 65, "--ignore-eos")
    assert "server_restarted" in kinds(summary)
    told = summary["server"]
    said, *_ = told["resets"]
    first_s, last_s = map(float, re.findall(r"between ([\d.]+) s and ([\d.]+) s", said)[0])
    assert 0 < first_s < last_s <= 7
    assert last_s - first_s < 2, "down for half a second, read five times a second"
    (finding,) = [each for each in summary["verdict"]["findings"] if each["kind"] == "server_restarted"]
    assert said in finding["evidence"]
    assert (told["generation_tokens_delta"], told["preemptions"], told["prefix_hit_ratio"]) == (None, None, None)
    assert "counters" not in lengths(summary)
    assert "foreign_traffic" not in kinds(summary)


@pytest.mark.slow
def test_a_sweep_resets_and_reads_at_every_level(baseline: ChildServer, measure: Run) -> None:
    """Each level stands for itself: its own tokens, and a cache that holds nothing of the level before."""
    levels = ("--concurrency", "1,4", "--num-requests", 8, "--output-tokens", 9, "--ignore-eos", "--settle", "100ms")
    sweep = measure(baseline, *levels, "--reset-prefix-cache", command="sweep")
    servers = [level["summary"]["server"] for level in sweep["levels"]]
    assert [server["scraped"] for server in servers] == [True, True]
    assert [server["generation_tokens_delta"] for server in servers] == [(8 + 4) * 9, (8 + 4) * 9]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_what_was_read_until_then_is_kept(baseline: ChildServer, how: signal.Signals, tmp_path: Path) -> None:
    """An interrupted run has its last reading too, a killed one those before; both can be reported."""
    line = [sys.executable, "-m", "loadgen", "run", "--url", baseline.url, "--duration", "60s", "--quiet"]
    with subprocess.Popen([*line, "--scrape-interval", "0.2s", "--out", str(tmp_path)]) as process:
        deadline_s = time.monotonic() + 30
        while not (files := list(tmp_path.glob("*/server.jsonl.zst"))) or files[0].stat().st_size < 1000:
            assert time.monotonic() < deadline_s
            time.sleep(0.1)
        process.send_signal(how)
    folder = RunFolder.open(files[0].parent)
    assert len(list(folder.scrapes())) >= 3
    told = loadgen("report", folder.path, "--json", out=tmp_path).summary["server"]
    assert told["scraped"] is (how is signal.SIGINT)
    assert ("the run was killed before the last reading" in told["notes"]) is (how is signal.SIGKILL)


@pytest.mark.slow
def test_a_cache_that_cannot_be_reset_is_said_before_any_load(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """llama.cpp has no endpoint for it and knows no salt; nothing is sent."""
    with spawn_simulator(*FAST, "--dialect", "llamacpp") as server:
        for option in (["--reset-prefix-cache"], ["--cache-salt", "random"]):
            assert run_command_line(["run", "--url", server.url, "--out", str(tmp_path), *option]) == 2
            assert option[0] in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
