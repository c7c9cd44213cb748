"""The options that name a target, for every command that talks to one."""

from pathlib import Path
from typing import Literal, Self

from pydantic import ConfigDict, model_validator

from loadgen.adapters.yaml_file import YamlModel
from loadgen.core.request import Endpoint
from loadgen.options.fields import Headers, Sendable, VariableName, option


class TargetOptions(YamlModel):
    """Where a server is and how to be let in."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, allow_inf_nan=False)

    url: str | None = option(None, "Base URL of the target, with or without /v1.", panel="Target", metavar="URL")
    endpoint: Endpoint = option(
        Endpoint.CHAT, "Route to use: chat, completions or responses.", panel="Target", metavar="ROUTE"
    )
    model: Sendable | None = option(None, "Model name. Default: the server's only model.", panel="Target")
    engine: Literal["vllm", "sglang", "tensorrt-llm", "llamacpp"] | None = option(
        None,
        "Engine of the server. Default: what it says itself, which a gateway before it may hide.",
        panel="Target",
        metavar="vllm|sglang|tensorrt-llm|llamacpp",
    )
    api_key_env: VariableName | None = option(
        None, "Name of the environment variable that holds the API key.", panel="Target", metavar="NAME"
    )
    header: Headers = option(
        {}, "A request header, as KEY=VALUE; may be given several times.", panel="Target", flags=("-H",), metavar="K=V"
    )
    ca_file: Path | None = option(
        None, "Certificate authorities to trust instead of the system's.", panel="Target", metavar="FILE"
    )
    client_cert: Path | None = option(
        None, "Client certificate in PEM form, with its key or beside --client-key.", panel="Target", metavar="FILE"
    )
    client_key: Path | None = option(None, "Key of the client certificate.", panel="Target", metavar="FILE")
    insecure: bool = option(False, "Do not verify the server's certificate.", panel="Target")

    @model_validator(mode="after")
    def _key_has_its_certificate(self) -> Self:
        if self.client_key is not None and self.client_cert is None:
            raise ValueError("--client-key needs --client-cert")
        return self
