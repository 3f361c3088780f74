"""Parts of kernbench in C: one shared library, beside this file, and the choice of what runs.

The sources are in the `compiled` packages of the rooms to which they belong, each of which finds
its modules in the library by `library.path_entries`. What is in C is a *twin* of a class in Python,
its *reference*, which runs where the library is not built.
"""

from runtime.core.compiled.library import path_entries

__path__.extend(path_entries())
