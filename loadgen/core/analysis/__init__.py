"""Records of a run to its summary, curves and verdict."""
