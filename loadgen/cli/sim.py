"""`loadgen sim`: the simulator as a server."""

import json

import typer

from loadgen.cli.parameters import options_command
from loadgen.cli.usage import PlainCommand
from loadgen.cli.writing import show, tell
from loadgen.core.units import duration_text
from loadgen.options.sim import SimOptions
from loadgen.sim.server.app import Simulator
from loadgen.wiring.predict import modelled_server
from loadgen.wiring.sim import serve_simulator, simulator_of


def sim(options: SimOptions) -> None:
    """Serve a simulated model: an OpenAI-compatible server with the timing of a real one, and no GPU.

    Its steps, its memory and what its drafter gets accepted follow the model of a server; what it writes means nothing.
    """
    simulator = simulator_of(options, warn=lambda text: tell(f"loadgen sim: {text}"))

    def listening(url: str, port: int) -> None:
        if options.json_output:
            show(json.dumps({"url": url, "port": port, "model": simulator.model}) + "\n")
        else:
            tell(f"{simulator.model} at {url}, with the answers of {options.dialect}")
            tell(_stands_for(options))
            if options.fault:
                tell(f"goes wrong on purpose: {', '.join(options.fault)}")

    serve_simulator(simulator, options, listening=listening)
    if not options.json_output:
        tell(_served(simulator))


def _stands_for(options: SimOptions) -> str:
    """What is imitated, in a sentence."""
    server = modelled_server(options)
    where = f"{options.gpus} x {server.gpu.name}" if options.step_time is None else "steps of the given time"
    if server.speculator is None:
        method = "without speculation"
    else:
        tokens = server.speculator.draft_tokens
        drafts = f"{server.speculator.method} with {tokens} draft token{'' if tokens == 1 else 's'}"
        method = f"{drafts}, acceptance {server.acceptance_from}"
    faster = "" if options.speed == 1 else f", {options.speed:g} times as fast"
    return f"simulated: {server.target.name} on {where}{faster}; {method}"


def _served(simulator: Simulator) -> str:
    """What was done, and how punctually."""
    late, requests = simulator.lateness, simulator.requests
    text = f"served {requests:,} request{'' if requests == 1 else 's'}"
    if late.p50_s is None or late.p99_s is None or late.max_s is None:
        return text
    p50, p99, most = (duration_text(value) for value in (late.p50_s, late.p99_s, late.max_s))
    return f"{text}; {late.emissions:,} events, late by {p50} (median), {p99} (p99), {most} (most)"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("sim", cls=PlainCommand)(options_command(SimOptions, sim))
