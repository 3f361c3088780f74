"""Sweeps: one program over values of keys and of arguments, a row a point."""
