"""Which metrics pages are read, and what is sent to whom."""

from typing import Any

import pytest

from loadgen.adapters.servers.generic import TargetFacts
from loadgen.core.errors import ConfigError
from loadgen.options.load import RunOptions
from loadgen.options.resolve import resolve
from loadgen.wiring.probe import Pages, pages_of
from loadgen.wiring.target import destination_of

URL = "http://gpu:8000/gate/v1"


def pages(*, engine: str | None = "vllm", metrics_path: str | None = "/metrics", **given: Any) -> Pages:
    options = resolve(RunOptions, {"url": URL, **given}, environment={})
    facts = TargetFacts(model="m", engine=engine, metrics_path=metrics_path)
    return pages_of(options, facts, destination_of(options))


def urls(found: Pages) -> dict[str, str]:
    return {source: page.url for source, page in found.items()}


def test_the_targets_own_page_is_read_unless_others_are_named() -> None:
    """Below its prefix; in the order given, each once."""
    assert urls(pages()) == {"0": "http://gpu:8000/gate/metrics"}
    named = ["http://one:8000/metrics,http://two:8000", "http://one:8000/metrics"]
    assert urls(pages(metrics_url=named)) == {"0": "http://one:8000/metrics", "1": "http://two:8000/metrics"}
    assert urls(pages(gpu_metrics_url="http://gpu:9400/metrics")) == {
        "0": "http://gpu:8000/gate/metrics",
        "gpu": "http://gpu:9400/metrics",
    }


def test_a_page_that_nothing_is_known_of_is_not_read() -> None:
    """An unknown engine, no page, or nobody wants it; a page that was named is read whatever the engine."""
    assert pages(engine="other") == {}
    assert pages(metrics_path=None) == {}
    assert pages(scrape="false") == {}
    assert urls(pages(engine=None, metrics_path=None, metrics_url="http://one:1/m")) == {"0": "http://one:1/m"}


def test_a_page_that_was_withheld_is_read_all_the_same() -> None:
    """So that its failure is told by every reading, or that it is read once it is there."""
    options = resolve(RunOptions, {"url": URL}, environment={})
    facts = TargetFacts(model="m", engine="vllm", unread_metrics_path="/metrics")
    assert urls(pages_of(options, facts, destination_of(options))) == {"0": "http://gpu:8000/gate/metrics"}


@pytest.mark.parametrize(
    ("given", "indices"), [({}, ()), ({"local_gpus": "all"}, None), ({"local_gpus": "2,0,2"}, (2, 0))]
)
def test_which_gpus_of_this_machine_are_read(given: dict[str, Any], indices: tuple[int, ...] | None) -> None:
    """None of them, all of them, or those that are named."""
    assert resolve(RunOptions, {"url": URL, **given}, environment={}).gpu_indices == indices


def test_a_socket_has_its_pages_too() -> None:
    """A path on the server stands after the socket's own."""
    assert urls(pages(url="unix:///run/vllm.sock")) == {"0": "unix:///run/vllm.sock:/metrics"}


def test_the_targets_key_goes_to_the_target_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """To its own host and port; elsewhere goes what the address itself says, and nothing stored has it."""
    monkeypatch.setenv("KEY", "sk-very-secret")
    found = pages(
        api_key_env="KEY",
        header=["X-Team=a"],
        metrics_url=["http://gpu:8000/metrics", "http://me:my-password@other:8000/metrics", "http://gpu:9000/metrics"],
    )
    own, other, port = (page.destination.request_headers() for page in found.values())
    assert (own["Authorization"], own["X-Team"]) == ("Bearer sk-very-secret", "a")
    assert other["Authorization"].startswith("Basic ")
    assert "X-Team" not in other
    assert "Authorization" not in port
    assert "my-password" not in repr(urls(found))
    assert "my-password" in found["1"].destination.secrets


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"metrics_url": "ftp://one"}, r"^--metrics-url: expected http"),
        ({"gpu_metrics_url": "gpu:9400"}, r"^--gpu-metrics-url: expected http"),
        ({"scrape": "false", "metrics_url": "http://one"}, "--no-scrape reads nothing"),
        ({"scrape": "false", "local_gpus": "all"}, "--no-scrape reads nothing"),
        ({"local_gpus": "all", "gpu_metrics_url": "http://one"}, "expected one of --gpu-metrics-url and --local-gpus"),
        ({"local_gpus": "all,1"}, "--local-gpus: .*expected all, or indices of GPUs such as 0,1; got all,1"),
        ({"local_gpus": "-1"}, "--local-gpus: .*got -1"),
        ({"scrape_interval": "100ms"}, "--scrape-interval: .*0.2"),
        ({"cache_salt": "a", "extra_body": '{"cache_salt": "b"}'}, "expected one of --cache-salt and cache_salt"),
    ],
)
def test_what_will_not_do_is_named(given: dict[str, Any], message: str) -> None:
    """Before anything is sent."""
    with pytest.raises(ConfigError, match=message):
        pages(**given)
