"""Modules in C and in Python: a `.pxd` with functions of C, and the `.py` of the interpreter.

A text imports such a module under the name under which its `.pxd` cimports it. So one call is a
call of C where the text is compiled, and of Python where it is interpreted.
"""

# Before any module that is compiled.
from runtime.core.compiled.choice import CORE as CORE
