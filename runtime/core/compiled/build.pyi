"""The sources from which the library was built."""

SOURCES: str
"""Their digest, as `sources.digest` computes it."""
