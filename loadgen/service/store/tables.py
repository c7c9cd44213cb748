"""The tables. Instants are integer milliseconds since 1970 (UTC); what has not happened is NULL.

A change here takes a migration beside it; a test holds the two together.
"""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
)

METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)
_ID, _WORD, _TEXT = String(64), String(200), String(4000)
_NUMBER = BigInteger().with_variant(Integer, "sqlite")


def _unix_ms(name: str, *, nullable: bool = True) -> "Column[int]":
    return Column(name, BigInteger, nullable=nullable)


runs = Table(
    "runs",
    METADATA,
    Column("number", _NUMBER, primary_key=True, autoincrement=True),
    Column("id", _ID, nullable=False, unique=True),
    Column("kind", _WORD, nullable=False),
    Column("state", _WORD, nullable=False),
    Column("name", _WORD),
    Column("labels", JSON, nullable=False),
    Column("target", JSON, nullable=False),
    Column("options", JSON, nullable=False),
    Column("lease_keys", JSON, nullable=False),
    Column("time_limit_s", Float),
    Column("created_by", _WORD, nullable=False),
    Column("baseline_id", _ID),
    Column("schedule_id", _ID),
    Column("fire_at_unix_ms", BigInteger),
    _unix_ms("created_unix_ms", nullable=False),
    _unix_ms("started_unix_ms"),
    _unix_ms("ended_unix_ms"),
    _unix_ms("cancel_unix_ms"),
    Column("owner", _ID),
    Column("child", JSON),
    Column("attempts", Integer, nullable=False),
    Column("last_event", Integer, nullable=False),
    Column("reason", _WORD),
    Column("message", _TEXT),
    Column("exit_code", Integer),
    Column("valid", Boolean),
    Column("gate_failed", Boolean),
    Column("result", JSON),
    Column("artefact", _WORD),
    Column("files_removed", Boolean, nullable=False),
    Index(None, "state", "number"),
    Index(None, "kind", "number"),
    Index(None, "schedule_id", "number"),
)
"""`number` is the order in which runs were asked for, whatever the calendar said then. `artefact` is the folder of
results beneath that of the run. `child` identifies the process that measures."""

