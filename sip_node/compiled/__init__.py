"""Modules in C only: packed records, and the walk that fast-forward makes."""

from runtime.core.compiled.library import path_entries

__path__.extend(path_entries())
