"""The tables of docs/gpu.md: memory and time of the ready vLLM profiles, from the model behind `loadgen predict`.

Run `python tools/gpu_estimates.py` to write them into the document between its marks; `--check` only compares and ends
with 1 when they are not what the model gives. Nothing is measured here.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from loadgen.adapters.profiles.files import ProfileFile, load_profile, profile_paths
from loadgen.core.simulation.gpus import GPUS
from loadgen.core.simulation.models import MODELS
from loadgen.core.simulation.roofline import drafter
from loadgen.core.units import duration_text
from loadgen.options.predict import PredictOptions
from loadgen.options.resolve import resolve
from loadgen.options.sim import SimOptions
from loadgen.wiring.experiment_plan import START_S
from loadgen.wiring.predict import ModelledServer, modelled_server, predicted

ROOT = Path(__file__).resolve().parent.parent
DOC = ROOT / "docs" / "gpu.md"
LEVELS, REQUESTS, OUTPUT_TOKENS, REPEATS = (1, 4, 16, 64), 200, 256, 3
"""The load of examples/profiles.yaml."""

CARDS = {"rtx-4090": "24 GB", "l40s": "48 GB", "h100": "80 GB", "h200": "141 GB"}
SPEEDS = ("l40s", "h100", "h200")


@dataclass(frozen=True)
class Pair:
    """An arm and the target that it shares with its baseline, as the simulator's model knows them."""

    profile: ProfileFile
    options: SimOptions

    def on(self, gpu: str) -> ModelledServer:
        """The server on another GPU."""
        return modelled_server(self.options.model_copy(update={"gpu": gpu}))

    def hours(self, gpu: str) -> float:
        """Of baseline, baseline again and this arm over all levels and repeats, server starts included."""
        options = {"gpu": gpu, "target": self.options.target, "gpus": self.options.gpus, "method": self.options.method}
        options |= {"draft": self.options.draft, "draft_tokens": self.options.draft_tokens}
        asked = PredictOptions(**options, concurrency=list(LEVELS), output_tokens=OUTPUT_TOKENS)
        seconds = 3 * START_S["profile"]
        for point in predicted(asked).points:
            tokens = (REQUESTS + point.concurrency) * OUTPUT_TOKENS
            seconds += tokens * (2 / point.output_tokens_per_s_ar + 1 / point.output_tokens_per_s_sd)
        return REPEATS * seconds / 3600


def pairs() -> Iterator[Pair]:
    """The arms of one draft length that vLLM serves on GPUs and the model knows."""
    known = {model.repository for model in MODELS.values()}
    for path in profile_paths([ROOT / "server_profiles"]).values():
        found = load_profile(path)
        profile = found.profile
        if profile.engine != "vllm" or profile.image is None or not profile.gpus or profile.speculation is None:
            continue
        if profile.speculation.draft_tokens_by_batch or not {profile.model} & known | profile.simulator.keys() & {
            "target"
        }:
            continue
        yield Pair(found, resolve(SimOptions, {"profile": str(path)}, environment={}))


def memory() -> Iterator[str]:
    """A row a pair: weights, and what fits beside them."""
    columns = " | ".join(f"tokens in {size}" for size in CARDS.values())
    yield f"| arm | GPUs | target | drafter | cache of 1,000 tokens | {columns} |"
    yield "| --- " * (5 + len(CARDS)) + "|"
    for pair in pairs():
        server = pair.on("h100")
        assert server.speculator is not None
        draft = drafter(server.speculator.method, server.gpu, server.target, draft=server.draft, gpus=pair.options.gpus)
        each = server.target.kv_bytes_per_token + draft.kv_bytes_per_token
        fits = [_thousands(pair.on(gpu).memory.speculative_tokens) for gpu in CARDS]
        yield (
            f"| `{pair.profile.profile.name}` | {pair.options.gpus} | {server.target.weight_bytes / 1e9:.1f} GB"
            f" | {_gigabytes(draft.weight_bytes)} | {each * 1000 / 1e9:.2f} GB | {' | '.join(fits)} |"
        )


def time() -> Iterator[str]:
    """A row a pair: how long its comparison takes."""
    yield "| arm | GPUs | " + " | ".join(GPUS[gpu].name for gpu in SPEEDS) + " |"
    yield "| --- " * (2 + len(SPEEDS)) + "|"
    for pair in pairs():
        took = [
            duration_text(60 * round(pair.hours(gpu) * 60)) if pair.on(gpu).memory.speculative_tokens > 0 else "—"
            for gpu in SPEEDS
        ]
        yield f"| `{pair.profile.profile.name}` | {pair.options.gpus} | {' | '.join(took)} |"


def _gigabytes(count: float) -> str:
    return f"{count / 1e9:.1f} GB" if count else "none"


def _thousands(tokens: int) -> str:
    return f"{tokens // 1000 * 1000:,}" if tokens > 0 else "—"


def written(text: str) -> str:
    """The document with its tables as they are now. Raises ValueError where a mark is missing."""
    for name, rows in (("memory", memory()), ("time", time())):
        table = "\n".join(rows)
        text, count = re.subn(rf"(<!-- {name} -->\n)[^<]*(<!-- end -->)", rf"\g<1>{table}\n\g<2>", text)
        if count != 1:
            raise ValueError(f"{DOC}: expected one <!-- {name} --> … <!-- end -->, found {count}")
    return text


def main() -> None:
    """Writes, or only compares."""
    text = DOC.read_text(encoding="utf-8")
    now = written(text)
    if "--check" in sys.argv[1:]:
        sys.exit(0 if now == text else f"{DOC}: tables are not those of the model; run {sys.argv[0]}")
    DOC.write_text(now, encoding="utf-8")


if __name__ == "__main__":
    main()
