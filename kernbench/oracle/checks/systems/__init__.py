"""Groups f, n and r: whole runs, equal parts, links between SIPs."""
