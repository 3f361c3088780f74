"""`torch.distributed` on the accelerator's own fabric: the backend is called `ahbm`."""

from enum import Enum
from importlib import import_module

from runtime.ccl.config import AlgorithmConfig
from runtime.ccl.group import Group
from runtime.ccl.plan import InstallPlan
from runtime.ccl.validators import VALIDATORS
from runtime.errors import ConfigError, nearest
from runtime.placement import DPPolicy
from runtime.rank_state import ProcessGroup, RankState, running_rank
from runtime.registry import look_up
from runtime.requests import IpcqInitMsg
from runtime.torch.ops import launch_on, shard_pointers
from runtime.torch.tensor import Tensor, empty

BACKEND = "ahbm"


class ReduceOp(Enum):
    """How contributions are combined."""

    SUM = "sum"


def init_process_group(backend: str = BACKEND, *, algorithm: str | None = None) -> None:
    """Join the default process group and install its queues on the PEs: this takes simulated time.

    `algorithm` is the one in `ccl.yaml` that its collectives use, by default `defaults.algorithm`. The queues outlive the
    group: a later one with the same algorithm finds them installed, one with another is a `RuntimeError`. `ValueError` for
    an unknown backend or if the group exists already, `ConfigError` if the files do not fit together.
    """
    state = running_rank()
    if backend != BACKEND:
        raise ValueError(f"Invalid backend: {backend!r}{nearest(backend, [BACKEND])}")
    if state.process_group is not None:
        raise ValueError("trying to initialize the default process group twice!")
    group = _group(state, algorithm)
    if state.installed is not None:
        if state.installed.group != group:
            installed = state.installed.group.algorithm.name
            raise RuntimeError(
                f"the queues of algorithm {installed!r} are on the PEs of this rank, and a PE takes one installation: "
                f"a process group with algorithm {group.algorithm.name!r} needs a run of its own"
            )
        state.process_group = state.installed
        return
    plan = InstallPlan(group, state.ccl.source)
    state.process_group = state.installed = ProcessGroup(group, plan)
    installs = plan.of_sip(state.rank)
    for cube, pe in installs:
        state.memories.reserve_rings(group.algorithm.buffer_kind, cube, pe, plan.ring_bytes_a_pe)
    cubes = sorted({cube for cube, _ in installs})
    requests = [IpcqInitMsg(cube, tuple((pe, pairs) for (at, pe), pairs in installs.items() if at == cube)) for cube in cubes]
    state.device.wait(state.device.submit(requests, "installing the queues of the process group"))


def _group(state: RankState, algorithm: str | None) -> Group:
    config = state.ccl.resolve(algorithm)
    sips = state.topology.sips
    world_size = config.ranks(sips)
    where = f"algorithms.{config.name}"
    if world_size > sips or state.rank >= world_size:
        raise ConfigError(state.ccl.source, f"{where}.world_size", f"is {world_size}, but rank {state.rank} of {sips} joins")
    group = Group(state.rank, world_size, config, state.topology)
    if not group.fits:
        problem = f"{group.sip_topology} joins {group.grid_w} x {group.grid_h} SIPs, the world size is {world_size}"
        raise ConfigError(state.ccl.source, f"{where}.topology", problem)
    if group.root_cube >= state.topology.cubes:
        problem = f"is {group.root_cube}, the last cube is {state.topology.cubes - 1}"
        raise ConfigError(state.ccl.source, f"{where}.root_cube", problem)
    return group


def destroy_process_group() -> None:
    """Leave the process group. Its queues stay installed, and a later group with the same algorithm uses them again."""
    running_rank().process_group = None


def is_initialized() -> bool:
    """Whether this rank is in a process group."""
    return running_rank().process_group is not None


def get_rank() -> int:
    """This rank in the process group."""
    return _joined().group.rank


def get_world_size() -> int:
    """How many ranks the process group has."""
    return _joined().group.world_size


def get_backend() -> str:
    """The backend of the process group."""
    _joined()
    return BACKEND


def get_algorithm() -> AlgorithmConfig:
    """The algorithm of the process group, as `ccl.yaml` configures it."""
    return _joined().group.algorithm


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM) -> None:
    """Replace the elements of `tensor` by their sum over all ranks, with the algorithm of the process group.

    Queued like a kernel: it returns at once, and whatever reads the tensor afterwards waits. Algorithm `ring` adds rank by
    rank, element by element, wherever the shards are; `intercube` also adds the shards of all cubes of a rank. Every rank
    must call it with the same shape, dtype and placement. `ValueError` if the placement does not suit the algorithm.
    """
    if op is not ReduceOp.SUM:
        raise ValueError(f"op {op!r} is not supported by all_reduce on {BACKEND}{nearest(str(op), ['ReduceOp.SUM'])}")
    joined = _joined()
    config = joined.group.algorithm
    specs = [shard.spec for shard in tensor.shards]
    validate = look_up(config.validator, VALIDATORS, running_rank().ccl.source, f"algorithms.{config.name}.validator")
    try:
        validate(specs, joined.plan.mapping.participants)
    except ValueError as error:
        raise ValueError(f"all_reduce with algorithm {config.name!r}: {error}") from None
    module = import_module(config.module)
    numel = specs[0].nbytes // tensor.itemsize
    arguments = (shard_pointers(tensor), numel, *module.arguments(joined.group, tensor.itemsize))
    launch_on(f"all_reduce.{config.name}", module.all_reduce, arguments, [tensor], [(spec.cube, spec.pe) for spec in specs])


def barrier() -> None:
    """Return when every rank has called it: an all-reduce of one element a PE, through the same queues."""
    joined, state = _joined(), running_rank()
    # The smallest tensor that suits the algorithm: one element on PE 0 of every cube that has neighbours, or of one cube.
    cubes = len({cube for cube, _ in joined.plan.mapping.local}) or 1
    all_reduce(empty(1, dp=DPPolicy(num_cubes=cubes, num_pes=1)))
    state.device.wait(state.device.submit([], "a barrier"))


def _joined() -> ProcessGroup:
    group = running_rank().process_group
    if group is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return group
