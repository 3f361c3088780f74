"""Group i: queues and collectives between SIPs."""
