"""The programs whose runs `make chaos` disturbs, and what an undisturbed run of each prints."""

from dataclasses import dataclass

from tests.support.runs import ROOT

SCRIPT = "script"


@dataclass(frozen=True)
class Program:
    """The arguments of a run. `lps` is its number of processes beside the command."""

    words: tuple[str, ...]
    lps: int

    def __str__(self) -> str:
        return " ".join(self.words).replace(f"{ROOT}/", "")


@dataclass(frozen=True)
class Undisturbed:
    """The digest of an undisturbed run, as it is printed, and its wall time on the busy machine."""

    digest: str
    wall_s: float


def _bench(sips: int, procs: int, name: str, *flags: str) -> Program:
    return Program((f"--sips={sips}", f"--procs={procs}", f"--bench={name}", *flags), procs)


def _script(sips: int, name: str, *flags: str) -> Program:
    return Program((f"--sips={sips}", str(ROOT / "examples" / name), *flags), sips)


PROGRAMS = (
    _bench(2, 2, "ccl-allreduce"),
    _bench(2, 1, "ccl-allreduce", "--algorithm=ring", "--max-bytes=65536"),
    _bench(3, 3, "ccl-allreduce", "--algorithm=ring", "--max-bytes=4096"),
    _bench(4, 2, "ccl-allreduce", "--algorithm=ring", "--max-bytes=16384"),
    _bench(4, 4, "ipcq-allreduce"),
    _bench(2, 2, "congestion"),
    _bench(2, 2, "tp-mlp"),
    _bench(3, 2, "qkv-gemm"),
    _bench(2, 1, "gemm-single-pe"),
    _script(2, "sharded_sgd.py"),
    _script(3, "overlap.py"),
    _script(2, "softmax.py"),
)
CONNECTED = tuple(each for each in PROGRAMS if each.lps > 1)
"""The programs whose LPs have sockets for each other."""
