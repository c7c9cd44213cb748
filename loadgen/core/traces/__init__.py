"""Lines of trace files to conversations."""
