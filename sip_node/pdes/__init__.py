"""Conservative synchronisation of LPs, without any knowledge of chips."""

# Before any module that is compiled.
from runtime.core.compiled.choice import CORE as CORE
