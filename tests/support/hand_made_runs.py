"""Runs whose tables are written by hand, so that every number of their analysis is known."""

from collections.abc import Mapping, Sequence

from tests.support.run_tables import Row, command, op, program, step, tables

ONE_KERNEL_PS = 1000
SLOT = 4096
"""The address of the slot of `a_slot_and_its_credit`."""


def one_kernel() -> Mapping[str, Sequence[Row]]:
    """A launch, and a kernel that loads, adds and stores: 1,000 ps."""
    pe = {"cube": 2, "pe": 1}
    return tables(
        ops=[
            op("pe_dma", "load", 210, 298, requested_ps=204, cause="channel", step=1, **pe),
            op("pe_math", "add", 303, 350, step=2, **pe),
            op("pe_dma", "store", 354, 900, link="a->b", link_ps=46, memory_ps=100, step=3, **pe),
        ],
        programs=[
            program(1, 200, 900, command=0, kernel="k", thread="kernels", line="p.py:3", **pe),
            program(0, 0, 1000, thread="rank"),
        ],
        steps=[
            step(1, "load", 200, 300, step=1, issued_ps=203, released_by=0, line="k.py:1"),
            step(1, "math add", 300, 350, step=2, issued_ps=303, released_by=1, line="k.py:2"),
            step(1, "store", 350, 900, step=3, issued_ps=353, released_by=2, line="k.py:3"),
            step(0, "synchronize", 0, 1000, cause="command", line="p.py:4"),
        ],
        commands=[command(0, "KernelLaunchMsg", 0, 100, 1000, departed_ps=10, line="p.py:3")],
    )


def a_slot_and_its_credit(slot: int = SLOT) -> list[Mapping[str, Sequence[Row]]]:
    """A kernel of SIP 0 sends a slot twice, and one of SIP 1 receives both: 1,000 ps. The slot is
    at the address `slot`.

    The second send waits for the credit of the first receive.
    """
    pe = {"cube": 0, "pe": 0}
    sent = {"address": slot, "nbytes": 64} | pe
    received = {"read_address": slot, "nbytes": 64} | pe
    launch = {"command": 0, "kernel": "k", "thread": "collectives", **pe}
    commands = [command(0, "KernelLaunchMsg", 0, 60, 900)]
    sender = tables(
        ops=[
            op("pe_dma", "ipcq_send", 113, 123, step=1, **sent),
            op("pe_dma", "ipcq_send", 420, 440, requested_ps=400, step=2, **sent),
        ],
        programs=[program(1, 110, 450, **launch), program(0, 0, 900)],
        steps=[
            step(1, "send", 110, 130, step=1, issued_ps=113, released_by=0, line="k.py:5"),
            step(1, "send", 130, 450, step=2, issued_ps=133, released_by=1, line="k.py:5"),
            step(0, "synchronize", 0, 900),
        ],
        commands=commands,
    )
    receiver = tables(
        ops=[
            op("pe_ipcq", "arrival", 113, 300, address=slot, nbytes=64, **pe),
            op("pe_dma", "ipcq_recv", 300, 340, step=1, **received),
            op("pe_ipcq", "arrival", 420, 600, address=slot + 60, nbytes=64, **pe),
            op("pe_dma", "ipcq_recv", 600, 690, step=2, **received),
        ],
        programs=[program(1, 110, 700, **launch), program(0, 0, 1000)],
        steps=[
            step(1, "recv", 110, 350, step=1, issued_ps=113, released_by=1, line="k.py:7"),
            step(1, "recv", 350, 700, step=2, issued_ps=353, released_by=3, line="k.py:7"),
            step(0, "synchronize", 0, 1000),
        ],
        commands=[command(0, "KernelLaunchMsg", 0, 60, 1000)],
    )
    return [sender, receiver]
