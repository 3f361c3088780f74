"""The state of transfers in flight, as Python sees it."""
