"""Random runs of packets, for hypothesis."""

from hypothesis import strategies as st

from runtime.core.simtime import NEVER_PS
from runtime.model.addresses import ADDRESS_BITS, MAX_SIPS
from runtime.wire.packets import (
    PacketKind,
    PacketRun,
    TransferFlow,
    TransferHeader,
    TransferRows,
)

times = st.integers(0, NEVER_PS)
counts = st.integers(0, 2**63 - 1)
sips = st.integers(0, MAX_SIPS - 1)
offsets = st.integers(0, 2**ADDRESS_BITS - 1)
headers = st.builds(
    TransferHeader,
    kind=st.sampled_from(sorted(PacketKind)),
    source_sip=sips,
    source_node=sips,
    sip=sips,
    node=sips,
    address=offsets,
    tag=counts,
    total=offsets,
    sent_ps=times,
    flow=st.none() | st.builds(TransferFlow, sips, sips, counts),
    rows=st.none()
    | st.builds(TransferRows, st.integers(1, 1 << 40), offsets, st.integers(0, 1 << 40), offsets),
    element=st.integers(0, 9),
    call=st.text(max_size=20),
)


def _run(
    number: int, header: TransferHeader | None, ends: bool, packets: list[tuple[int, ...]]
) -> PacketRun:
    heads_ps, tails_ps, seqs, begins, sizes = zip(*packets, strict=True)
    return PacketRun(
        number=number,
        header=header,
        ends=ends,
        heads_ps=tuple(sorted(heads_ps)),
        tails_ps=tails_ps,
        seqs=tuple(sorted(seqs)),
        begins=begins,
        sizes=sizes,
    )


packets = st.tuples(times, times, counts, offsets, st.integers(1, 1 << 30))
runs = st.builds(
    _run,
    counts,
    st.none() | headers,
    st.booleans(),
    st.lists(packets, min_size=1, max_size=3, unique_by=lambda packet: packet[2]),
)
