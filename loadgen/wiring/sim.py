"""From the options of a simulated server to the server."""

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from loadgen.adapters.profiles.model import DRAFTER_KEYS, EngineName
from loadgen.core.errors import ConfigError
from loadgen.core.simulation.engine import Engine
from loadgen.core.simulation.job import Limits
from loadgen.core.simulation.speculator import Speculator
from loadgen.core.simulation.step_time import FREE_DRAFTING
from loadgen.options.resolve import ENVIRONMENT_PREFIX
from loadgen.options.sim import SimOptions
from loadgen.sim.child import ChildServer, child_server
from loadgen.sim.server.app import Simulator, serve
from loadgen.sim.server.dialect import Dialect, ServerFacts
from loadgen.sim.server.faults import parse_faults
from loadgen.sim.server.language import LanguageModel
from loadgen.sim.server.llamacpp import LlamacppDialect
from loadgen.sim.server.punctual import PunctualClock
from loadgen.sim.server.sglang import SglangDialect
from loadgen.sim.server.tensorrt_llm import TensorrtLlmDialect
from loadgen.sim.server.vllm import VllmDialect
from loadgen.wiring.api_key import api_key_from
from loadgen.wiring.predict import ModelledServer, modelled_server

BLOCK_TOKENS = 16
_DIALECTS: Mapping[EngineName, Callable[[ServerFacts], Dialect]] = {
    "vllm": VllmDialect,
    "sglang": SglangDialect,
    "llamacpp": LlamacppDialect,
    "tensorrt-llm": TensorrtLlmDialect,
}


def simulator_of(options: SimOptions, *, warn: Callable[[str], None]) -> Simulator:
    """The server that the options describe; `warn` gets what people should know while it runs.

    Raises ConfigError for a fault that means nothing, a key that is not there, or a server that could not run.
    """
    server = modelled_server(options)
    facts = facts_of(options, server)
    faults = parse_faults(options.fault, seed=options.seed)
    if faults.lossy_ratio and facts.speculator is None:
        raise ConfigError("--fault lossy is for a speculative --method; without drafts nothing is verified")
    return Simulator(
        dialect=_DIALECTS[options.dialect](facts),
        facts=facts,
        engine=engines_of(options, facts, server),
        language=LanguageModel(output_tokens=server.workload.output_tokens, lossy_ratio=faults.lossy_ratio),
        clock=PunctualClock(),
        warn=warn,
        faults=faults,
        speed=options.speed,
        seed=options.seed,
        api_key=api_key_from(options.api_key_env),
    )


def serve_simulator(simulator: Simulator, options: SimOptions, *, listening: Callable[[str, int], None]) -> None:
    """Serves until the process is told to end. `listening` gets URL and port once it can be asked.

    Raises ConfigError when it cannot listen there.
    """
    refused: BaseException | None = None
    try:
        asyncio.run(
            serve(
                simulator,
                options.host,
                options.port,
                listening=listening,
                until_stdin_closes=options.until_stdin_closes,
            )
        )
    except* OSError as faults:
        refused = faults.exceptions[0]
    if isinstance(refused, OSError):
        reason = os.strerror(refused.errno) if refused.errno and refused.errno > 0 else refused.strerror
        raise ConfigError(f"--host {options.host} --port {options.port}: cannot listen there: {reason}")


def engines_of(options: SimOptions, facts: ServerFacts, server: ModelledServer) -> Callable[[], Engine]:
    """What makes the engine, and makes it anew at a restart. All of them draw from one generator.

    Raises ConfigError for limits under which nothing could run.
    """
    limits = Limits(
        kv_blocks=facts.kv_blocks,
        block_tokens=facts.block_tokens,
        max_sequences=facts.max_sequences,
        token_budget=facts.token_budget,
        prefix_caching=facts.prefix_caching,
        graph_tokens=options.graph_tokens,
        graph_miss_s=options.graph_miss_time,
    )
    rng = np.random.default_rng(options.seed)
    step = server.step if options.step_time is None else options.step_time

    def engine() -> Engine:
        return Engine(target=step, limits=limits, rng=rng, speculator=facts.speculator)

    engine()
    return engine


def facts_of(options: SimOptions, server: ModelledServer) -> ServerFacts:
    """What the server tells of itself. Raises ConfigError for a cache that holds nothing, or less than one context."""
    speculator = _speculator(options, server)
    kv_blocks = _kv_blocks(options, server)
    most_drafted = 0 if speculator is None else speculator.draft_tokens
    fitting = kv_blocks * BLOCK_TOKENS - most_drafted
    longest = min(server.target.context_tokens, fitting) if options.max_model_len is None else options.max_model_len
    if not 1 < longest <= fitting:
        raise ConfigError(
            f"--max-model-len: a context of {longest:,} tokens does not fit into the KV cache of {kv_blocks:,} blocks,"
            f" which holds {fitting:,}"
        )
    own_words = {} if server.draft is None else {DRAFTER_KEYS[options.dialect]: server.draft.repository}
    return ServerFacts(
        model=options.model_name or server.target.repository,
        max_model_len=longest,
        kv_blocks=kv_blocks,
        block_tokens=BLOCK_TOKENS,
        max_sequences=options.max_num_seqs,
        token_budget=options.max_num_batched_tokens,
        prefix_caching=options.prefix_caching,
        gpus=options.gpus,
        speculator=speculator,
        speculation=own_words | options.speculation_config,
        per_request_speculation=None
        if options.per_request_spec_decode_metrics == "off"
        else options.per_request_spec_decode_metrics,
    )


def _kv_blocks(options: SimOptions, server: ModelledServer) -> int:
    if options.kv_blocks is not None:
        return options.kv_blocks
    blocks = server.memory.speculative_tokens // BLOCK_TOKENS
    if blocks < 1:
        raise ConfigError(
            f"{server.target.name} does not fit into {options.gpus} x {server.gpu.name} with room for a KV cache;"
            " give more --gpus, another --gpu, or --kv-blocks"
        )
    return blocks


def _speculator(options: SimOptions, server: ModelledServer) -> Speculator | None:
    speculator = server.speculator
    if speculator is None:
        return None
    survival = speculator.survival
    if options.request_share is not None:
        survival = replace(survival, request_share=options.request_share)
    return replace(
        speculator,
        survival=survival,
        drafting=FREE_DRAFTING if options.step_is_whole else speculator.drafting,
        by_batch_size=options.draft_tokens_by_batch,
        switch_s=options.switch_time,
    )


@contextmanager
def spawn_simulator(*arguments: str, cpus: set[int] | None = None) -> Iterator[ChildServer]:
    """`loadgen sim` with these options on a free port as a child process, ended on the way out.

    Options from this process's environment do not reach it. Raises InternalError when it does not come up.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ENVIRONMENT_PREFIX)}
    command = [sys.executable, "-m", "loadgen", "sim", "--port", "0", "--json", "--until-stdin-closes", *arguments]
    with child_server(command, environment=environment, cpus=cpus) as server:
        yield server
