"""One LP: a process of SIPs, its engine, and the chips that it simulates."""

# Before any module that is compiled.
from runtime.core.compiled.choice import CORE as CORE
