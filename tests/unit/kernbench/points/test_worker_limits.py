from kernbench.points.worker_limits import memory_of_worker


def test_a_process_that_is_no_worker_has_no_limit():
    assert memory_of_worker() == 0
