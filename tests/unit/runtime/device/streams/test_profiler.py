from runtime.core.trace import OpRecord
from runtime.device.streams.profiler import Profile


def test_exposed_communication_is_the_union_of_its_kernels_without_that_of_the_others():
    spans = [
        ("pe_cpu.collective", 1000, 5000),
        ("pe_cpu.collective", 2000, 6000),
        ("pe_cpu", 3000, 4000),
        ("pe_cpu", 3500, 4500),
        ("pe_cpu.transfer", 8000, 9000),
        # Beside no communication, and no kernel.
        ("pe_cpu", 10_000, 20_000),
        ("pe_dma", 0, 30_000),
    ]
    records = [OpRecord(engine, "kernel", start, end) for engine, start, end in spans]
    assert Profile(0, 30_000, records).exposed_communication_ns == (6 - 1) - (4.5 - 3) + 1


def test_a_profile_without_kernels_exposes_nothing():
    assert Profile(0, 30_000).exposed_communication_ns == 0
