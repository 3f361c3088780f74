"""Times of the engines of a PE: matrix products and the vector engine."""
