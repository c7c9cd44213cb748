"""What a request may say."""

from typing import Any, Literal

from loadgen.service.wire.common import Kind, View


class OptionList(View):
    """The options of a kind as JSON schema."""

    kind: Kind
    json_schema: dict[str, Any]


class TargetView(View):
    """A server that runs may name."""

    name: str
    url: str
    source: Literal["settings", "profile"]


class TargetList(View):
    """All of them."""

    items: list[TargetView]
    allowed_hosts: list[str]
