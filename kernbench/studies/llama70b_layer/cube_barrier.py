"""A barrier of the PEs of a cube, by messages: PEs of other cubes need not arrive."""

from kernbench import tl


def cube_barrier(pes: int) -> None:
    """Wait until all `pes` PEs of the cube, a power of 2, have called it.

    In round b a PE exchanges a message with the PE whose number differs in bit b, as in recursive
    doubling; after log2(pes) rounds it depends on all. Queues: `hypercube`.
    """
    with tl.scratch():
        token = tl.zeros(1, tl.int32)
        for bit in range((pes - 1).bit_length()):
            direction = f"bit_{bit}"
            tl.send(direction, token)
            tl.recv(direction, 1, tl.int32)
