"""PyTorch's own tests of `torch.distributed`, in the ranks of one run; prints an outcome for each.

The tests are those of the wheel, in `torch.testing._internal`. They begin a process for each rank,
which the run has begun already, so the body of each test is called in the ranks; and their barrier
of files in wall time is one of the device. `TEMP_DIR` is an empty directory of all ranks.
"""

import os
import sys
import traceback
import unittest
from pathlib import Path

import torch
import torch.distributed as dist
from torch.testing._internal import common_distributed

FROM_ANY_RANK = frozenset(
    f"test_send_recv_any_source{suffix}" for suffix in ("", "_autograd_profiler", "_torch_profiler")
)
"""Receives from any rank, which the fabric does not match."""

os.environ["BACKEND"] = "ahbm"
for features in common_distributed.DistTestCases.backend_feature.values():
    # What gloo has: distributed data parallel, subgroups.
    if "gloo" in features:
        features.add("ahbm")

# It reads the names above as it is imported.
from torch.testing._internal.distributed import distributed_test  # noqa: E402


class InTheRanksOfARun(
    distributed_test.DistributedTest._DistTestBase,
    distributed_test.TestDistBackend,
):
    """The tests, without the processes and files that they make."""

    def _barrier(self, *_: object, **__: object) -> None:
        dist.barrier()

    def setUp(self) -> None:
        torch.manual_seed(1234)

    def tearDown(self) -> None:
        pass


def outcome(name: str) -> str:
    """The outcome of a test on this rank: pass, skip, or the error."""
    test = InTheRanksOfARun(name)
    test.rank, test.file_name = dist.get_rank(), ""
    body = getattr(test, name)
    if getattr(body, "__unittest_skip__", False):
        return "skip"
    try:
        test.setUp()
        body()
    except unittest.SkipTest:
        return "skip"
    except SystemExit as end:
        # How these tests skip themselves in a rank.
        return "skip" if end.code else "pass"
    except Exception as error:  # noqa: BLE001 - the outcome of the test
        traceback.print_exc()
        return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return "pass"


def main() -> None:
    """All tests whose names have one of the words in the arguments; without arguments all."""
    (Path(os.environ["TEMP_DIR"]) / "test_dir").mkdir(exist_ok=True)
    dist.init_process_group("ahbm")
    for name in unittest.TestLoader().getTestCaseNames(InTheRanksOfARun):
        if name in FROM_ANY_RANK or not any(word in name for word in sys.argv[1:] or [""]):
            continue
        found = outcome(name)
        sys.stdout.write(f"= {name} | {found} | rank {dist.get_rank()}\n")
        sys.stdout.flush()
        if not dist.is_initialized():
            dist.init_process_group("ahbm")


main()
