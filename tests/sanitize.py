"""Runs the compiled core under ASan and UBSan: `make sanitize`.

A copy of the checkout in `build/sanitized` is built with both sanitizers. The property tests of
both cores and eight benches run on it. A process ends with an error at its first report. First, a
planted fault must be reported for each sanitizer: one that is not loaded is noticed.
`python -m tests.sanitize NAME` runs the steps with NAME in their command.
"""

import os
import subprocess
import sys
from typing import Any

from tests.support.core_copy import ROOT, CoreCopy

# Python's own flags wrap signed integers, which hides their overflow.
FLAGS = "-fsanitize=address,undefined"
COMPILER = f"-O1 -fno-wrapv -fno-omit-frame-pointer {FLAGS}"
# For each sanitizer, a fault that it must report: a write beyond a buffer, and a difference of
# times that overflows, which no component computes.
PLANTED = {
    "heap-buffer-overflow": "import ctypes; ctypes.memset(ctypes.create_string_buffer(8), 0, 4096)",
    "signed integer overflow": "from sip_node.chip.fabric.server import Server; "
    "Server('planted', 1).reserve(-(1 << 63), 0, 0)",
}
TESTS = (
    "tests/property/test_compiled_core.py",
    "tests/property/test_compiled_crossings.py",
    "tests/property/test_credited_machines.py",
    "tests/property/test_cores_on_random_programs.py",
    "tests/property/test_run_blocks.py",
    "tests/property/test_fast_forward.py",
    # All folders, since components move from one to another.
    "tests/unit/sip_node",
)
BENCHES = (
    "ccl-allreduce",
    "gemm-single-pe",
    "qkv-gemm",
    "qkv-gemm-multi-pe",
    "tp-mlp",
    "tp-attention-block",
    "ipcq-allreduce",
    "congestion",
)
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", "900")
STEPS = (
    *((*PYTEST, path) for path in TESTS),
    *(("launch.py", "--sips", "2", "--bench", bench) for bench in BENCHES),
)


def main(name: str = "") -> int:
    """Build and run all steps; returns the exit code."""
    copy = CoreCopy(ROOT / "build" / "sanitized")
    copy.build(CFLAGS=COMPILER, LDFLAGS=FLAGS)
    for report, fault in PLANTED.items():
        run = _run(copy, ("-c", fault), stderr=subprocess.PIPE)
        if not run.returncode or report not in run.stderr:
            print(f"sanitize: no report of a planted {report}:\n{run.stderr}")
            return 1
    failed = [step for step in STEPS if name in " ".join(step) and _run(copy, step).returncode]
    for step in failed:
        print("sanitize: failed:", *step)
    print(f"sanitize: {len(failed)} steps failed")
    return 1 if failed else 0


def _run(
    copy: CoreCopy, step: tuple[str, ...], **options: Any
) -> "subprocess.CompletedProcess[str]":
    """Run Python with `step`. A report ends its process with an error."""
    print("sanitize:", *step, flush=True)
    asan = "detect_leaks=0:detect_stack_use_after_return=1"
    variables = {
        "LD_PRELOAD": " ".join(_library(name) for name in ("libasan.so", "libubsan.so")),
        # Python frees nothing at its exit. A greenlet's stack is moved while it waits, so frames
        # that are left have a heap of their own.
        "ASAN_OPTIONS": asan,
        # By default UBSan prints a report, which a test captures, and the process goes on.
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        # The blocks of Python's own allocator have no borders that ASan sees.
        "PYTHONMALLOC": "malloc",
    }
    return copy.run(step, variables, **options)


def _library(name: str) -> str:
    command = [os.environ.get("CC", "gcc"), f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
