"""Closed forms of performance: what a transfer, a collective or a matrix product takes by theory.

Each formula stands here once and is used by the studies, by `perf`, `probe`, `why` and the checks.
The only input is the topology file itself (`topology_file`): nothing is imported from the model of
the simulator, so that a comparison of a simulated time with a formula compares two independent
results. A new rule of the model changes one module here:

    topology_file     the numbers of a topology file, exact, by key path
    servers           one link or memory that moves bytes; several of them in a row
    bandwidths        bandwidth of an HBM slice, peak of the GEMM engine
    roofline          compute bound, memory bound, arithmetic intensity
    commands          fixed times of a PE: issue, translation, start of a DMA request, IPCQ
    hbm               latency of a read, rates of patterns of accesses to banks
    alpha_beta        messages of alpha + n/B, and the textbook times of collectives

    paths/            routes through a system, and times of messages along them when it is idle
    engines/          matrix products, the vector engine, the roofline of a PE
    kernels/          commands of kernels, launches, barriers, sends and receives
    collectives/      times, bounds and bytes of collectives between SIPs

A room imports from those above it. Closed forms that only tests use are in tests/fidelity/theory.
"""
