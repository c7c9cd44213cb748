"""Gates as people write them."""

from collections.abc import Sequence

from loadgen.core.comparison.gates import parse_gate
from loadgen.core.errors import ConfigError
from loadgen.service.problems import FieldProblem, invalid


def check_gates(gates: Sequence[str], pointer: str) -> None:
    """Raises Problem that names the first one that is none, by its place behind `pointer`."""
    for place, gate in enumerate(gates):
        try:
            parse_gate(gate)
        except ConfigError as error:
            raise invalid("a gate is wrong", FieldProblem(pointer=f"{pointer}{place}", detail=str(error))) from None
