"""Rank programs and kernels, as greenlets."""

# Before any module that is compiled.
from runtime.core.compiled.choice import CORE as CORE
