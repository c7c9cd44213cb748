"""The process that conducts, as a whole: what it keeps up while somebody may watch, and puts back."""

import json
import subprocess
import sys

SCRIPT = """
import asyncio, sys
from loadgen.locustio.conductor.__main__ import conduct

async def main():
    seen = [sys.getswitchinterval()]
    conducting = asyncio.create_task(conduct("127.0.0.1", 0))
    while not conducting.done():
        await asyncio.sleep(0)
        seen.append(sys.getswitchinterval())
    print(seen[0], min(seen), seen[-1], file=sys.stderr)

asyncio.run(main())
"""


def test_its_metrics_are_kept_up_until_it_ends() -> None:
    """A reader of its page holds up the measuring loop as briefly as in any command; afterwards all is as before."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", SCRIPT], text=True, **pipes) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "ready"
        _, said = process.communicate(timeout=60)
    before_s, meanwhile_s, after_s = map(float, said.split())
    assert meanwhile_s < before_s / 5
    assert after_s == before_s
