"""Groups a, b, c, e and h: single transfers, sharing, routes with credits, HBM."""
