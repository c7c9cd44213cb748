"""Logs as lines of JSON on stderr, without secrets."""

import json
import logging
import sys
from typing import Any

from loadgen.core.redaction import without_secrets
from loadgen.service.clock import rfc3339

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "color_message", "taskName"}


class JsonLines(logging.Formatter):
    """One object a line; what was given as `extra` stands beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        line: dict[str, Any] = {
            "at": rfc3339(int(record.created * 1000)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{name: value for name, value in record.__dict__.items() if name not in _STANDARD},
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(without_secrets(line), default=str)


def set_up_logs(level: str) -> None:
    """All loggers of this process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    # It logs whole URLs, and that of a webhook's receiver may be all that lets somebody write there.
    logging.getLogger("httpx2").setLevel(logging.WARNING)
