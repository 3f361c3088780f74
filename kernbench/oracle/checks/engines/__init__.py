"""Groups j and v: matrix products, the vector engine."""
