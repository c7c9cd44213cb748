"""Runs and sweeps as pages."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, replace
from importlib import resources

import pytest

from loadgen.core.metrics.summary import Analysis, Sweep
from loadgen.core.run import RunManifest
from loadgen.core.simulation.prediction import Prediction
from loadgen.report.comparison import comparison_html
from loadgen.report.html import run_html, sweep_html
from loadgen.report.html.prediction import prediction_html
from loadgen.report.words import milliseconds
from tests.report.comparisons import explained_arms, hostile_arms, three_arms
from tests.report.pages import Page, structure


@pytest.fixture
def pages(
    analysis: Analysis,
    hostile: Analysis,
    sweep: Sweep,
    hostile_sweep: Sweep,
    empty_sweep: Sweep,
    manifest: RunManifest,
    prediction: Prediction,
    hostile_text: str,
) -> dict[str, str]:
    """One page of each sort."""
    return {
        "run": run_html(analysis, manifest),
        "hostile": run_html(hostile, manifest),
        "sweep": sweep_html(sweep),
        "hostile sweep": sweep_html(hostile_sweep),
        "empty sweep": sweep_html(empty_sweep),
        "prediction": prediction_html(prediction),
        "comparison": comparison_html(three_arms()),
        "explained comparison": comparison_html(explained_arms()),
        "two ladders": comparison_html(three_arms(), explained_arms()),
        "hostile comparison": comparison_html(hostile_arms(hostile_text)),
    }


def test_a_run_looks_as_agreed(pages: dict[str, str], golden) -> None:
    """The structure of a run's page."""
    golden.check("run.html", structure(pages["run"]))


def test_an_invalid_run_looks_as_agreed(pages: dict[str, str], golden) -> None:
    """The structure of the page of a run in which nothing worked."""
    golden.check("run-invalid.html", structure(pages["hostile"]))


def test_a_sweep_looks_as_agreed(pages: dict[str, str], golden) -> None:
    """The structure of a sweep's page."""
    golden.check("sweep.html", structure(pages["sweep"]))


def test_a_prediction_looks_as_agreed(pages: dict[str, str], golden) -> None:
    """The structure of a prediction's page."""
    golden.check("prediction.html", structure(pages["prediction"]))


def test_tags_match_and_nothing_comes_from_outside(pages: dict[str, str]) -> None:
    """A page needs no network: no element has an address but one inside the page."""
    for text in pages.values():
        page = Page(text)
        for _, attributes in page.elements:
            assert not {"src", "srcset", "action", "formaction", "data", "poster"} & set(attributes)
            assert (attributes.get("href") or "#").startswith(("#", "data:,"))
        assert "@import" not in text
        assert "url(" not in text


def test_the_policy_names_the_style_and_the_script(pages: dict[str, str]) -> None:
    """Only the page's own code and style may run: their hashes are right, and everything else is forbidden."""
    for text in pages.values():
        page = Page(text)
        policy = next(m["content"] for m in page.named("meta") if m.get("http-equiv") == "Content-Security-Policy")
        assert policy is not None
        assert policy.startswith("default-src 'none';")
        assert "unsafe" not in policy
        assert "http" not in policy
        style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
        script = re.search(r"<script>(.*?)</script>", text, re.DOTALL)
        for found in (style, script):
            assert found is not None
            digest = base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy
        assert not any("style" in attributes for _, attributes in page.elements), "the policy would ignore it"


def test_hostile_text_makes_no_element(pages: dict[str, str]) -> None:
    """Markup in a message, a name, a label or a model stays text; no attribute is an event handler."""
    for text in pages.values():
        page = Page(text)
        assert len(page.named("script")) == 3
        assert page.named("svg") == []
        assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "&lt;svg onload=alert(1)&gt;" in pages["hostile"]


def test_data_in_scripts_is_strict_and_the_same(pages: dict[str, str], hostile: Analysis, sweep: Sweep) -> None:
    """The embedded JSON is the summary, hostile strings included, and cannot end its element."""
    page = Page(pages["hostile"])
    assert page.script("raw") == json.loads(json.dumps(asdict(hostile.summary)))
    assert Page(pages["sweep"]).script("raw") == json.loads(json.dumps(asdict(sweep)))


def test_every_chart_has_a_place_and_a_description(pages: dict[str, str]) -> None:
    """What is drawn has an element, and who cannot see it gets words and a table."""
    for text in pages.values():
        page = Page(text)
        charts = page.script("charts")
        assert isinstance(charts, list)
        plots = {a["id"]: a for a in page.named("div") if (a.get("class") or "") == "plot"}
        assert {f"plot-{chart['id']}" for chart in charts} == set(plots)
        for attributes in plots.values():
            assert attributes["role"] == "img"
            assert attributes["tabindex"] == "0"
            assert len(attributes["aria-label"] or "") > 20


