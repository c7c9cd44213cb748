"""How commands present themselves in their help."""

from inspect import cleandoc
from typing import Any

from typer.core import TyperCommand, TyperGroup, TyperOption


class PlainCommand(TyperCommand):
    """A command whose help breaks lines where the terminal ends, not where its source does; its help option takes no
    `<bool>`."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        paragraphs = cleandoc(self.help or "").split("\n\n")
        self.help = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)

    def get_help_option(self, ctx: Any) -> TyperOption | None:
        """The option, as the other flags are shown."""
        return _as_flag(super().get_help_option(ctx))


class PlainGroup(TyperGroup):
    """The same for a group of commands."""

    def get_help_option(self, ctx: Any) -> TyperOption | None:
        """The option, as the other flags are shown."""
        return _as_flag(super().get_help_option(ctx))


class ArgumentsCommand(PlainCommand):
    """A command whose usage line names arguments as its help does, `DIR`, without typer's braces."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The usage line, piece by piece."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]


def _as_flag(option: TyperOption | None) -> TyperOption | None:
    if option is not None:
        option.metavar = ""
    return option
