"""Programs that stand on a PATH in place of an engine, of Docker and of a driver."""

import os
import shlex
import sys
from pathlib import Path

SERVER = Path(__file__).parents[1] / "adapters" / "launch" / "server.py"
_ONE_GPU = "0, GPU-1, H100, 10, 81559"


def fake_engine(folder: Path, name: str, *, dies: str | None = None) -> Path:
    """An engine that tells its arguments and some variables, and serves at the port after `--port`."""
    ending = f"echo {shlex.quote(dies)}; exit 1" if dies else f'exec {sys.executable} -S {SERVER} "$port"'
    _program(folder / "bin" / "nvidia-smi", f"echo {shlex.quote(_ONE_GPU)}")
    return _program(
        folder / "bin" / name,
        f"""printf '%s\\n' "$@"
env | grep -E '^(HF_TOKEN|VLLM_)'
previous=
for argument in "$@"; do
  [ "$previous" = --port ] && port=$argument
  previous=$argument
done
{ending}""",
    )


def fake_docker(folder: Path) -> Path:
    """Docker Compose that writes its calls beside itself; `up` serves at the port that its file publishes."""
    calls = folder / "docker.calls"
    return _program(
        folder / "bin" / "docker",
        f"""[ "$*" = "compose version" ] && exit 0
echo "$*" >> {calls}
case " $* " in *" up "*) exec {sys.executable} -S {SERVER} "$LOADGEN_SERVER_PORT" ;; esac""",
    )


def resolving_docker(folder: Path) -> Path:
    """Docker Compose whose `up` prints what the real Compose makes of its file and variables, and serves then."""
    real = Path(sys.executable).with_name("docker-compose")
    return _program(
        folder / "bin" / "docker",
        f"""shift
case " $* " in *" up "*) ;; *) exit 0 ;; esac
{real} "${{@:1:$(($# - 8))}}" config
exec {sys.executable} -S {SERVER} "$LOADGEN_SERVER_PORT\"""",
        shell="/bin/bash",
    )


def simulating(folder: Path, name: str, *, speed: float) -> Path:
    """An engine, or Docker Compose, behind which the simulator of the same profile answers."""
    _program(folder / "bin" / "nvidia-smi", f"echo {shlex.quote(_ONE_GPU)}")
    sim = f"exec {sys.executable} -m loadgen sim --speed {speed} --port"
    found = """[ "$*" = "compose version" ] && exit 0
port=$LOADGEN_SERVER_PORT
case " $* " in *" down "*) exit 0 ;; *eagle3*) arm=eagle3 ;; *) arm=baseline ;; esac
previous=
for argument in "$@"; do
  [ "$previous" = --port ] && port=$argument
  previous=$argument
done
"""
    return _program(folder / "bin" / name, f'{found}{sim} "$port" --profile "llama-3.1-8b-$arm"')


def path_with(program: Path) -> str:
    """The PATH of this process with the program's folder first."""
    return f"{program.parent}{os.pathsep}{os.environ['PATH']}"


def _program(path: Path, script: str, shell: str = "/bin/sh") -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!{shell}\n{script}\n")
    path.chmod(0o755)
    return path
