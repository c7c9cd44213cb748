"""Whether one arm of an experiment is faster than another, by how much and up to which load."""
