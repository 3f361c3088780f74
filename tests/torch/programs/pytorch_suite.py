"""PyTorch's own tests of `torch.distributed`, in the ranks of one run; prints an outcome for each.

The tests are those of the wheel, in `torch.testing._internal`. They begin a process for each rank,
which the run has begun already, so the body of each test is called in the ranks; and their barrier
of files in wall time is one of the device. `TEMP_DIR` is an empty directory of all ranks.

The names of backends in these tests are those of PyTorch, and tests are skipped by them as they are
imported. So they are imported as for `ahbm`, as for gloo, and, for all-to-all and groups of two
ranks, as for MPI; a test runs as for the first of them that does not skip it.
"""

import importlib
import os
import sys
import traceback
import unittest
from pathlib import Path

import torch
import torch.distributed as dist
from torch.testing._internal import common_distributed

BACKEND = "ahbm"
LIKE = (BACKEND, "gloo", "mpi")
MODULE = "torch.testing._internal.distributed.distributed_test"
NOT_FOR_THE_DEVICE = (
    # A receive from any rank, which the fabric does not match.
    *("test_send_recv_any_source", "test_send_recv_any_source_autograd_profiler"),
    "test_send_recv_any_source_torch_profiler",
    # Limits of wall time, which passes for all ranks together; `torch` itself refuses monitored
    # barriers of another backend than gloo.
    *(
        "test_barrier_timeout_full_group",
        "test_barrier_timeout_global",
        "test_barrier_timeout_group",
    ),
    *("test_monitored_barrier_failure_order", "test_monitored_barrier_gloo"),
    *("test_monitored_barrier_gloo_rank_0_timeout", "test_monitored_barrier_gloo_subgroup"),
    "test_monitored_barrier_wait_all_ranks",
    # Sparse tensors.
    "test_sparse_all_reduce_sum",
)


def known_to_pytorch() -> None:
    """Let PyTorch's tests run with this backend what they run with gloo."""
    for features in common_distributed.DistTestCases.backend_feature.values():
        if "gloo" in features:
            features.add(BACKEND)


def tests_as_for(backend: str) -> type[unittest.TestCase]:
    """The tests that PyTorch does not skip for a backend, without the processes and files that they
    make.
    """
    os.environ["BACKEND"] = backend
    sys.modules.pop(MODULE, None)
    module = importlib.import_module(MODULE)
    # As for MPI, tests of groups with rank 2 run with any number of ranks.
    named = "gloo" if dist.get_world_size() < 3 else backend

    class InTheRanksOfARun(
        module.DistributedTest._DistTestBase,
        module.TestDistBackend,
    ):
        def _barrier(self, *_: object, **__: object) -> None:
            dist.barrier()

        def setUp(self) -> None:
            torch.manual_seed(1234)
            os.environ["BACKEND"] = named
            # Objects are sent by the names of their classes.
            sys.modules[MODULE] = module

        def tearDown(self) -> None:
            pass

    return InTheRanksOfARun


def outcome(tests: type[unittest.TestCase], name: str) -> str:
    """The outcome of a test on this rank: pass, skip, or the error."""
    test = tests(name)
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
    dist.init_process_group(BACKEND)
    known_to_pytorch()
    known = [tests_as_for(each) for each in LIKE]
    for name in unittest.TestLoader().getTestCaseNames(known[0]):
        if name in NOT_FOR_THE_DEVICE or not any(word in name for word in sys.argv[1:] or [""]):
            continue
        found = next((each for tests in known if (each := outcome(tests, name)) != "skip"), "skip")
        sys.stdout.write(f"= {name} | {found} | rank {dist.get_rank()}\n")
        sys.stdout.flush()
        if not dist.is_initialized():
            dist.init_process_group(BACKEND)


main()
