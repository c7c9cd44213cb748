"""What capacity tests found over time, and whether it changed."""