leases = Table(
    "leases",
    METADATA,
    Column("lease_key", String(300), primary_key=True),
    Column("run_id", _ID, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("owner", _ID, nullable=False),
    _unix_ms("taken_unix_ms", nullable=False),
    Index(None, "run_id"),
)
"""One row for each server that is in use: its primary key is what keeps two tests apart."""

owners = Table(
    "owners",
    METADATA,
    Column("id", _ID, primary_key=True),
    Column("host", _WORD, nullable=False),
    Column("process", JSON),
    Column("beat", BigInteger, nullable=False),
    _unix_ms("beat_unix_ms", nullable=False),
)
"""Services that are or were at work. `beat` grows while one lives, whatever the clocks say."""

events = Table(
    "events",
    METADATA,
    Column("run_id", _ID, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    _unix_ms("at_unix_ms", nullable=False),
    Column("kind", _WORD, nullable=False),
    Column("data", JSON, nullable=False),
)

idempotency = Table(
    "idempotency",
    METADATA,
    Column("principal", _WORD, primary_key=True),
    Column("idempotency_key", _WORD, primary_key=True),
    Column("fingerprint", _ID, nullable=False),
    Column("resource_id", _ID, nullable=False),
    _unix_ms("created_unix_ms", nullable=False),
    Index(None, "created_unix_ms"),
)

schedules = Table(
    "schedules",
    METADATA,
    Column("id", _ID, primary_key=True),
    Column("name", _WORD, nullable=False, unique=True),
    Column("cron", _WORD, nullable=False),
    Column("time_zone", _WORD, nullable=False),
    Column("request", JSON, nullable=False),
    Column("misfire_grace_s", Float, nullable=False),
    Column("when_busy", _WORD, nullable=False),
    Column("paused", Boolean, nullable=False),
    Column("created_by", _WORD, nullable=False),
    _unix_ms("created_unix_ms", nullable=False),
    _unix_ms("next_unix_ms"),
    _unix_ms("last_unix_ms"),
    Index(None, "paused", "next_unix_ms"),
)

firings = Table(
    "firings",
    METADATA,
    Column("schedule_id", _ID, ForeignKey("schedules.id", ondelete="CASCADE"), primary_key=True),
    Column("fire_at_unix_ms", BigInteger, primary_key=True, autoincrement=False),
    Column("outcome", _WORD, nullable=False),
    Column("run_id", _ID),
    _unix_ms("decided_unix_ms", nullable=False),
)
"""What became of each instant at which a schedule was due; its primary key lets none fire twice."""

baselines = Table(
    "baselines",
    METADATA,
    Column("id", _ID, primary_key=True),
    Column("name", _WORD, nullable=False, unique=True),
    Column("run_id", _ID, nullable=False),
    Column("kind", _WORD, nullable=False),
    Column("gates", JSON, nullable=False),
    Column("created_by", _WORD, nullable=False),
    _unix_ms("created_unix_ms", nullable=False),
)

history = Table(
    "history",
    METADATA,
    Column("run_id", _ID, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("series", _ID, nullable=False),
    _unix_ms("at_unix_ms", nullable=False),
    Column("labels", JSON, nullable=False),
    Column("variable", _WORD, nullable=False),
    Column("level", Float),
    Column("low", Float),
    Column("high", Float),
    Column("attainment_ratio", Float),
    Column("requests_per_s", Float),
    Column("output_tokens_per_s", Float),
    Column("valid", Boolean, nullable=False),
    Column("verdict", _WORD, nullable=False),
    Column("detail", JSON, nullable=False),
    Index(None, "series", "at_unix_ms"),
)
"""Capacities that were found. Tests of one `series` are alike, so that they may be compared."""

webhooks = Table(
    "webhooks",
    METADATA,
    Column("id", _ID, primary_key=True),
    Column("name", _WORD, nullable=False, unique=True),
    Column("url", String(2000), nullable=False),
    Column("secret_env", _WORD, nullable=False),
    Column("kinds", JSON, nullable=False),
    Column("paused", Boolean, nullable=False),
    Column("created_by", _WORD, nullable=False),
    _unix_ms("created_unix_ms", nullable=False),
)

deliveries = Table(
    "deliveries",
    METADATA,
    Column("id", _ID, primary_key=True),
    Column("webhook_id", _ID, ForeignKey("webhooks.id", ondelete="CASCADE"), nullable=False),
    Column("run_id", _ID),
    Column("kind", _WORD, nullable=False),
    Column("body", JSON, nullable=False),
    Column("state", _WORD, nullable=False),
    Column("attempts", Integer, nullable=False),
    _unix_ms("created_unix_ms", nullable=False),
    _unix_ms("next_unix_ms"),
    _unix_ms("ended_unix_ms"),
    Column("last_error", _WORD),
    UniqueConstraint("webhook_id", "run_id", "kind"),
    Index(None, "state", "next_unix_ms"),
)

keys = Table(
    "keys",
    METADATA,
    Column("id", _ID, primary_key=True),
    Column("name", _WORD, nullable=False),
    Column("scopes", JSON, nullable=False),
    Column("digest", LargeBinary(32), nullable=False),
    Column("limits", JSON, nullable=False),
    Column("created_by", _WORD, nullable=False),
    _unix_ms("created_unix_ms", nullable=False),
    _unix_ms("expires_unix_ms"),
    _unix_ms("revoked_unix_ms"),
    _unix_ms("used_unix_ms"),
)
"""API keys: of the secret only its SHA-256, which for 256 random bits nobody can turn back."""

sessions = Table(
    "sessions",
    METADATA,
    Column("digest", LargeBinary(32), primary_key=True),
    Column("key_id", _ID, ForeignKey("keys.id", ondelete="CASCADE"), nullable=False),
    _unix_ms("created_unix_ms", nullable=False),
    _unix_ms("expires_unix_ms", nullable=False),
)

lived = Table("lived", METADATA, Column("hour", BigInteger, primary_key=True, autoincrement=False))
"""Hours since 1970 in which a service was there: what calendars show that nobody lived through is not among them."""

audit = Table(
    "audit",
    METADATA,
    Column("id", _NUMBER, primary_key=True, autoincrement=True),
    _unix_ms("at_unix_ms", nullable=False),
    Column("actor", _WORD, nullable=False),
    Column("address", _WORD),
    Column("action", _WORD, nullable=False),
    Column("subject", _WORD),
    Column("detail", JSON, nullable=False),
)
