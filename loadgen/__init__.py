"""Loadgen: load testing for OpenAI-compatible inference servers that tells whether speculative decoding pays."""

__version__ = "0.1.0"
