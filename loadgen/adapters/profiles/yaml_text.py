"""YAML that programs and people read: nothing abbreviated, nothing folded."""

from collections.abc import Mapping
from typing import Any

import yaml


class _Plain(yaml.SafeDumper):
    """Writes what appears twice twice, and texts with several lines as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _str(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Plain.add_representer(str, _str)


def as_yaml(document: Mapping[str, Any]) -> str:
    """A document, its keys in their order."""
    return str(yaml.dump(document, Dumper=_Plain, sort_keys=False, width=10_000, allow_unicode=True))


def as_comment(text: str) -> str:
    """The text as lines that YAML leaves out."""
    return "".join(f"# {line}\n" for line in text.splitlines())
