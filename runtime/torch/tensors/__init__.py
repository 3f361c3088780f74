"""Tensors in simulated memory: storages and their windows, constructors, copies and reads."""
