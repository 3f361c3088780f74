"""Runs the compiled core under ASan and UBSan: `make sanitize`.

A copy of the checkout in `build/sanitized` is built with both sanitizers. The property tests of
both cores and eight benches run on it; a report of any process is an error.
First, a planted write beyond a buffer must be reported: a sanitizer that is not loaded is noticed.
`python -m tests.sanitize NAME` runs the steps with NAME in their command.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPY = ROOT / "build" / "sanitized"
FOLDERS = ("runtime", "sip_node", "coordinator", "kernbench", "tests", "examples")
FILES = ("hatch_build.py", "launch.py", "topology.yaml", "ccl.yaml", "pyproject.toml", "README.md")
# Python's own flags wrap signed integers, which hides their overflow.
FLAGS = "-fsanitize=address,undefined"
COMPILER = f"-O1 -fno-wrapv -fno-omit-frame-pointer {FLAGS}"
PLANTED = "import ctypes; ctypes.memset(ctypes.create_string_buffer(8), 0, 4096)"
TESTS = (
    "tests/property/test_compiled_core.py",
    "tests/property/test_compiled_crossings.py",
    "tests/property/test_credited_machines.py",
    "tests/property/test_cores_on_random_programs.py",
    "tests/property/test_run_blocks.py",
    "tests/property/test_fast_forward.py",
    "tests/unit/sip_node/compiled",
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
    if not (_run(("-c", PLANTED), "planted") and _reports("planted")):
        print("sanitize: the planted overflow is not reported: the sanitizers do not run")
        return 1
    failed = [step for step in STEPS if name in " ".join(step) and _run(step, "report")]
    for report in _reports("report"):
        print(f"{report}:\n{report.read_text(encoding='utf-8', errors='replace')[:4000]}")
    print(f"sanitize: {len(failed)} steps failed, {len(_reports('report'))} reports")
    return 1 if failed or _reports("report") else 0


def _build() -> None:
    """The copy with a library of its own; what was compiled before stays."""
    for folder in FOLDERS:
        shutil.rmtree(COPY / folder, ignore_errors=True)
        ignored = shutil.ignore_patterns("*.so", "__pycache__")
        shutil.copytree(ROOT / folder, COPY / folder, ignore=ignored)
    for file in FILES:
        shutil.copy2(ROOT / file, COPY / file)
    for report in (*_reports("report"), *_reports("planted")):
        report.unlink()
    flags = {"CFLAGS": COMPILER, "LDFLAGS": FLAGS, "KERNBENCH_CORE": "compiled"}
    subprocess.run(
        [sys.executable, "hatch_build.py"], cwd=COPY, env={**os.environ, **flags}, check=True
    )


def _run(step: tuple[str, ...], log: str) -> int:
    """Run Python with `step`; its exit code. Reports go to files that begin with `log`."""
    print("sanitize:", *step, flush=True)
    asan = "detect_leaks=0:detect_stack_use_after_return=1"
    environment = {
        **os.environ,
        "LD_PRELOAD": " ".join(_library(name) for name in ("libasan.so", "libubsan.so")),
        # Python frees nothing at its exit. A greenlet's stack is moved while it waits, so frames
        # that are left have a heap of their own.
        "ASAN_OPTIONS": f"{asan}:log_path={COPY / log}.asan",
        "UBSAN_OPTIONS": f"print_stacktrace=1:log_path={COPY / log}.ubsan",
        # The blocks of Python's own allocator have no borders that ASan sees.
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(COPY),
        "KERNBENCH_CORE": "compiled",
    }
    output = None if log == "report" else subprocess.DEVNULL
    command = [sys.executable, *step]
    return subprocess.run(command, cwd=COPY, env=environment, stdout=output, check=False).returncode


def _reports(log: str) -> list[Path]:
    return sorted(COPY.glob(f"{log}.*san.*"))


def _library(name: str) -> str:
    command = [os.environ.get("CC", "gcc"), f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
