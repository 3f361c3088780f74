"""Mutants of what a run records of operations, commands and programs: waits and their causes.

No simulated time depends on them. The checks of group w read waits of operations in the tables of
records, against closed forms; all other checks read counters and the op log. So tests notice the
rest of these mutants: those with times by hand or by formula, none of which only compares the
compiled core with the interpreted one.
"""

from tests.mutants.mutant import Mutant

TRAIN = "sip_node/chip/records/packet_train.py"
EGRESS = "sip_node/chip/ports/link_egress.py"
ROWS = "sip_node/chip/records/op_rows.py"
LOG = "sip_node/chip/records/op_log.py"
STEPS = "sip_node/programs/program_steps.py"
HOST = "sip_node/chip/host/host.py"
IO_CPU = "sip_node/chip/host/io_cpu.py"
GEMM = "sip_node/chip/pe/compute/gemm.py"
PORTS = "sip_node/chip/pe/compute/fetch_store.py"
CHAINS = "sip_node/chip/pe/compute/vector_chains.py"
MATH = "sip_node/chip/pe/compute/math.py"

WAITS = "tests/integration/test_waits_of_operations.py"
TEST_TRAIN = "tests/unit/sip_node/chip/records/test_packet_train.py"
TEST_STEPS = "tests/unit/sip_node/programs/test_program_steps.py"
ENGINES = "tests/integration/test_waits_for_engines.py"
TEST_SCHEDULER = "tests/unit/sip_node/chip/pe/compute/test_scheduler.py"

