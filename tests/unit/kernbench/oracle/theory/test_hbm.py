"""Times of patterns on banks, against sums written out by hand."""

from fractions import Fraction

from kernbench.oracle.theory.hbm import BANKS, BankTimes, read_latency_ps
from kernbench.oracle.theory.topology_file import TopologyFile
from tests.support.topologies import default_text

FILE = TopologyFile.of(default_text())
BANKED = FILE.with_values({"hbm.model": "banks"})


def test_a_read_of_a_closed_row_has_one_latency_in_both_models() -> None:
    assert read_latency_ps(FILE) == 52_000
    assert read_latency_ps(BANKED) == 19_500 + 12_500 + 20_000


def test_a_bank_takes_a_new_row_every_t_rc_or_later_if_its_bytes_take_longer() -> None:
    times = BankTimes(FILE)
    assert times.bytes_ps(256) == 8_000
    assert times.one_bank_ps(256) == 28_500 + 16_500
    # 1024 B take 32 ns: from 19.5 to 51.5.
    assert times.one_bank_ps(1024) == 19_500 + 32_000 + 16_500


def test_a_channel_takes_rows_at_the_rate_of_bus_window_or_banks() -> None:
    assert BankTimes(FILE).all_banks_ps(256) == 8_000
    assert BankTimes(FILE).all_banks_ps(32) == 3_750
    assert BankTimes(FILE.with_values({BANKS + "t_faw_ns": 0})).all_banks_ps(32) == 45_000 / 16
    assert BankTimes(FILE.with_values({BANKS + "count": 2})).all_banks_ps(256) == 22_500


def test_refresh_takes_its_time_and_that_to_open_a_row_again() -> None:
    times = BankTimes(FILE)
    assert times.refresh_share() == 1 - Fraction(4695, 39000)
    assert times.stream_gbs() == 32 * times.refresh_share()
    assert BankTimes(FILE.with_values({BANKS + "t_refi_ns": 0})).refresh_share() == 1
