"""Runs by the calendar."""
