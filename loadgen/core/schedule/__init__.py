"""Rates and traces to due instants, and conversations to a plan."""
