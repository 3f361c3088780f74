"""The sources from which the modules of this package were built."""

SOURCES: str
"""Their digest, as `sources.digest` computes it."""
