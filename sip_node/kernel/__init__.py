"""The kernel: what the texts of components call, with a version in C and one in Python.

A text is a `.py` with a `.pxd` of its C types, which is compiled or interpreted. Here are the
functions and classes that need C itself, such as the structs of the calendar. A text imports the
module, and its `.pxd` cimports it under the same name.
"""
