"""The section of a page on what the server told of itself."""

from dataclasses import asdict

from loadgen.core.metrics.summary import Server
from loadgen.report.html.page import fact_list, foreign, json_facts
from loadgen.report.server import server_facts


def server_section(server: Server) -> str:
    """The body of the section: its figures, and its configuration folded away."""
    facts = fact_list((label, foreign(text)) for label, text in server_facts(server))
    groups = [
        (title, {key: value for key, value in asdict(told).items() if value is not None})
        for title, told in (("Server", server.configuration), ("Drafts", server.speculation))
        if told is not None
    ]
    groups.append(("Pages", server.pages))
    columns = "".join(f"<div><h3>{title}</h3>{json_facts(values)}</div>" for title, values in groups if values)
    if not columns:
        return facts
    folded = "<summary>Its configuration, as it told</summary>"
    return f'{facts}<details>{folded}<div class="columns">{columns}</div></details>'
