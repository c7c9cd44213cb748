"""The routes beside Locust's own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from flask import Flask, jsonify, request
from flask.testing import FlaskClient

from loadgen.adapters.prometheus.monitor import Monitor
from loadgen.adapters.prometheus.server import MetricsServer
from loadgen.locustio.swarm.routes import add_routes
from loadgen.locustio.swarm.state import LadderState

MEASURED = {"rows": [], "charts": [], "verdict": {"words": "", "kind": "valid"}, "doubts": [], "knee": ""}


class Page:
    """An app with Locust's routes as far as ours touch them. `forms` are those that came through to Locust."""

    def __init__(
        self, *, wrong: str | None = None, metrics_url: str | None = None, locust_state: str = "running"
    ) -> None:
        self.state, self.wrong = LadderState(), wrong
        self.forms: list[Mapping[str, str]] = []
        self.started: list[Mapping[str, str]] = []
        self.insisted = 0
        app = Flask("page")
        app.add_url_rule("/", "index", view_func=lambda: "<html><body></body></html>")
        app.add_url_rule("/stats/requests", "stats", view_func=lambda: jsonify({"state": locust_state, "stats": []}))
        app.add_url_rule("/swarm", "swarm", view_func=self._swarm, methods=["POST"])
        app.add_url_rule("/stop", "stop", view_func=lambda: jsonify({"success": True}), methods=["POST"])
        add_routes(
            app, self.state, workers=list, metrics_url=lambda: metrics_url, start=self._start, insist=self._insist
        )
        self.client: FlaskClient = app.test_client()

    def _start(self, form: Mapping[str, str]) -> str | None:
        self.started.append(form)
        return self.wrong

    def _insist(self) -> None:
        self.insisted += 1

    def _swarm(self) -> Any:
        self.forms.append(request.form.to_dict())
        return jsonify({"success": True})


def test_the_page_loads_nothing_from_elsewhere() -> None:
    """Its policy says so, and each of its files is there."""
    client = Page().client
    answer = client.get("/loadgen/")
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    names = [
        part.split('"')[0].removeprefix("assets/") for part in answer.text.split('="') if part.startswith("assets/")
    ]
    assert {"uPlot.js", "uPlot.css", "llm.js", "llm.css", "page.css"} == set(names)
    assert [client.get(f"/loadgen/assets/{name}").status_code for name in names] == [200] * len(names)
    assert client.get("/loadgen/assets/run.py").status_code == 404


def test_locusts_page_leads_there() -> None:
    """By a link, and so does its tab by its rows."""
    page = Page()
    assert 'href="./loadgen/"' in page.client.get("/").text
    assert page.client.get("/stats/requests").json["extended_stats"] == [{"key": "llm", "data": []}]


def test_locusts_page_goes_on_asking_until_a_test_has_stopped() -> None:
    """It would show STOPPING for ever."""
    assert Page(locust_state="stopping").client.get("/stats/requests").json["state"] == "running"
    assert Page(locust_state="stopped").client.get("/stats/requests").json["state"] == "stopped"


def test_who_stops_a_ladder_that_is_stopping_insists() -> None:
    """Locust's page shows it as running, and keeps its button, until it has ended."""
    page = Page(locust_state="stopped")
    page.state.start()
    page.client.post("/stop")
    assert page.insisted == 0
    page.state.stopping()
    assert page.client.get("/stats/requests").json["state"] == "running"
    assert page.client.post("/stop").json == {"success": True}
    assert page.insisted == 1
    page.state.take({"event": "ended", "code": 130, "interrupted": True})
    page.client.post("/stop")
    assert (page.insisted, page.client.get("/stats/requests").json["state"]) == (1, "stopped")


def test_a_wrong_form_is_answered_as_locusts_page_shows_it() -> None:
    """And Locust never hears of it."""
    page = Page(wrong="--slo: expected METRIC=TIME pairs")
    answer = page.client.post("/swarm", data={"slo": "fast"}).json
    assert answer == {"success": False, "message": "--slo: expected METRIC=TIME pairs", "host": ""}
    assert (page.started, page.forms) == ([{"slo": "fast"}], [])


def test_a_right_one_starts_ours_and_then_locust() -> None:
    """In that order."""
    page = Page()
    assert page.client.post("/swarm", data={"slo": "ttft=1s"}).json == {"success": True}
    assert (page.started, len(page.forms)) == ([{"slo": "ttft=1s"}], 1)


def test_what_stands_in_locusts_own_fields_does_not_matter() -> None:
    """It would say that a number is none, and our ladder would run all the same."""
    page = Page()
    page.client.post("/swarm", data={"host": "http://a:1", "user_count": "x", "run_time": "soon", "concurrency": "1"})
    assert page.forms == [{"host": "http://a:1", "concurrency": "1"}]


def test_report_and_result_are_there_once_the_ladder_has_ended(tmp_path: Path) -> None:
    """Before that they are said not to be; the report can be looked at and downloaded."""
    page, report = Page(), tmp_path / "sweep-1" / "report.html"
    assert [page.client.get(f"/loadgen/{name}").status_code for name in ("report", "result")] == [404, 404]
    report.parent.mkdir()
    report.write_text("<p>the report")
    page.state.take({"event": "ended", "code": 0, "interrupted": False, "report": str(report), "document": "{}"})
    with page.client.get("/loadgen/report") as shown:
        assert shown.text == "<p>the report"
    with page.client.get("/loadgen/report?download") as downloaded:
        assert "filename=sweep-1.html" in downloaded.headers["Content-Disposition"]
    assert page.client.get("/loadgen/result").json == {}


def test_the_state_is_json_for_scripts() -> None:
    """All that the page shows."""
    page = Page()
    page.state.start()
    page.state.take({"event": "begun", **MEASURED})
    shown = page.client.get("/loadgen/state").json
    assert (shown["phase"], shown["rows"], shown["workers"]) == ("starting", [], [])


@pytest.mark.parametrize("accept", ["text/plain", "application/openmetrics-text; version=1.0.0"])
def test_metrics_are_those_of_the_process_that_measures(accept: str) -> None:
    """In the form that is asked for; without that process there are none."""
    assert Page().client.get("/metrics").status_code == 503
    assert Page(metrics_url="http://127.0.0.1:1/metrics").client.get("/metrics").status_code == 503
    monitor = Monitor()
    monitor.tell({"command": "sweep", "run_id": "sweep-1", "version": "1"})
    server = MetricsServer(monitor, host="127.0.0.1", port=0)
    try:
        answer = Page(metrics_url=server.url).client.get("/metrics", headers={"Accept": accept})
    finally:
        server.close()
    assert answer.headers["Content-Type"].startswith(accept.partition(";")[0])
    assert 'loadgen_run_info{command="sweep"' in answer.text
