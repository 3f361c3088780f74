"""Runs the compiled core under ASan and UBSan: `make sanitize`.

A copy of the checkout in `build/sanitized` is built with both sanitizers. The property tests of
both cores and eight benches run on it. A process ends with an error at its first report. First, a
planted fault must be reported for each sanitizer: one that is not loaded is noticed.
`python -m tests.sanitize NAME` runs the steps with NAME in their command.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
COPY = ROOT / "build" / "sanitized"
FOLDERS = ("runtime", "sip_node", "coordinator", "kernbench", "tests", "examples")
FILES = ("hatch_build.py", "launch.py", "topology.yaml", "ccl.yaml", "pyproject.toml", "README.md")
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
    "tests/unit/sip_node/chip",
    "tests/unit/sip_node/kernel",
    "tests/unit/sip_node/pdes",
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
    _build()
    for report, fault in PLANTED.items():
        run = _run(("-c", fault), stderr=subprocess.PIPE, text=True)
        if not run.returncode or report not in run.stderr:
            print(f"sanitize: no report of a planted {report}:\n{run.stderr}")
            return 1
    failed = [step for step in STEPS if name in " ".join(step) and _run(step).returncode]
    for step in failed:
        print("sanitize: failed:", *step)
    print(f"sanitize: {len(failed)} steps failed")
    return 1 if failed else 0


def _build() -> None:
    """The copy with a library of its own; what was compiled before stays."""
    for folder in FOLDERS:
        shutil.rmtree(COPY / folder, ignore_errors=True)
        ignored = shutil.ignore_patterns("*.so", "__pycache__")
        shutil.copytree(ROOT / folder, COPY / folder, ignore=ignored)
    for file in FILES:
        shutil.copy2(ROOT / file, COPY / file)
    flags = {"CFLAGS": COMPILER, "LDFLAGS": FLAGS, "KERNBENCH_CORE": "compiled"}
    subprocess.run(
        [sys.executable, "hatch_build.py"], cwd=COPY, env={**os.environ, **flags}, check=True
    )


def _run(step: tuple[str, ...], **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run Python with `step`. A report ends its process with an error."""
    print("sanitize:", *step, flush=True)
    asan = "detect_leaks=0:detect_stack_use_after_return=1"
    environment = {
        **os.environ,
        "LD_PRELOAD": " ".join(_library(name) for name in ("libasan.so", "libubsan.so")),
        # Python frees nothing at its exit. A greenlet's stack is moved while it waits, so frames
        # that are left have a heap of their own.
        "ASAN_OPTIONS": asan,
        # By default UBSan prints a report, which a test captures, and the process goes on.
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        # The blocks of Python's own allocator have no borders that ASan sees.
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(COPY),
        "KERNBENCH_CORE": "compiled",
    }
    command = [sys.executable, *step]
    return subprocess.run(command, cwd=COPY, env=environment, check=False, **options)


def _library(name: str) -> str:
    command = [os.environ.get("CC", "gcc"), f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
