"""Tensors as programs see them: constructors, methods, operators, and reads of the host."""
