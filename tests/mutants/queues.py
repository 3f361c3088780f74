from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        name="ipcq-without-overhead",
        file="sip_node/chip/pe/ipcq.py",
        old="self.later(tail_ps + self._overhead_ps,",
        new="self.later(tail_ps,",
        breaks="A slot is usable ipcq.overhead_ns after its announcement.",
        noticed_by="a.",
    ),
    Mutant(
        name="ipcq-on-the-head",
        file="sip_node/chip/pe/ipcq.py",
        old="self.later(tail_ps + self._overhead_ps,",
        new="self.later(self.engine.now_ps + self._overhead_ps,",
        breaks="An announcement or credit counts when its last byte has arrived.",
        noticed_by="i.",
    ),
    Mutant(
        name="credit-before-the-copy",
        file="sip_node/programs/kernel_receive.py",
        old=(
            "        joint.then(receive)\n"
            "\n"
            "    def slot_copied(self, receive: Receive, data: bytes) -> None:\n"
            '        """The slot that was read is in its targets, which have these bytes."""\n'
            "        queue = receive.queue\n"
            "        assert queue is not None\n"
            "        assert receive.slot is not None\n"
            "        if self._trace is not None:\n"
            "            self._trace.received(queue.queue_pair, receive.slot)\n"
            "        receive.received.append(data)\n"
            "        # It is empty: its credit returns now and not at the end of the message.\n"
            "        self._kept.slot_copied(queue)\n"
        ),
        new=(
            "        joint.then(receive)\n"
            "        self._kept.slot_copied(receive.queue)\n"
            "\n"
            "    def slot_copied(self, receive: Receive, data: bytes) -> None:\n"
            '        """The slot that was read is in its targets, which have these bytes."""\n'
            "        queue = receive.queue\n"
            "        assert queue is not None\n"
            "        assert receive.slot is not None\n"
            "        if self._trace is not None:\n"
            "            self._trace.received(queue.queue_pair, receive.slot)\n"
            "        receive.received.append(data)\n"
            "        # It is empty: its credit returns now and not at the end of the message.\n"
        ),
        breaks="The credit of a slot leaves when the slot has been copied.",
        noticed_by="i.",
    ),
    Mutant(
        name="receive-any-without-turns",
        file="sip_node/programs/kernel_receive.py",
        old="                self._turn = turn + 1\n",
        new="                self._turn = 0\n",
        breaks="A receive from any direction takes full directions in turn.",
        noticed_by="n.receive",
    ),
    Mutant(
        name="receive-any-same-again",
        file="sip_node/programs/kernel_receive.py",
        old="                self._turn = turn + 1\n",
        new="                self._turn = turn\n",
        breaks="A receive from any direction takes full directions in turn.",
        noticed_by="n.receive",
    ),
    Mutant(
        name="receive-slots-without-issue",
        file="sip_node/programs/kernel_receive.py",
        old="self._engine.now_ps + self._issue_ps",
        new="self._engine.now_ps",
        breaks="The PE_CPU issues a command for each slot of a receive.",
        noticed_by="n.receive.slots",
    ),
    Mutant(
        name="receives-match-latest-first",
        file="sip_node/programs/kernel_receive.py",
        old="for receive in tuple(self._posted):",
        new="for receive in tuple(reversed(self._posted)):",
        breaks="Messages match receives in the order of posting.",
        noticed_by="n.receive",
    ),
    Mutant(
        name="send-without-issue",
        file="sip_node/programs/kernel_send.py",
        old="events.resume_at(self._engine, message.since_ps + self._issue_ps, message)",
        new="self.reserve(message)",
        breaks="The PE_CPU issues a command for each slot of a send.",
        noticed_by="i.",
    ),
    Mutant(
        name="sends-side-by-side",
        file="sip_node/chip/pe/ipcq.py",
        old="if self._eligible and not self._in_flight:",
        new="if self._eligible:",
        breaks="A PE sends one posted message at a time.",
        noticed_by="m.0.turn",
    ),
    Mutant(
        name="command-without-mmu",
        file="sip_node/programs/kernel_issue.py",
        old="self.issue_ps + ps_from_ns(pe.mmu.overhead_ns)",
        new="self.issue_ps",
        breaks="A load or store takes the time of the MMU.",
        noticed_by="c.kernels",
    ),
    Mutant(
        name="command-without-scheduler",
        file="sip_node/programs/kernel_issue.py",
        old=" + ps_from_ns(pe.scheduler.overhead_ns)\n",
        new="\n",
        breaks="A command takes the time of the scheduler.",
        noticed_by="c.kernels",
    ),
    Mutant(
        name="mmu-for-every-command",
        file="sip_node/programs/kernel_issue.py",
        old="return self._issuing(operation, self.issue_ps, start, args)",
        new="return self._issuing(operation, self._translated_ps, start, args)",
        breaks="Only commands with virtual addresses take the time of the MMU.",
        noticed_by="i.",
    ),
    Mutant(
        name="slot-around-the-tcm-port",
        file="sip_node/chip/memory/memory_port.py",
        old="start_ps = port.serve(now_ps, access.tail_ps, access.nbytes)",
        new="start_ps, port.tail_ps = now_ps, access.tail_ps",
        breaks="Slots that arrive share the fabric-side port of the TCM.",
        noticed_by="n.meet.tcm",
    ),
    Mutant(
        name="tcm-port-of-each-direction",
        file="sip_node/chip/pe/tcm.py",
        old="PortTurns(chip.engine, self.server)",
        new="PortTurns(chip.engine, Server(self.server.name, chip.topology.pe.tcm.bw_gbs))",
        breaks="All traffic of the fabric shares one port of the TCM.",
        noticed_by="n.meet.tcm",
    ),
    Mutant(
        name="m-cpu-last-pe-first",
        file="sip_node/chip/host/m_cpu.py",
        old="for pe, order, nbytes in body.orders",
        new="for pe, order, nbytes in reversed(body.orders)",
        breaks="The M_CPU forwards a command to its PEs in ascending order.",
        noticed_by="l.",
    ),
    Mutant(
        name="small-commands",
        file="sip_node/chip/host/cpu_port.py",
        old="max(nbytes, self._control_bytes)",
        new="nbytes",
        breaks="An answer has at least the size of a control packet.",
        noticed_by="l.",
    ),
    Mutant(
        name="announcement-before-the-last-byte",
        file="sip_node/chip/memory/memory_packets.py",
        old="self.later(storing.written_ps, _STORED, storing.last)",
        new="self.later(self.engine.now_ps, _STORED, storing.last)",
        breaks="A slot is announced when its last byte is in the memory.",
        noticed_by="a.0",
    ),
    Mutant(
        name="answers-without-bytes",
        file="sip_node/chip/memory/memory_port.py",
        old="packets.new_packet(notice, 0, self._control_bytes, True)",
        new="packets.new_packet(notice, 0, 1, True)",
        breaks="Acknowledgements and announcements are control packets.",
        noticed_by="a.0",
    ),
    Mutant(
        name="credits-without-bytes",
        file="sip_node/chip/pe/queue_table.py",
        old="packets.new_packet(notice, 0, queue.queue_pair.credit_bytes, last=True)",
        new="packets.new_packet(notice, 0, 1, last=True)",
        breaks="A credit takes the bytes of a credit on its way.",
        noticed_by="i.credit",
    ),
)
