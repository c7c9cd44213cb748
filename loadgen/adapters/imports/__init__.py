"""Results of other tools, as sides of a comparison."""

from loadgen.adapters.imports.exports import EXPORTS, read_export

__all__ = ["EXPORTS", "read_export"]
