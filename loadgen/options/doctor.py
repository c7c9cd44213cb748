"""The options of `doctor`."""

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from loadgen.core.request import Endpoint
from loadgen.options.fields import Headers


def _option(default: Any, help_text: str, *, panel: str = "Target", metavar: str | None = None, flag: str = "") -> Any:
    extra: dict[str, Any] = {"panel": panel, "metavar": metavar, "flags": [flag] if flag else []}
    return Field(default, description=help_text, json_schema_extra=extra)


class DoctorOptions(BaseModel):
    """Which of this client's transports to check, and which target if any."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    transport: Literal["native", "httpx", "both", "none"] = _option(
        "both", "Transports of this client to check.", panel="Client", metavar="native|httpx|both|none"
    )
    url: str | None = _option(None, "Also check what this target can do. With or without /v1.", metavar="URL")
    endpoint: Endpoint = _option(Endpoint.CHAT, "Route of the target to try.", metavar="chat|completions|responses")
    model: str | None = _option(None, "Model name. Default: the target's only model.")
    api_key_env: str | None = _option(None, "Name of the environment variable that holds the API key.", metavar="NAME")
    header: Headers = _option(
        {}, "A request header, as KEY=VALUE; may be given several times.", metavar="K=V", flag="-H"
    )
    ca_file: Path | None = _option(None, "Certificate authorities to trust instead of the system's.", metavar="FILE")
    insecure: bool = _option(False, "Do not verify the target's certificate.")
    json_output: bool = _option(False, "Print the checks as JSON.", panel="Output", flag="--json")
