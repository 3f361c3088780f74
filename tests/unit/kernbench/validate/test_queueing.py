from kernbench.validate.queueing import lindley_ps


def test_a_packet_waits_for_what_is_left_of_the_packets_before_it():
    assert lindley_ps([0, 4, 5, 40], 10) == [0, 6, 15, 0]


def test_packets_that_arrive_together_wait_for_each_other():
    assert lindley_ps([7, 7, 7], 10) == [0, 10, 20]
