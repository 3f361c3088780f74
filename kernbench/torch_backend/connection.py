"""Connects the device to PyTorch in the process of a rank: its name, its C++ part, its operators,
its device module and its process group.
"""

import importlib
import os
import sys
from pkgutil import walk_packages
from types import ModuleType

import torch
from torch.utils.backend_registration import (
    generate_methods_for_privateuse1_backend,
    rename_privateuse1_backend,
)

from kernbench.torch_backend import aten, device_module
from kernbench.torch_backend.aten.draws.host_draws import register_host_draws
from kernbench.torch_backend.aten.fallback_chain import without_kernel
from kernbench.torch_backend.aten.operators import DEVICE, kernels, report
from kernbench.torch_backend.aten.products.attention_operators import register_attention
from kernbench.torch_backend.aten.rows.loss_operators import register_cross_entropy
from kernbench.torch_backend.distributed.checkpoint_saves import register_saves
from kernbench.torch_backend.distributed.groups import register_backend
from kernbench.torch_backend.inductor.compiler import register_inductor
from kernbench.torch_backend.own_kernels.triton_launch import register_triton
from kernbench.torch_backend.runtime import device_calls
from kernbench.torch_backend.runtime.autocast import register_autocast
from kernbench.torch_backend.runtime.child_processes import run_in_ranks
from kernbench.torch_backend.runtime.device_profile import register_device_profile
from kernbench.torch_backend.runtime.frame_hook import untraced, untraced_methods
from kernbench.torch_backend.runtime.late_patches import register_late_patches
from kernbench.torch_backend.runtime.native_build import NoNativePartError, native_module
from kernbench.torch_backend.runtime.no_device import REMEDY, NoDevice, note
from kernbench.torch_backend.runtime.patches import (
    keep_parameters,
    leave_triton_to_scripts,
    record_ranges,
    refuse_sparse,
    register_loading,
)
from kernbench.torch_backend.runtime.pytorch_api import (
    fall_back,
    implement,
    manual_seed,
    register_device_module,
)
from kernbench.torch_backend.runtime.storages import Storages, storages
from runtime.device.rank.rank_state import running_rank
from runtime.wire.environment import AS_CUDA

_SEED = 67280421310721
"""The seed of a generator that PyTorch makes without one."""


class _Libraries:
    """The registrations of operators, which end when the objects die."""

    kept: tuple[torch.library.Library, ...] = ()


def connect() -> None:
    """Connect the device, or without a C++ compiler what the reduced mode has of it; a second call
    does nothing. `ImportError` for a C++ part that does not compile, `RuntimeError` for a second
    rank of the process.
    """
    memory = storages()
    memory.rank_state()
    if _Libraries.kept:
        return
    rename_privateuse1_backend(DEVICE)
    try:
        native = native_module()
    except NoNativePartError as lacking:
        _Libraries.kept = _connected_without_device(str(lacking), memory.state.rank)
    else:
        _Libraries.kept = _connected_device(native, memory)
    _have_one_value_on_every_host()
    # PyTorch begins with a seed from the system: a script that sets none would differ in each run.
    manual_seed(_SEED + memory.state.rank)
    # A rank is a greenlet of this thread: a thread of the engine would run operators outside it.
    torch.autograd.set_multithreading_enabled(False)
    record_ranges()
    leave_triton_to_scripts()
    register_saves()
    run_in_ranks()


def _have_one_value_on_every_host() -> None:
    # Values that PyTorch computes on the host reach the simulated memories, and so the digest. MKL
    # splits sums by the number of threads, which is that of the cores of the machine by default; a
    # rank has one, as a worker of torchrun has, and what the user has set stays.
    if not {"OMP_NUM_THREADS", "MKL_NUM_THREADS"} & os.environ.keys():
        torch.set_num_threads(1)
    # MKL chooses its vector functions for the processor in the first call of one. Two threads in
    # that call were seen to get functions of 11 bits (a relative error of 3e-4) once in 70 times.
    torch.ones(1).sqrt()


def _connected_device(native: ModuleType, memory: Storages) -> tuple[torch.library.Library, ...]:
    calls = (
        memory.allocate,
        memory.release,
        memory.resized,
        lambda: running_rank().topology.sips,
        lambda: memory.state.rank,
    )
    # Reads of clocks go through this class in the process of a rank.
    untraced_methods(type(sys.modules["time"]))
    # Waits of these run the event loop, in its own greenlet of this thread.
    untraced_methods(type(memory.state.device))
    for each in (*calls, *(getattr(device_calls, name) for name in device_calls.__all__)):
        untraced(each)
    native.install(*calls, device_calls)
    libraries = _registered_operators()
    register_device_module(DEVICE, device_module)
    device_module.register_for_compilation()
    generate_methods_for_privateuse1_backend()
    keep_parameters(native.become)
    register_loading()
    register_inductor()
    register_late_patches()
    register_triton()
    register_device_profile()
    register_backend(DEVICE, "cpu")
    memory.state.at_end.append(_report)
    if os.environ.get(AS_CUDA) == "1":
        from kernbench.torch_backend.as_cuda import NOTE, map_cuda

        map_cuda()
        if memory.state.rank == 0:
            print(NOTE, flush=True)
    return libraries


def _registered_operators() -> tuple[torch.library.Library, ...]:
    # Each module of `aten` adds its operators to the table when it is imported.
    for module in walk_packages(aten.__path__, f"{aten.__name__}."):
        importlib.import_module(module.name)
    library, everything = torch.library.Library("aten", "IMPL"), torch.library.Library("_", "IMPL")
    for name, kernel in kernels(without_kernel):
        implement(library, name, kernel, "PrivateUse1")
    fall_back(everything, without_kernel, "PrivateUse1")
    for key in ("SparsePrivateUse1", "SparseCsrPrivateUse1"):
        fall_back(everything, refuse_sparse, key)
    register_attention(library)
    register_cross_entropy(library)
    register_host_draws(library)
    for key in ("Conjugate", "Negative"):
        # PyTorch resolves such views by a copy, which would be this operator again.
        implement(library, "_copy_from", torch.library.fallthrough_kernel, key)
    register_autocast(library, everything)
    return library, everything


def _connected_without_device(lacking: str, rank: int) -> tuple[torch.library.Library, ...]:
    from kernbench.torch_backend.runtime.host_mode import connect_host

    if os.environ.get(AS_CUDA) == "1":
        raise ImportError(
            f"--as-cuda puts the device 'ahbm' in place of CUDA, and there is none, because "
            f"{lacking}. {REMEDY}"
        )
    NoDevice.in_run(lacking)
    libraries = connect_host()
    register_backend("cpu")
    library = torch.library.Library("aten", "IMPL")
    register_host_draws(library)
    if rank == 0:
        print(note(lacking), flush=True)
    return *libraries, library


def _report() -> None:
    state = running_rank()
    state.device.synchronize()
    # The ranks of a program run the same operators, as a rule.
    if state.rank == 0:
        try:
            print(f"rank 0: {report()}", flush=True)
        # A report that fails must not turn a good run into a failed one.
        except Exception as error:  # noqa: BLE001
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            sys.stderr.write(f"kernbench: warning: no share of the operators: {reason}\n")
