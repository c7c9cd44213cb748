"""Trace and prompts files on disk."""

from loadgen.adapters.trace_files.source import TraceSource, open_trace, save_native

__all__ = ["TraceSource", "open_trace", "save_native"]
