"""Closed forms of performance: what a transfer, a collective or a matrix product takes by theory.

Each formula stands here once and is used by the studies, by `perf`, `probe`, `why` and `validate`.
The only input is the topology file itself (`topology_file`): nothing is imported from the model of
the simulator, so that a comparison of a simulated time with a formula compares two independent
results. A new rule of the model changes one module here:

    topology_file     the numbers of a topology file, exact, by key path
    routes            hops of routes, and the keys of what they cost
    floor_plan        the route between two components, from the floor plan in the topology file
    sip_grid          shortest paths between SIPs
    servers           one link or memory that moves bytes; several of them in a row
    transfers         legs of a transfer: overheads + wires + drain
    route_times       the time of a hop, and of messages along routes
    commands          fixed times of a PE: issue, translation, start of a DMA request, IPCQ
    memory_access     a read or write: start, route, memory, bytes
    hbm               latency of a read, rates of patterns of accesses to banks
    bandwidths        bandwidth of an HBM slice, peak of the GEMM engine
    least_latencies   the file for lower bounds, where there is no closed form
    clocked_routers   a packet alone through routers with credits
    launches          launches, reports and answers between host and PEs
    roofline          compute bound, memory bound, arithmetic intensity
    vector_engine     time of one operation of the vector engine
    gemm              steps, cycles, bytes and times of a tiled matrix product
    fifo              waits at one server

The others compose these:

    kernel_costs      time of one command of a kernel: load, store, send, copy, add
    alpha_beta        messages of alpha + n/B, and the textbook times of collectives
    messages          a send and a receive between two SIPs
    ring_all_reduce   time of the ring all-reduce, and the rate of one queue pair
    all_reduce_times  time of each other all-reduce
    all_reduce_traffic  bytes on each link between SIPs
"""
