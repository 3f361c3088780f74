"""SIPs are in the plural for every number but one."""

from kernbench.studies.sip_count import sip_count


def test_one_has_a_singular_and_every_other_number_a_plural():
    assert [sip_count(count) for count in (1, 2, 16)] == ["1 SIP", "2 SIPs", "16 SIPs"]