MUTANTS: tuple[Mutant, ...] = (
    # Waits of packets.
    Mutant(
        name="train-waits-for-itself",
        file=TRAIN,
        old="own_ps = max(head_ps, self._links.get(stage, 0))",
        new="own_ps = head_ps",
        breaks="A packet behind its own train has queued behind no other transfer.",
        noticed_by="w.port.16.",
    ),
    Mutant(
        name="train-counts-a-wait-for-every-packet",
        file=TRAIN,
        old="self._links[stage] = tail_ps - waited_ps",
        new="self._links[stage] = tail_ps - 2 * waited_ps",
        breaks="A delay by others counts once for the packets of a train behind it.",
        noticed_by=WAITS,
    ),
    Mutant(
        name="train-forgets-what-others-have-delayed",
        file=TRAIN,
        old="self._links[stage] = tail_ps - waited_ps",
        new="self._links[stage] = tail_ps",
        breaks="Every packet of a train is late for what others have delayed the train.",
        noticed_by=WAITS,
    ),
    Mutant(
        name="train-waits-for-itself-at-channels",
        file=TRAIN,
        old="            own_ps = max(own_ps, channels.get(each % MOST_CHANNELS, 0))\n",
        new="            own_ps = max(own_ps, 0)\n",
        breaks="An access behind one of its own train has queued behind no other transfer.",
        noticed_by=TEST_TRAIN,
    ),
    Mutant(
        name="train-waits-for-itself-at-a-port",
        file=TRAIN,
        old="waited_ps = max(start_ps - max(head_ps, self._port_ps), 0)",
        new="waited_ps = max(start_ps - head_ps, 0)",
        breaks="A packet behind its own train has not waited for the port of a TCM.",
        noticed_by=WAITS,
    ),
    Mutant(
        name="train-waits-for-itself-behind-a-router",
        file=TRAIN,
        old="        return 0 if is_next and packet > 1 else waited_ps\n",
        new="        return waited_ps\n",
        breaks="A head that follows a packet of its own train has waited for no other.",
        noticed_by=TEST_TRAIN,
    ),
    Mutant(
        name="waits-of-packets-add-up",
        file=TRAIN,
        old="            self.link_ps, self.link = link_ps, link\n",
        new="            self.link_ps, self.link = self.link_ps + link_ps, link\n",
        breaks="An operation has the longest wait of one packet, since its packets wait together.",
        noticed_by=TEST_TRAIN,
    ),
    Mutant(
        name="wait-at-the-port-between-sips-lost",
        file=EGRESS,
        old="            packet.queued(waited_ps, self.port.name)\n",
        new="            pass\n",
        breaks="The record of a crossing has the wait for the port as well.",
        noticed_by="w.port.",
    ),
    Mutant(
        name="memory-wait-lost-at-the-port-between-sips",
        file=EGRESS,
        old="        train.times.at_memory(packet.train.times.memory_ps)\n",
        new="",
        breaks="The record of a crossing has what its packets have waited for memories before.",
        noticed_by="w.memory.crossing",
    ),
    Mutant(
        name="crossing-requested-when-it-begins",
        file=EGRESS,
        old="begun = OpenRecord(start_ps, self.engine.now_ps, train)",
        new="begun = OpenRecord(start_ps, start_ps, train)",
        breaks="A crossing is requested when its first packet comes to the port.",
        noticed_by=WAITS,
    ),
    # The op log and its rows.
    Mutant(
        name="log-without-the-latest-end",
        file=LOG,
        old="            self.last_ps = record.end_ps\n",
        new="            self.last_ps = record.start_ps\n",
        breaks="The log has the latest end of its operations.",
        noticed_by="tests/unit/sip_node/chip/records/test_op_log.py",
    ),
    Mutant(
        name="rows-requested-at-their-start",
        file=LOG,
        old="record.start_ps if requested_ps is None else requested_ps\n",
        new="record.start_ps\n",
        breaks="The row of an operation has the time of its request.",
        noticed_by=WAITS,
    ),
    Mutant(
        name="rows-with-the-shortest-wait",
        file=ROWS,
        old="            (memory_ps, Cause.MEMORY),\n",
        new="            (0, Cause.MEMORY),\n",
        breaks="The cause of an operation is the longest of its waits.",
        noticed_by=WAITS,
    ),
    Mutant(
        name="rows-without-the-wait-for-a-channel",
        file=ROWS,
        old="(record.start_ps - requested_ps if cause else 0, cause)",
        new="(0, cause)",
        breaks="The wait for a channel or an engine lasts from the request to the start.",
        noticed_by=WAITS,
    ),
    Mutant(
        name="step-released-by-any-pe",
        file=LOG,
        old="(latest.end_ps, latest.cube, latest.pe) != (now_ps, cube, pe)",
        new="latest.end_ps != now_ps",
        breaks="A step is ended by an operation of the same PE.",
        noticed_by=TEST_STEPS,
    ),
    Mutant(
        name="steps-begin-with-their-wait",
        file=STEPS,
        old="issued_ps, cause, released_by = begin_ps + issue_ps, _NO_CAUSE, NONE",
        new="issued_ps, cause, released_by = begin_ps, _NO_CAUSE, NONE",
        breaks="The commands of a step cost their time of it.",
        noticed_by=TEST_STEPS,
    ),
    Mutant(
        name="steps-of-peers-released-by-operations",
        file=STEPS,
        old="                if cause != _PEER:\n",
        new="                if cause:\n",
        breaks="A barrier is ended by no operation.",
        noticed_by=TEST_STEPS,
    ),
    Mutant(
        name="fetches-of-a-step-begin-together",
        file=PORTS,
        old="self.starts_ps.values[self.fetches] = start_ps",
        new="self.starts_ps.values[self.fetches] = now_ps",
        breaks="The fetch port takes one tile after the other.",
        noticed_by=TEST_SCHEDULER,
    ),
    Mutant(
        name="step-requested-before-the-engine-is-free",
        file=GEMM,
        old="self.requested_ps = max(self.free_ps, token.submitted_ps)",
        new="self.requested_ps = token.submitted_ps",
        breaks="An idle engine waits for operands since it was free for the product.",
        noticed_by="w.product.queued",
    ),
    Mutant(
        name="step-requested-before-its-product",
        file=GEMM,
        old="self.requested_ps = max(self.free_ps, token.submitted_ps)",
        new="self.requested_ps = self.free_ps",
        breaks="A step of a product is requested at the earliest when the product is submitted.",
        noticed_by="w.product.requested",
    ),
    Mutant(
        name="chain-shares-without-cycles",
        file=CHAINS,
        old="_shared(stream.start_ps, stream.streamed_ps, times.stream_weights)",
        new="_shared(stream.start_ps, stream.streamed_ps, [1] * len(times.stream_weights))",
        breaks="The operations of a stream share its time by their cycles.",
        noticed_by="w.chain.share",
    ),
    Mutant(
        name="chain-time-of-the-first-operation",
        file=CHAINS,
        old="bounds.append(start_ps + (end_ps - start_ps) * part // total)",
        new="bounds.append(end_ps if part else start_ps)",
        breaks="The operations of a pass share its time by their weights.",
        noticed_by=ENGINES,
    ),
    Mutant(
        name="chain-share-of-the-tail-dropped",
        file=CHAINS,
        old="_shared(stream.streamed_ps, stream.computed_ps, times.tail_weights)",
        new="_shared(stream.streamed_ps, stream.streamed_ps, times.tail_weights)",
        breaks="The operations of the tail share the time of the tail.",
        noticed_by=ENGINES,
    ),
    Mutant(
        name="chain-busy-without-its-tail",
        file=CHAINS,
        old="self._calendar.busy_ps += computed_ps - start_ps",
        new="self._calendar.busy_ps += streamed_ps - start_ps",
        breaks="The engine is busy with a pass until its last result is computed.",
        noticed_by=ENGINES,
    ),
    Mutant(
        name="chain-requested-when-it-begins",
        file=CHAINS,
        old="requested_ps = run.queued_ps if run.begun == 1 else fetch_ps",
        new="requested_ps = fetch_ps",
        breaks="A chain is requested when it is queued.",
        noticed_by=ENGINES,
    ),
    Mutant(
        name="vector-operation-requested-when-it-begins",
        file=MATH,
        old="operation.start_ps, operation.requested_ps = start_ps, now_ps",
        new="operation.start_ps, operation.requested_ps = start_ps, start_ps",
        breaks="The wait of an operation for the engine lasts from its request to its start.",
        noticed_by=ENGINES,
    ),
    Mutant(
        name="epilogue-requested-when-it-begins",
        file=MATH,
        old="record, now_ps, Cause.ENGINE, None, step",
        new="record, start_ps, Cause.ENGINE, None, step",
        breaks="An epilogue waits for the engine since its tile is summed.",
        noticed_by=ENGINES,
    ),
    # Commands of the host.
    Mutant(
        name="command-queued-without-the-device",
        file=HOST,
        old="command.departed_ps - command.submitted_ps + answer.held_ps",
        new="command.departed_ps - command.submitted_ps",
        breaks="A command queues at the host and at the IO_CPU.",
        noticed_by="tests/integration/test_host_path.py",
    ),
    Mutant(
        name="request-begins-before-its-release",
        file=HOST,
        old="start_ps = answer.released_ps if command.waits_for else command.departed_ps",
        new="start_ps = command.departed_ps",
        breaks="A request that waits for others begins at its release.",
        noticed_by="tests/integration/test_host_path.py",
    ),
    Mutant(
        name="command-released-by-none",
        file=IO_CPU,
        old="later.released_ps, later.after = now_ps, number\n",
        new="later.released_ps = now_ps\n",
        breaks="A command has the number of the one whose end let it begin.",
        noticed_by="tests/integration/test_steps_of_ranks.py",
    ),
    Mutant(
        name="relayed-packet-has-queued-nowhere",
        file=IO_CPU,
        old="        relayed.link_ps = packet.link_ps\n",
        new="        relayed.link_ps = 0\n",
        breaks="A packet has queued before the IO_CPU and behind it.",
        noticed_by="tests/integration/test_host_path.py",
    ),
)
