"""Installs queue tables on the PEs of a rank, and finds the table that a launch names."""

from runtime.ccl.ring_allocator import QueueTableSpec
from runtime.core.device import Handle
from runtime.core.errors import nearest
from runtime.core.requests import IpcqInitMsg
from runtime.device.rank.rank_state import running_rank


def queue_table(name: object) -> QueueTableSpec:
    """The queue table `name` of the default process group: that of one of its algorithms, or of the
    section `queues` of `ccl.yaml`.

    `ValueError` with the nearest name if there is none, `TypeError` unless the name is a string.
    """
    if not isinstance(name, str):
        raise TypeError(f"queues={name!r}: it has to be the name of a queue table")
    group = running_rank().process_group
    if group is None:
        raise ValueError(
            f"queues={name!r}: queue tables belong to the default process group; call "
            "torch.distributed.init_process_group first"
        )
    if name not in group.tables:
        raise ValueError(
            f"queues={name!r}: the default process group, of algorithm {group.algorithm!r}, has no "
            f"such queue table{nearest(name, group.tables)}"
        )
    return group.tables[name]


def install(table: QueueTableSpec) -> Handle | None:
    """Queue the installation of a queue table on the PEs of this rank, unless it is installed. Does
    not wait.
    """
    if table.installed:
        return None
    state = running_rank()
    # Set before the request completes: the launches of later calls wait for it.
    table.installed = True
    installs = table.plan.of_sip(state.rank)
    for cube, pe in installs:
        kind = table.group.algorithm.buffer_kind
        state.memory.reserve_rings(
            kind, cube, pe, table.plan.ring_bytes_a_pe, table.plan.above_bytes
        )
    # One request per cube: the M_CPU of the cube distributes it to its PEs.
    cubes = sorted({cube for cube, _ in installs})
    requests = [
        IpcqInitMsg(
            cube,
            tuple((pe, pairs) for (owner, pe), pairs in installs.items() if owner == cube),
            table.name,
        )
        for cube in cubes
    ]
    installing = state.device.submit(requests, f"installing the queues {table.name!r}")
    # Kernels in other streams, too, wait for it.
    state.installs[table.name] = installing
    return installing
