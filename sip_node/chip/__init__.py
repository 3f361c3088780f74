"""The chip: the model of one SIP."""

# Before any module that is compiled.
from runtime.core.compiled.choice import CORE as CORE
