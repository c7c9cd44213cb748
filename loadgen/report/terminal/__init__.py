"""A run, a sweep or a search for a capacity as text for a terminal of a given width, or without colour for a pipe."""

from loadgen.report.terminal.capacity import capacity_text
from loadgen.report.terminal.frame import verdict_block
from loadgen.report.terminal.run import run_text
from loadgen.report.terminal.sweep import sweep_text

__all__ = ["capacity_text", "run_text", "sweep_text", "verdict_block"]
