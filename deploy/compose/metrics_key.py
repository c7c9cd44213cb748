"""Gives Prometheus a key of the service that reads and does nothing else, unless it has one that is good.

python metrics_key.py http://service:8080 /keys/service/admin_key /keys/metrics/key
"""

import sys
from pathlib import Path

import httpx2
from key_file import bearer, write


def main(url: str, admin_key: Path, key: Path) -> None:
    """Raises httpx2.HTTPError where the service does not answer, or does not know the first key."""
    with httpx2.Client(base_url=url, timeout=10, trust_env=False) as service:
        if key.exists() and service.get("/metrics", headers=bearer(key)).is_success:
            return
        answer = service.post("/v1/keys", json={"name": "Prometheus", "scope": "read"}, headers=bearer(admin_key))
        answer.raise_for_status()
        write(key, answer.json()["key"])


if __name__ == "__main__":
    main(sys.argv[1], *map(Path, sys.argv[2:]))
