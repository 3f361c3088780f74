"""The parts of the core with two versions: one in C, and one for the interpreter."""
