"""The coordinator of a run: starts its LPs, watches them, and reports."""

# Before any module that is compiled.
from runtime.core.compiled.choice import CORE as CORE
