"""The options of `serve`."""

from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, model_validator

from loadgen.options.fields import DurationSeconds, Pairs, Texts, VariableName, option

_MIB = 2**20


def _names(values: list[str]) -> list[str]:
    return list(dict.fromkeys(values))


Names = Annotated[
    list[VariableName], BeforeValidator(lambda value: value.split(",") if isinstance(value, str) else value)
]


class ServeOptions(BaseModel):
    """Where the service listens, what it keeps where, and what it lets others ask of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str = option("127.0.0.1", "Address to listen on; beyond this machine only with keys.", panel="Server")
    port: int = option(8080, "Port to listen on; 0 takes a free one.", panel="Server", ge=0, le=65_535)
    public_host: Texts = option(
        [],
        "Names under which the service is reached beside its address and localhost, as HOST or HOST:PORT.",
        panel="Server",
        metavar="HOST,…",
    )
    secure_cookies: bool = option(
        False,
        "Let browsers send the page's cookie over HTTPS only; for a service behind a proxy that speaks it.",
        panel="Server",
    )
    max_body: int = option(_MIB, "Largest body of a request, in bytes.", panel="Server", gt=0, metavar="BYTES")

    database: str | None = option(
        None, "URL of the database, sqlite:///FILE or postgresql://…. Default: a file in the data folder.",
        panel="Data", metavar="URL",
    )  # fmt: skip
    database_file: Path | None = option(
        None, "File that holds the URL of the database, where it has a password.", panel="Data", metavar="FILE"
    )
    data_dir: Path = option(
        Path("loadgen-data"), "Folder of results, and under files/ of traces and prompts that runs may use.",
        panel="Data", metavar="DIR",
    )  # fmt: skip
    retention: DurationSeconds | None = option(
        None, "Time after which the files of a run that ended are removed. Default: never.",
        panel="Data", metavar="TIME", ge=60,
    )  # fmt: skip

    allow_host: Annotated[Texts, AfterValidator(_names)] = option(
        ["loopback"],
        "Hosts that runs may send load to: loopback, NAME, *.DOMAIN, ADDRESS or NETWORK, each with or without :PORT.",
        panel="Target",
        metavar="HOST,…",
    )
    target: Pairs = option(
        {}, "A server by name, as NAME=URL, which runs may name as their target; may be given several times.",
        panel="Target", metavar="NAME=URL",
    )  # fmt: skip
    allow_env: Names = option(
        [], "Environment variables that runs may name, such as those that hold keys of servers.",
        panel="Target", metavar="NAME,…",
    )  # fmt: skip
    allow_launch: bool = option(
        False, "Let experiments start servers on this machine by command or profile.", panel="Target"
    )

    parallel_runs: int = option(
        1, "Runs at a time. More than one disturb each other's measurement unless there are cores for each.",
        panel="Load", ge=1, le=64,
    )  # fmt: skip
    max_queued: int = option(
        1000, "Most runs that may wait; what is asked for beyond them is refused.", panel="Load", ge=1, le=10**6
    )
    max_concurrency: int = option(2000, "Most requests in flight that a run may ask for.", panel="Load", gt=0)
    max_rate: float = option(5000.0, "Most requests a second that a run may ask for.", panel="Load", gt=0)
    max_run_time: DurationSeconds = option(
        3600.0 * 4, "Longest time for a run, after which it is stopped in order.", panel="Load", metavar="TIME", gt=0
    )

    webhook_host: Annotated[Texts, AfterValidator(_names)] = option(
        [], "Hosts that webhooks may go to, written as for --allow-host. Default: none.",
        panel="Target", metavar="HOST,…",
    )  # fmt: skip

    admin_key_env: VariableName | None = option(
        None, "Environment variable with a key of all scopes, for the first start.", panel="Run", metavar="NAME"
    )
    admin_key_file: Path | None = option(None, "The same from a file.", panel="Run", metavar="FILE")
    make_key: bool = option(False, "Print a new key for --admin-key-file and exit; nothing is stored.", panel="Run")
    log_level: Literal["debug", "info", "warning", "error"] = option(
        "info", "What is logged, as JSON lines on stderr.", panel="Run", metavar="debug|info|warning|error"
    )

    @model_validator(mode="after")
    def _once(self) -> Self:
        if self.database is not None and self.database_file is not None:
            raise ValueError("expected one of --database and --database-file")
        if self.admin_key_env is not None and self.admin_key_file is not None:
            raise ValueError("expected one of --admin-key-env and --admin-key-file")
        return self

    @property
    def listens_beyond(self) -> bool:
        """Whether other machines can reach it."""
        if self.host == "localhost":
            return False
        try:
            return not ip_address(self.host).is_loopback
        except ValueError:
            return True
