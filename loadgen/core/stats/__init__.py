"""Quantiles, resampling and steady state."""
