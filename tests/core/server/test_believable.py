"""Pages that lie: values that no server can have are left out, and told."""

import pytest

from loadgen.adapters.servers.vllm_page import vllm_samples
from loadgen.core.server.believable import believable, refused, refused_readings
from loadgen.core.server.sample import Counters, Gauges, GpuSample, Scrape
from loadgen.core.server.window import counter_window
from tests.core.server.factory import sample

HONEST = Gauges(running_requests=3.0, waiting_requests=0.0, kv_used_ratio=1.0)


def scrape(at_s: float = 0.0, gauges: Gauges = HONEST, gpus: tuple[GpuSample, ...] = (), **counted: float) -> Scrape:
    """A page read at that time."""
    return Scrape(
        taken_ns=int(at_s * 1e9), took_ns=1000, source="0", samples=(sample(gauges=gauges, **counted),), gpus=gpus
    )


def test_what_can_be_stays_as_it_is() -> None:
    """A full cache, no requests and long-lived counters are no lie."""
    honest = scrape(generation_tokens=1e12, preemptions=0.0)
    assert believable(honest) is honest
    assert list(refused(honest)) == []


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (scrape(gauges=Gauges(kv_used_ratio=-300.0)), "kv_used_ratio of -300"),
        (scrape(gauges=Gauges(kv_used_ratio=1e308)), "kv_used_ratio of 1e+308"),
        (scrape(gauges=Gauges(kv_used_ratio=57.0)), "kv_used_ratio of 57"),
        (scrape(gauges=Gauges(waiting_requests=-1.0)), "waiting_requests of -1"),
        (scrape(generation_tokens=1e300), "generation_tokens of 1e+300"),
        (scrape(accepted_by_position=(5.0, -2.0)), "accepted_by_position of -2"),
        (scrape(gpus=(GpuSample(gpu="0", power_w=-5.0, utilisation_ratio=0.5),)), "power_w of -5"),
    ],
)
def test_what_cannot_be_is_left_out_and_told(page: Scrape, said: str) -> None:
    """Alone: the rest of the reading stays."""
    assert list(refused(page)) == [said]
    assert refused_readings([scrape(), page, page]) == (2, said)
    left = believable(page)
    name = said.partition(" ")[0]
    sections = (left.samples[0].counters, left.samples[0].gauges, *left.gpus)
    assert all(getattr(section, name, None) is None for section in sections)
    assert left.gpus == () or left.gpus[0].utilisation_ratio == 0.5


def test_a_counter_that_lies_once_is_a_gap_and_no_restart() -> None:
    """Its neighbours tell the difference."""
    pages = [scrape(0, generation_tokens=100.0), scrape(1, generation_tokens=-7.0), scrape(2, generation_tokens=400.0)]
    found = counter_window(map(believable, pages), 0, 2_000_000_000)
    assert (found.counters.generation_tokens, found.resets) == (300.0, ())


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "1e308", "-300"])
def test_a_page_that_lies_is_read(value: str) -> None:
    """Sums of what is near infinity do not break the reader; gauges that are no numbers are told, too."""
    labels = 'engine="0",model_name="m"'
    text = f"vllm:kv_cache_usage_perc{{{labels}}} {value}\nvllm:generation_tokens_total{{{labels}}} 10\n" + "".join(
        f'vllm:request_success_total{{{labels},finished_reason="{reason}"}} {value}\n' for reason in ("stop", "length")
    )
    samples = vllm_samples(text, model="m")
    page = Scrape(taken_ns=0, took_ns=1, source="0", samples=samples)
    (left,) = believable(page).samples
    assert left.gauges.kv_used_ratio is None
    assert left.counters == Counters(generation_tokens=10.0)
    assert {words.partition(" ")[0] for words in refused(page)} == {"kv_used_ratio", "finished_requests"}
