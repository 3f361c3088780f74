"""`torch.compile` without a backend's name: Inductor generates Triton kernels for the device.

    TorchDynamo --> AOTAutograd --> Inductor --> Triton kernels --> kernbench.triton --> PE
                                        |
                                        '--> operators of `aten`: products, attention, sorts

- `compiler` compiles a graph, and runs one that Inductor cannot generate as operators.
- `device_codegen` is what Inductor calls for a device: generated code, its properties, choices.
- `block_sizes` chooses the blocks of a launch for the PEs of the device, or times several ones.
- `graph_passes` joins independent products of a graph, whose operators are `graph_operators`.
- `kernel_launches` launches a generated kernel; `absent_functions` refuses one.

Inductor and Triton are imported when a program compiles a graph with tensors of the device.
"""
