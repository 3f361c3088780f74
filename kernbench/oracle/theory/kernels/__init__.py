"""Times of kernels on an idle system: their commands, launches, messages and barriers."""