def test_links_lead_somewhere(pages: dict[str, str]) -> None:
    """Every term of the page is defined on the page."""
    for text in pages.values():
        page = Page(text)
        targets = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
        assert len(targets) == sum("id" in attributes for _, attributes in page.elements), "ids are unique"
        for link in page.named("a"):
            assert (link["href"] or "").removeprefix("#") in targets


def test_tables_and_landmarks_speak(pages: dict[str, str]) -> None:
    """Header cells say what they head, scrollable tables can be reached by keyboard, sections have names."""
    for text in pages.values():
        page = Page(text)
        assert [name for name, _ in page.elements if name in ("header", "main", "footer")] == [
            "header",
            "main",
            "footer",
        ]
        for cell in page.named("th"):
            assert cell.get("scope") in ("row", "col", "colgroup", "rowgroup") or cell.get("class") == "group"
        for box in page.named("div"):
            if "wide" in (box.get("class") or "").split():
                assert box["tabindex"] == "0"
                assert box["aria-label"]
        for section in page.named("section"):
            assert section.get("aria-labelledby") or section.get("aria-label")
        assert page.elements[0] == ("html", {"lang": "en"})


def test_a_ladder_without_a_name_is_headed_by_what_it_measured(sweep: Sweep) -> None:
    """Model and variable, not an id; a name is kept."""
    for name, heading in ((None, "meta-llama/Llama-3.1-8B-Instruct by concurrency"), ("nightly", "nightly")):
        assert f"<h1><bdi>{heading}</bdi></h1>" in sweep_html(replace(sweep, name=name))


def test_an_invalid_measurement_is_marked_at_every_number(pages: dict[str, str]) -> None:
    """The word stands beside each section of numbers, not only at the top."""
    assert pages["hostile"].count(">invalid measurement<") >= 3
    assert ">invalid measurement<" not in pages["run"]
    assert "Invalid: do not use these numbers" in pages["hostile"]
    assert "Invalid at 64: do not use those levels" in pages["sweep"]


def test_the_page_has_the_numbers_of_the_summary(pages: dict[str, str], analysis: Analysis) -> None:
    """Table cells are the summary's values in ms; what is absent is a dash."""
    distribution = analysis.summary.latency.e2el_s
    for value in (distribution.mean, distribution.p50, distribution.p99, distribution.max):
        assert f"<td>{milliseconds(value)}</td>" in pages["run"]
    assert '<td class="absent">—</td>' in pages["run"]


def test_surrogates_and_controls_can_be_written(analysis: Analysis, manifest: RunManifest) -> None:
    """Half a surrogate pair or a NUL in a message leaves a page that is valid UTF-8."""
    broken = replace(analysis.summary, name="half \ud83d and \x00", labels={"\udc00": "\x08"})
    text = run_html(replace(analysis, summary=broken), manifest)
    assert text.encode("utf-8")
    assert "\x00" not in text


def test_odd_options_are_shown(analysis: Analysis, manifest: RunManifest) -> None:
    """Nested options, nulls and markup in keys are text."""
    odd = replace(manifest, options={"<b>": None, "extra_body": {"a": [1, {"b": "<i>"}]}}, notes=("<u>note</u>",))
    text = run_html(analysis, odd)
    for markup in ("<i>", "<u>", "<b></b>", "<dt><b>"):
        assert markup not in text
    assert "&lt;u&gt;note&lt;/u&gt;" in text
    assert "<dt>&lt;b&gt;</dt><dd>—</dd>" in text


def colours(css: str, dark: bool) -> dict[str, str]:
    """The custom colours of one scheme."""
    light_part, dark_part = css.split("@media screen and (prefers-color-scheme: dark)", 1)
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", dark_part.split("* {", 1)[0] if dark else light_part))


def luminance(colour: str) -> float:
    """Relative luminance, WCAG 2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def pairs(scheme: dict[str, str]) -> Iterator[tuple[str, str, float]]:
    """Text on paper, with the contrast that AA asks for; lines of charts need less."""
    for name in ("ink", "soft", "link", "good", "bad", "doubt"):
        yield name, "paper", 4.5
    yield from (("ink", "raised", 4.5), ("bad", "bad-paper", 4.5), ("soft", "bad-paper", 4.5))
    for i in range(6):
        yield f"tone-{i}", "paper", 3.0


@pytest.mark.parametrize("dark", [False, True])
def test_contrast_is_enough(dark: bool) -> None:
    """Text has a contrast of 4.5 or more, lines of charts 3 or more, in both schemes."""
    css = resources.files("loadgen.report").joinpath("page/page.css").read_text(encoding="utf-8")
    scheme = colours(css, dark)
    for front, back, least in pairs(scheme):
        high, low = sorted((luminance(scheme[front]), luminance(scheme[back])), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= least, f"{front} on {back}"
