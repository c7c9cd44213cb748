"""Puts schedules into the service and has each run at once, so that there is something to see.

python first_load.py http://service:8080 /keys/service/admin_key /compose/schedules

One that is there already, by its name, stays as people have left it.
"""

import json
import sys
from http import HTTPStatus
from pathlib import Path

import httpx2
from key_file import bearer


def main(url: str, admin_key: Path, schedules: Path) -> None:
    """Raises httpx2.HTTPError where the service does not answer, or does not take a schedule."""
    with httpx2.Client(base_url=url, headers=bearer(admin_key), timeout=10, trust_env=False) as service:
        for path in sorted(schedules.glob("*.json")):
            answer = service.post("/v1/schedules", json=json.loads(path.read_text(encoding="utf-8")))
            if answer.status_code != HTTPStatus.CONFLICT:
                answer.raise_for_status()
                service.post(f"/v1/schedules/{answer.json()['id']}/run").raise_for_status()


if __name__ == "__main__":
    main(sys.argv[1], *map(Path, sys.argv[2:]))
