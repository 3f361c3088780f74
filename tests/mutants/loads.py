"""Mutants of the loads of links, ports and memories over time, and of counters.

No simulated time depends on them; see records.py.
"""

from tests.mutants.mutant import Mutant

BINS = "sip_node/chip/records/time_bins.py"
SERVER = "sip_node/chip/fabric/server.py"
FLITS = "sip_node/chip/fabric/clocked/worm.py"
ROUTER = "sip_node/chip/fabric/clocked/router.py"
DMA = "sip_node/chip/pe/dma.py"
MATH = "sip_node/chip/pe/compute/math.py"

WAITS = "tests/integration/test_waits_of_operations.py"
TEST_BINS = "tests/unit/sip_node/chip/records/test_time_bins.py"
TEST_CREDITED = "tests/unit/sip_node/chip/fabric/clocked/test_credited_fabric.py"
TEST_LINKS = "tests/fidelity/test_links.py"
TEST_SCHEDULER = "tests/unit/sip_node/chip/pe/compute/test_scheduler.py"

MUTANTS: tuple[Mutant, ...] = (
    # Loads over time.
    Mutant(
        name="bins-busy-in-the-first-only",
        file=BINS,
        old="            self._busy_ps += self._end_ps - start_ps\n",
        new="            self._busy_ps += 0\n",
        breaks="A link is busy in all bins that a service spans.",
        noticed_by=TEST_BINS,
    ),
    Mutant(
        name="bins-wait-counted-again",
        file=BINS,
        old="        self.waited_ps = 0\n        if self._log",
        new="        if self._log",
        breaks="A wait in a queue before counts for one service.",
        noticed_by=TEST_BINS,
    ),
    Mutant(
        name="bins-wait-before-lost",
        file=BINS,
        old="queued_ps + self.waited_ps, packets\n",
        new="queued_ps, packets\n",
        breaks="A wait in a queue before counts for the next service.",
        noticed_by=TEST_BINS,
    ),
    Mutant(
        name="bins-of-twice-the-width",
        file=BINS,
        old="        while time_ps >> self.shift >= MOST_BINS:\n",
        new="        while time_ps >> self.shift >= MOST_BINS // 2:\n",
        breaks="The width is the least for which the bins suffice.",
        noticed_by=TEST_BINS,
    ),
    Mutant(
        name="bins-united-to-one-of-them",
        file=BINS,
        old="            rows[-1] = (number, *map(sum, zip(load, row[1:], strict=True)))",
        new="            rows[-1] = (number, *map(max, zip(load, row[1:], strict=True)))",
        breaks="The load of two united bins is the sum of both.",
        noticed_by=TEST_BINS,
    ),
    Mutant(
        name="loads-without-waits",
        file=SERVER,
        old="self.bins.add(start_ps, end_ps, nbytes, queued_ps, 1)",
        new="self.bins.add(start_ps, end_ps, nbytes, 0, 1)",
        breaks="The loads of a link over time have its waits.",
        noticed_by=WAITS,
    ),
    Mutant(
        name="loads-without-late-tails",
        file=SERVER,
        old="self.bins.add(start_ps, end_ps, nbytes, queued_ps, 1)",
        new="self.bins.add(start_ps, start_ps + duration_ps, nbytes, queued_ps, 1)",
        breaks="A link is busy until the tail of a packet has left.",
        noticed_by=WAITS,
    ),
    Mutant(
        name="loads-of-channels-without-the-queue",
        file="sip_node/chip/memory/transaction_queue.py",
        old="waited_ps = now_ps - access.submitted_ps if train is not None else 0",
        new="waited_ps = 0",
        breaks="The loads of a channel of a memory have the waits in the transaction queue.",
        noticed_by=WAITS,
    ),
    Mutant(
        name="loads-of-a-wide-link-in-units-of-its-own",
        file="sip_node/chip/records/link_loads.py",
        old="number << scale, *load",
        new="number, *load",
        breaks="The begins of the bins of a SIP are in units of the least width.",
        noticed_by="tests/unit/sip_node/chip/records/test_link_loads.py",
    ),
    Mutant(
        name="loads-of-slow-links-take-a-cycle",
        file=FLITS,
        old="end_ps = (now + self.flit_cycles) * period_ps",
        new="end_ps = (now + 1) * period_ps",
        breaks="A flit occupies a link for all its cycles, over time as well.",
        noticed_by=TEST_CREDITED,
    ),
    # Counters.
    Mutant(
        name="link-busy-without-late-tails",
        file=SERVER,
        old="self.busy_ps += end_ps - start_ps",
        new="self.busy_ps += duration_ps",
        breaks="A link is busy until the tail of a packet has left.",
        noticed_by=WAITS,
    ),
    Mutant(
        name="link-waits-until-the-tail",
        file=SERVER,
        old="queued_ps = start_ps - head_ps\n",
        new="queued_ps = max(start_ps - head_ps, start_ps - tail_ps + duration_ps)\n",
        breaks="A packet waits from the arrival of its head to the begin of its service.",
        noticed_by=TEST_LINKS,
    ),
    Mutant(
        name="clocked-link-busy-a-cycle-a-flit",
        file=FLITS,
        old="        return self.flits * self.flit_cycles * self._period_ps\n",
        new="        return self.flits * self._period_ps\n",
        breaks="A clocked link is busy for all the cycles of its flits.",
        noticed_by=TEST_CREDITED,
    ),
    Mutant(
        name="router-waits-include-its-pipeline",
        file=ROUTER,
        old="waited = now - channel.take(now) - channel.routing - self.allocate\n",
        new="waited = now - channel.take(now)\n",
        breaks="The stages of a router are no wait of a head for its link.",
        noticed_by=TEST_CREDITED,
    ),
    Mutant(
        name="router-waits-of-all-flits",
        file=ROUTER,
        old="        if is_head:\n            port.nbytes += worm.nbytes\n"
        "            port.queued_cycles += waited\n",
        new="        port.queued_cycles += waited\n"
        "        if is_head:\n            port.nbytes += worm.nbytes\n",
        breaks="The wait of a packet for a clocked link is that of its head.",
        noticed_by=TEST_CREDITED,
    ),
    Mutant(
        name="source-waits-not-counted",
        file="sip_node/chip/fabric/clocked/injection.py",
        old="            port.queued_cycles += waited\n",
        new="            port.queued_cycles += 0\n",
        breaks="A packet waits at its source for the first link.",
        noticed_by=TEST_CREDITED,
    ),
    Mutant(
        name="dma-busy-from-the-request",
        file=DMA,
        old="self.busy_ps += now_ps - request.start_ps",
        new="self.busy_ps += now_ps - request.requested_ps",
        breaks="A DMA is busy with a request while that has a channel.",
        noticed_by="tests/unit/sip_node/chip/pe/test_dma.py",
    ),
    Mutant(
        name="epilogues-not-counted",
        file=MATH,
        old="        self.records += 1\n        pe, span_ps",
        new="        pe, span_ps",
        breaks="An epilogue is an operation of the vector engine.",
        noticed_by=TEST_SCHEDULER,
    ),
    Mutant(
        name="epilogues-take-no-busy-time",
        file=MATH,
        old="        self.busy_ps += self.free_ps - start_ps\n        self.records += 1\n",
        new="        self.records += 1\n",
        breaks="The vector engine is busy with epilogues too.",
        noticed_by=TEST_SCHEDULER,
    ),
)
