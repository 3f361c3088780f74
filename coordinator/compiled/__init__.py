"""Twins in C of the classes that read and write every operation of a run."""

from runtime.core.compiled.library import path_entries

__path__.extend(path_entries())
