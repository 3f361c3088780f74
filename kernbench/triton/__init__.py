"""Triton kernels on the PEs of the device (extra `kernbench[triton]`).

Triton's own interpreter executes the Python of a kernel, and the builder of this package replaces
its numpy builder:

    kernel of the user --> triton.language --> Builder --> Tape --> commands of `tl` --> PE
                                                  |
                                                  '--> IndexValue: numbers of the host side

- An `IndexValue` carries addresses, indices and masks, which follow from program ids and arguments.
  It stays on the host side: what describes a box becomes the numbers of a DMA descriptor.
- A `DeviceValue` is a value in the TCM of the PE: what a load, a product or an operation on such a
  value returns. Its commands are recorded on a tape, since Python runs ahead of the PE until it
  reads data.
- `TapeRun` issues the commands of a tape: it starts loads ahead, joins neighbouring operations of
  the vector engine to chains, and gives each value its part of TCM from its first to its last use.

Nothing imports this package before a Triton kernel is launched.
"""
