"""Writes loadgen/adapters/profiles/vllm_options.py: the long options of `vllm serve`, from the engine's own parser.

Run `python tools/vllm_options.py PYTHON` with the Python of an environment that has vLLM; a build for CPUs will do.
"""

import json
import subprocess
import sys
from pathlib import Path

MODULE = Path(__file__).resolve().parent.parent / "loadgen" / "adapters" / "profiles" / "vllm_options.py"
TIMEOUT_S = 600
READING = """
import json
from vllm import __version__
from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser

parser = make_arg_parser(FlexibleArgumentParser(prog="vllm serve"))
options = {text[2:] for action in parser._actions for text in action.option_strings if text.startswith("--")}
print("READ", json.dumps([__version__, sorted(options)]))
"""


def read(python: Path) -> tuple[tuple[int, int], list[str]]:
    """Version and options of the vLLM beside that Python, options without dashes and in order."""
    done = subprocess.run([python, "-c", READING], capture_output=True, text=True, check=True, timeout=TIMEOUT_S)
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("READ "))
    version, options = json.loads(line.removeprefix("READ "))
    major, minor, *_ = version.split(".")
    return (int(major), int(minor)), options


def module(version: tuple[int, int], options: list[str]) -> str:
    """The source of the module."""
    return f'''"""The long options of `vllm serve`. Written by tools/vllm_options.py from vLLM's own parser."""

VLLM_VERSION = {version}

VLLM_OPTIONS = frozenset(
    {{
{"".join(f'        "{option}",{chr(10)}' for option in options)}    }}
)
"""Without their dashes, the negative ones of switches among them."""
'''


if __name__ == "__main__":
    MODULE.write_text(module(*read(Path(sys.argv[1]))), encoding="utf-8")
