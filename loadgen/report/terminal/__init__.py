"""A run or a sweep as text for a terminal of a given width; without colour it is plain text for a file or a pipe."""

from loadgen.report.terminal.frame import verdict_block
from loadgen.report.terminal.run import run_text
from loadgen.report.terminal.sweep import sweep_text

__all__ = ["run_text", "sweep_text", "verdict_block"]
