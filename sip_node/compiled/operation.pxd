"""The numbers of a record of the op log, as C classes enter them."""

cdef enum WaitedFor:
    # What an operation has waited for since its request: an index of `CAUSES` in op_rows.pyx.
    FOR_NOTHING
    FOR_OPERAND
    FOR_CHANNEL
    FOR_ENGINE
    FOR_LAUNCH
    FOR_LINK
    FOR_MEMORY
    FOR_COMMAND


cdef struct Operation:
    # The numbers of a record, with the names of `OpRecord`, the time of its request, and the step
    # of a program that issued it.
    long long start_ps
    long long end_ps
    long long address
    long long nbytes
    long long requested_ps
    long long step
    int waited_for
    int cube
    int pe
    unsigned int checksum
    bint flow_end
