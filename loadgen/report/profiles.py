"""Server profiles as terminal text."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from loadgen.report import text_parts
from loadgen.report.text_parts import INDENT
from loadgen.report.words import DASH, printable


def profiles_text(listed: Mapping[str, Any], *, width: int, color: bool = False) -> str:
    """One line a profile."""
    rows = [
        [
            Text(profile["name"], style="bold"),
            Text("simulated" if profile["simulated"] else profile["engine"]),
            Text(_method(profile["method"], profile["draft_tokens"])),
            Text(str(profile["gpus"]) if not profile["simulated"] else DASH),
            Text(profile["model"]),
        ]
        for profile in listed["profiles"]
    ]
    titles = ["Profile", "Engine", "Method", ">GPUs", "Model"]
    table, _ = text_parts.table(titles, rows, width, leave_out=(3,), stretch=4)
    return text_parts.rendered([table], width, color)


def profile_text(profile: Mapping[str, Any], *, width: int, color: bool = False) -> str:
    """One profile with all that it says and all that follows."""
    facts = [
        ("engine", profile["engine"]),
        ("model", profile["model"]),
        ("weights", profile["weights"]),
        ("image", profile["image"] or "none: it can only be simulated"),
        ("packages", ", ".join(profile["packages"])),
        ("GPUs", "none" if not profile["gpus"] else str(profile["gpus"])),
        ("shared memory", profile["shared_memory"]),
        ("price an hour", profile["price_per_hour"]),
        ("baseline", profile["baseline"]),
        ("address", profile.get("url")),
        ("metrics", profile.get("metrics_url")),
        ("can do", ", ".join(profile["capabilities"])),
        ("files", ", ".join(profile["files"])),
    ]
    parts: list[RenderableType] = [Text(profile["name"], style="bold"), Text(printable(profile["description"]))]
    parts.append(_section("Server", [(name, value) for name, value in facts if value]))
    speculation = profile["speculation"]
    if speculation is not None:
        told = [(name.replace("_", " "), value) for name, value in speculation.items() if value]
        parts.append(_section("Speculation", told))
    for title, values in (
        ("Arguments", profile["arguments"]),
        ("Environment", profile["environment"]),
        ("Simulator", profile["simulator"]),
    ):
        if values:
            parts.append(_section(title, values.items()))
    return text_parts.rendered(parts, max(width, 40 + INDENT), color)


def check_text(checked: Mapping[str, Any]) -> str:
    """A line for each objection, and what it comes to."""
    objections: Sequence[Mapping[str, Any]] = checked["objections"]
    lines = []
    for each in objections:
        where = "" if each["where"] is None else f"{each['where']}: "
        text = "\n".join(map(printable, each["text"].splitlines()))
        lines.append(f"{'!' if each['fatal'] else '-'} {printable(where)}{text}")
    count = checked["checked"]
    profiles = f"{count} profile{'' if count == 1 else 's'}"
    wrong, faults = checked["wrong"], checked["faults"]
    found = f"{wrong} wrong, by {faults} fault{'' if faults == 1 else 's'}" if wrong else "nothing wrong"
    lines.append(f"{profiles} checked: {found}")
    return "\n".join(lines) + "\n"


def _section(title: str, facts: Iterable[tuple[str, Any]]) -> RenderableType:
    rows = [(printable(name), printable(_value(value))) for name, value in facts]
    return text_parts.section(title, text_parts.facts(rows))


def _method(method: str, draft_tokens: int | None) -> str:
    return method if draft_tokens is None else f"{method}, {draft_tokens}"


def _value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
