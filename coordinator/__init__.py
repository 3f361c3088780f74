"""The coordinator: launches the processes of a run, watches them, and reports what they did."""

# Before any module that is compiled.
from runtime.core.compiled.choice import CORE as CORE
