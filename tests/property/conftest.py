"""Settings of the properties."""

from hypothesis import settings

# How long one example takes says nothing about the code on a machine that does other work too.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
