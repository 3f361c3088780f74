"""The vector unit for which PyTorch and numpy choose code on this host.

The digest of a run that computes on the host may depend on it, so `run.json` names it.
"""

import os
from pathlib import Path

_CPU_INFO = Path("/proc/cpuinfo")
_VARIABLE = "ATEN_CPU_CAPABILITY"
"""Set by the user: PyTorch uses no more than that."""
_LEVELS = (
    ("AVX512", {"avx512f", "avx512dq", "avx512bw", "avx512vl", "fma"}),
    ("AVX2", {"avx2", "fma"}),
)
"""The flags of a processor for each level, by the rule of PyTorch."""


def cpu_capability(cpu_info: Path = _CPU_INFO) -> str:
    """`AVX512`, `AVX2` or `DEFAULT`, as PyTorch names it."""
    wanted = os.environ.get(_VARIABLE, "").upper()
    if wanted in {"DEFAULT", *(name for name, _ in _LEVELS)}:
        return wanted
    try:
        text = cpu_info.read_text("utf-8")
    except OSError:
        return "DEFAULT"
    flags = next(
        (set(line.split()) for line in text.splitlines() if line.startswith("flags")), set[str]()
    )
    return next((name for name, needed in _LEVELS if needed <= flags), "DEFAULT")
