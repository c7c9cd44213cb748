"""The files of the page, without a browser: what is served, under which policy, and what the code never does."""

import hashlib
import json
import re
from importlib import resources
from importlib.resources.abc import Traversable
from typing import get_args

import httpx2
import pytest

from loadgen.service.auth.audit import Action
from loadgen.service.wire.webhooks import WebhookKind

PAGE = resources.files("loadgen.service").joinpath("page")
ADDRESSES = [
    *("/", "/runs", "/runs/new", "/runs/20260131-120000-000-abcdef", "/compare?run=a&run=b", "/sign-in"),
    *("/schedules", "/schedules/new", "/capacity", "/capacity/abc", "/baselines", "/keys"),
    *("/webhooks", "/webhooks/0123456789abcdef", "/audit?action=key.make"),
]


def modules() -> dict[str, str]:
    """The page's own scripts by their names."""

    def found(folder: Traversable, prefix: str) -> dict[str, str]:
        return {prefix + path.name: path.read_text() for path in folder.iterdir() if path.name.endswith(".js")}

    return found(PAGE, "") | found(PAGE.joinpath("views"), "views/")


@pytest.mark.parametrize("address", ADDRESSES)
async def test_every_address_has_the_shell(client: httpx2.AsyncClient, address: str) -> None:
    """So a reload and a link from elsewhere lead to the same, under a policy that lets in nothing from elsewhere."""
    answer = await client.get(address)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert '<main id="content"' in answer.text
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'self';")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


A_BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.mark.parametrize("address", ["/nothing", "/runs/a/b", "/v1runs", "/schedules/new/again", "/capacity/a/b?c=d"])
async def test_an_address_that_is_none_is_told_in_the_page(client: httpx2.AsyncClient, address: str) -> None:
    """A browser gets the shell, under the same policy, as something that is not there; a program gets a problem."""
    answer = await client.get(address, headers=A_BROWSER)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert '<main id="content"' in answer.text
    assert answer.headers["content-security-policy"].startswith("default-src 'self';")
    for accept in ("*/*", "application/json", "application/problem+json, text/html;q=0.1"):
        answer = await client.get(address, headers={"Accept": accept})
        assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


@pytest.mark.parametrize("address", ["/v1", "/v1/nothing", "/v1/runs/none", "/page/no.js"])
async def test_the_api_answers_browsers_as_it_answers_programs(client: httpx2.AsyncClient, address: str) -> None:
    """What is not there beneath it is a problem, whoever asks."""
    answer = await client.get(address, headers=A_BROWSER)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
    assert answer.json()["type"] == "urn:loadgen:problem:not-found"


async def test_what_the_shell_asks_for_is_there(client: httpx2.AsyncClient) -> None:
    """Each script and style sheet of the shell, and each module that a module imports, with its type."""
    shell = (await client.get("/")).text
    asked = set(re.findall(r'(?:src|href)="(/page/[^"]+)"', shell))
    for code in modules().values():
        asked |= set(re.findall(r'from "([^"]+)"', code))
    assert len(asked) > 20
    kinds = {"js": "text/javascript", "mjs": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    for address in sorted(asked):
        answer = await client.get(address)
        assert answer.status_code == 200, address
        assert answer.headers["content-type"].startswith(kinds[address.rpartition(".")[2]])


async def test_what_has_not_changed_is_not_sent_again(client: httpx2.AsyncClient) -> None:
    """A browser that has a file asks whether it is still the same."""
    first = await client.get("/page/app.js")
    again = await client.get("/page/app.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "name",
    ["../app.py", "..%2fapp.py", "%2e%2e/app.py", "views/../../app.py", "views", "views/", "", "/etc/passwd", "no.js"],
)
async def test_no_other_file_is_served(client: httpx2.AsyncClient, name: str) -> None:
    """A name leads to a file of the page or nowhere."""
    answer = await client.get(f"/page/{name}")
    assert answer.status_code == 404


async def test_a_page_that_nobody_opened_a_session_for_is_told_so_without_an_error(client: httpx2.AsyncClient) -> None:
    """Without keys everybody is let in; with one, nobody is nobody, and a wrong key is still refused."""
    assert (await client.get("/page/session")).json()["open"] is True
    assert (await client.post("/v1/keys", json={"name": "first", "scope": "admin"})).status_code == 201
    assert (await client.get("/page/session")).status_code == 204
    assert (await client.get("/v1/session")).status_code == 401


async def test_the_first_key_can_make_others(client: httpx2.AsyncClient) -> None:
    """Otherwise nobody could make one ever after."""
    answer = await client.post("/v1/keys", json={"name": "first", "scope": "read"})
    assert answer.status_code == 409
    assert (await client.get("/page/session")).json()["open"] is True


def words_of(module: str, table: str) -> set[str]:
    """The keys of a table of words in a module."""
    code = modules()[module]
    body = code[code.index(f"const {table} = ") :].partition("\n};" if f"const {table} = {{" in code else "\n];")[0]
    return set(re.findall(r'^  (?:\[)?"?([a-z_.]+)"?[:,]', body, re.MULTILINE))


def test_the_page_has_words_for_all_that_it_names() -> None:
    """Kinds of messages and of changes, of which the API has no list for people."""
    assert words_of("webhook_form.js", "KINDS") == set(get_args(WebhookKind))
    assert words_of("views/audit.js", "ACTIONS") == set(Action)


def test_text_only_ever_becomes_text() -> None:
    """No module makes elements out of text, runs text, or needs a style that the policy would not let in."""
    shell = PAGE.joinpath("shell.html").read_text()
    assert not re.search(r"<style|\son\w+=|\sstyle=|<script(?![^>]*\ssrc=)", shell)
    for name, code in modules().items():
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|\bstyle:", code
        ), name


async def test_vendored_files_are_those_of_the_pinned_version(client: httpx2.AsyncClient) -> None:
    """Nobody edited them by hand, and the licence is served with them."""
    folder = PAGE.joinpath("vendor/js-yaml")
    about = json.loads(folder.joinpath("VERSION.json").read_text())
    assert set(about["sha256"]) == {"js-yaml.esm.min.mjs", "LICENSE"}
    for name, digest in about["sha256"].items():
        assert hashlib.sha256(folder.joinpath(name).read_bytes()).hexdigest() == digest
    for address in ("/page/vendor/js-yaml-licence.txt", "/page/uPlot-licence.txt"):
        assert "Permission is hereby granted" in (await client.get(address)).text


def test_the_page_names_no_other_host() -> None:
    """All that it loads is its own; addresses stand in examples alone."""
    for name, code in modules().items():
        named = set(re.findall(r"https?://([^/\"'\s`}]+)", code))
        assert named <= {"127.0.0.1:8000", "127.0.0.1:8001", "hooks.example.org"}, name
