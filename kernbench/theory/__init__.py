"""Closed forms of performance: what a transfer, a collective or a matrix product takes by theory.

Each formula stands here once and is used by the studies, by `perf`, `probe` and `validate`. The
only input is the topology file itself (`topology_file`): nothing is imported from the model of the
simulator, so that a comparison of a simulated time with a formula compares two independent results.

    topology_file     the numbers of a topology file, exact, by key path
    hbm               latency of a read, rates of patterns of accesses to banks
    bandwidths        bandwidth of an HBM slice, peak of the GEMM engine
    roofline          compute bound, memory bound, arithmetic intensity
    servers           one link or memory that moves bytes; several of them in a row
    transfers         one transfer: overheads + wires + drain
    routes            routes between the components of a system, hop by hop
    clocked_routers   a packet alone through routers with credits
    floor_plan        the same routes derived from the floor plan in the topology file
    vector_engine     time of one operation of the vector engine
    kernel_costs      time of one command of a kernel: load, store, send, copy, add
    alpha_beta        messages of alpha + n/B, and the textbook times of collectives
    messages          a send and a receive between two SIPs
    ring_all_reduce   time of the ring all-reduce, and the rate of one queue pair
    all_reduce_times  time of each other all-reduce
    all_reduce_traffic  bytes on each link between SIPs
    sip_grid          shortest paths between SIPs
    gemm              steps, bytes and times of a tiled matrix product
"""
