"""Parts of kernbench in C: one shared library, beside this file, and the choice of what runs.

The sources are in the rooms to which they belong: texts and parts of the kernel, which are found
before their `.py` (`library.prefer_compiled_modules`), and packages `compiled`, which find what is
in C only by `library.path_entries`.
"""

from runtime.core.compiled.library import path_entries

__path__.extend(path_entries())
