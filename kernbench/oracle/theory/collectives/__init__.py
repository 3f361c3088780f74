"""Times, bounds and bytes of collectives between SIPs."""
