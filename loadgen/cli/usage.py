"""How commands with arguments present them in their help."""

from typing import Any

from typer.core import TyperCommand


class ArgumentsCommand(TyperCommand):
    """A command whose usage line names arguments as its help does, `DIR`, without typer's braces."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The usage line, piece by piece."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]
