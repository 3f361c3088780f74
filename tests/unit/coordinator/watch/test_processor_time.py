"""The processor time of real processes: of this one, and of one that it starts."""

import os
import subprocess
import sys
from time import process_time

from coordinator.watch.processor_time import processor_time

BUSY = "from time import process_time\nwhile process_time() < 0.3: pass\nprint(flush=True)\ninput()"


def test_the_time_of_a_process_is_that_of_its_own_clock():
    before_s = process_time()
    time = processor_time(os.getpid())
    after_s = process_time()
    assert time is not None
    # Both are rounded to a hundredth.
    assert before_s - 0.03 <= time.own_s <= after_s + 0.03


def test_a_child_counts_while_it_runs_and_after_its_end():
    before = processor_time(os.getpid())
    assert before is not None
    child = subprocess.Popen(
        [sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.readline()
    running = processor_time(os.getpid())
    child.communicate(b"\n")
    ended = processor_time(os.getpid())
    assert running is not None
    assert ended is not None
    assert running.descendants_s - before.descendants_s > 0.25
    assert ended.descendants_s >= running.descendants_s
    assert running.all_s == running.own_s + running.descendants_s


def test_a_process_that_has_ended_has_no_time():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert processor_time(child.pid) is None
