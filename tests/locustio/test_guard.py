"""Who may use Locust's page."""

import base64

import pytest
from flask import Flask
from flask.testing import FlaskClient
from flask_cors import CORS

from loadgen.locustio.swarm.guard import guard


def page(*, login: tuple[str, str] | None = None, loopback: bool = True) -> FlaskClient:
    """An app as Locust makes it, which lets every site read it, behind the guard."""
    app = Flask("page")
    CORS(app)
    app.add_url_rule("/", view_func=lambda: "here", methods=["GET", "POST"])
    guard(app, login=login, loopback=loopback)
    return app.test_client()


@pytest.mark.parametrize("host", ["localhost:8089", "127.0.0.1:8089", "[::1]:8089"])
def test_this_machine_is_let_in(host: str) -> None:
    """By any of its own names."""
    assert page().get("/", headers={"Host": host}).text == "here"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1"])
def test_a_strangers_name_for_this_machine_leads_nowhere(host: str) -> None:
    """A name that somebody else has resolved to 127.0.0.1 gets nothing."""
    assert page().get("/", headers={"Host": host}).status_code == 403


def test_another_sites_page_cannot_send() -> None:
    """Its form would start a load; the page's own may, and so may a script, which says no origin."""
    client = page()
    for origin, status in (("http://evil.example", 403), ("null", 403), ("http://localhost", 200)):
        assert client.post("/", headers={"Origin": origin}).status_code == status
    assert client.post("/").status_code == 200


def test_another_sites_page_cannot_read() -> None:
    """What Locust allows all sites is taken back."""
    answer = page().get("/", headers={"Origin": "http://evil.example"})
    assert not [name for name, _ in answer.headers if name.lower().startswith("access-control-")]


@pytest.mark.parametrize(
    ("given", "status"), [("ada:love", 200), ("ada:wrong", 401), ("eve:love", 401), ("ada", 401), (None, 401)]
)
def test_a_login_is_asked_for(given: str | None, status: int) -> None:
    """Beyond this machine everybody has to know it."""
    headers = {} if given is None else {"Authorization": "Basic " + base64.b64encode(given.encode()).decode()}
    client = page(login=("ada", "love"), loopback=False)
    answer = client.get("/", headers=headers | {"Host": "load.example"})
    assert answer.status_code == status
    assert status == 200 or answer.headers["WWW-Authenticate"].startswith("Basic ")
