"""The clocked routers of one SIP in C: their arbitration, buffers, and the sources of links.

The rules, and their reasons, are in `sip_node.chip.fabric`: `router`, `virtual_channels`,
`injection`. A method here has the name of its reference where there is one, and changes the same
fields and makes the same requests in the same order.

    execute -> arbitrate (a router) -> give, win -> traverse -> head or body of the next buffer
            -> inject (a source)    -> send_flit                 -> head or body of its router
"""

from sip_node.compiled.arena cimport oldest, pop, push
from sip_node.compiled.cycle_agenda cimport CycleAgenda
from sip_node.compiled.flit_records cimport record_flit
from sip_node.chip.fabric.packet cimport Packet
from sip_node.compiled.router_state cimport (
    DORMANT,
    Arbiter,
    Injection,
    InputPort,
    InputVc,
    OutputPort,
    OutputVc,
    Passage,
    Requester,
    VirtualNetwork,
    Worm,
    cycle_of,
    earliest,
    earliest_of_source,
    first_credit,
    has_credit,
    is_power_of_two,
    sort_by_place,
    take_credit,
    turn,
    turn_at_input,
    turn_at_output,
    turn_of_head,
    wait_for_channel,
)
from sip_node.compiled.times cimport NEVER_PS


cdef class ClockedRouters(CycleAgenda):
    """Routers, links, buffers and sources. `router_parts.RouterParts` constructs them."""

    cdef int serve_requests(self, Arbiter *arbiter, long long cycle) except -1:
        if arbiter.port:
            return self.inject(arbiter, cycle)
        return self.arbitrate(arbiter, cycle)

    # Routers.

    cdef int arbitrate(self, Arbiter *router, long long now) except -1:
        """Allocate channels, then the switch."""
        cdef InputVc **requests = <InputVc **> router.requests
        cdef InputVc *channel = requests[0]
        cdef OutputVc *vc
        cdef int count = router.count, bodies = 0, heads = 0, index
        router.count = 0
        if count == 1:
            if not channel.vc:
                vc = self.wanted(channel, now)
                if vc and self.give(vc, channel, now):
                    self.traverse(channel, now)
            elif channel.network.port.free_at > now:
                self.add(&channel.requester, channel.network.port.free_at)
            else:
                self.traverse(channel, now)
            return 0
        for index in range(count):
            channel = requests[index]
            if channel.vc:
                requests[bodies] = channel
                bodies += 1
            else:
                self.heads[heads] = channel
                heads += 1
        if heads:
            bodies = self.give_channels(heads, requests, bodies, now)
        for index in range(self.win(requests, bodies, now)):
            self.traverse(self.winners[index], now)
        return 0

    cdef int give_channels(self, int heads, InputVc **requests, int count, long long now) except -1:
        """Give channels to heads; those that request the switch now are added to `requests`."""
        cdef InputVc *channel
        cdef OutputVc *vc
        cdef int index, requested = 0
        sort_by_place(self.heads, heads)
        for index in range(heads):
            channel = self.heads[index]
            vc = self.wanted(channel, now)
            if not vc:
                continue
            if not vc.nominee:
                vc.nominee = channel
                self.requested[requested] = vc
                requested += 1
                continue
            if turn_of_head(vc, channel) < turn_of_head(vc, vc.nominee):
                vc.nominee, channel = channel, vc.nominee
            self.add(&channel.requester, now + 1)
        for index in range(requested):
            vc = self.requested[index]
            channel, vc.nominee = vc.nominee, NULL
            if self.give(vc, channel, now):
                requests[count] = channel
                count += 1
        return count

    cdef OutputVc *wanted(self, InputVc *channel, long long now) noexcept:
        """The channel for which a head requests; without a free one it waits, and there is none."""
        cdef VirtualNetwork *network = channel.network
        cdef OutputVc *vc
        cdef int index, first = 0
        if channel.last_network == network:
            first = channel.last_vc + 1
        for index in range(first, first + network.count):
            vc = &network.vcs[index % network.count]
            if vc.free_at <= now:
                return vc
        wait_for_channel(network, channel)
        return NULL

    cdef int give(self, OutputVc *vc, InputVc *channel, long long now) except -1:
        """Give a head a free channel; whether it requests the switch in the same cycle."""
        cdef VirtualNetwork *network = channel.network
        cdef long long cycle
        if network.is_limited and not self.admitted(channel, now):
            wait_for_channel(network, channel)
            return False
        # The packet holds the channel.
        vc.free_at = NEVER_PS
        vc.pointer, channel.port.next_head = channel.port.index + 1, channel.index + 1
        channel.last_network, channel.last_vc = network, <int> (vc - network.vcs)
        channel.vc = vc
        cycle = earliest(channel, now + channel.requester.arbiter.allocate)
        if cycle > now:
            self.add(&channel.requester, cycle)
        return cycle == now

    cdef int win(self, InputVc **requests, int count, long long now) except -1:
        """Allocate the switch: the number of `winners`; the others request it again."""
        cdef InputVc *channel
        cdef OutputPort *port
        cdef InputPort *entrance
        cdef int index, inputs = 0, winners = 0, lost = 0
        for index in range(count):
            channel = requests[index]
            entrance, port = channel.port, channel.network.port
            if port.free_at > now:
                self.add(&channel.requester, port.free_at)
                continue
            if not entrance.nominee:
                entrance.nominee = channel
                self.inputs[inputs] = entrance
                inputs += 1
                continue
            if turn_at_input(channel) < turn_at_input(entrance.nominee):
                entrance.nominee, channel = channel, entrance.nominee
            self.lost[lost] = channel
            lost += 1
        for index in range(inputs):
            entrance = self.inputs[index]
            channel, entrance.nominee = entrance.nominee, NULL
            port = channel.network.port
            if not port.nominee:
                port.nominee = channel
                self.ports[winners] = port
                winners += 1
                continue
            if turn_at_output(channel) < turn_at_output(port.nominee):
                port.nominee, channel = channel, port.nominee
            self.lost[lost] = channel
            lost += 1
        for index in range(lost):
            # The link of an output that no input has requested stays free.
            self.add(&self.lost[index].requester, now + 1)
        for index in range(winners):
            port = self.ports[index]
            self.winners[index], port.nominee = port.nominee, NULL
        return winners

    cdef int traverse(self, InputVc *channel, long long now) except -1:
        """A flit of `channel` has won the switch."""
        cdef VirtualNetwork *network = channel.network
        cdef OutputVc *vc = channel.vc
        cdef InputVc *target = vc.target
        cdef OutputPort *port = network.port
        cdef InputPort *entrance = channel.port
        cdef Passage *passage = channel.first
        cdef Worm *worm = passage.worm
        cdef Arbiter *router = channel.requester.arbiter
        cdef long long arrived = oldest(&channel.ready), waited
        cdef int hop
        entrance.next_vc[port.number] = channel.index + 1
        entrance.pointer = port.index + 1
        port.pointer = entrance.index + 1
        port.free_at = now + port.flit_cycles
        port.flits += 1
        self.taken(channel, now)
        if (<Packet> worm.packet).train is not None:
            waited = now - arrived - router.route - router.allocate
            hop = passage.output - worm.networks
            record_flit(port, worm, hop, now, waited, channel.left, self.period_ps)
        if target:
            take_credit(vc)
        if channel.left == worm.flits:
            port.nbytes += worm.nbytes
            port.queued_cycles += now - arrived - router.route - router.allocate
            if target:
                self.head(target, worm, passage.output + 1, now + port.delay)
        elif target:
            self.body(target, now + port.delay)
        channel.left -= 1
        if channel.left:
            return self.wake(&channel.requester, now + 1)
        if not target:
            self.ejected(worm, network, now + port.delay)
        vc.free_at = now + 1
        if network.waiting:
            self.retry(network, now + 1)
        channel.vc = NULL
        channel.first = passage.next
        passage.next, self.free_passages = self.free_passages, passage
        if channel.first:
            self.begin(channel, max(now + 1, oldest(&channel.ready)))
        return 0

    cdef int retry(self, VirtualNetwork *network, long long cycle) except -1:
        """All that wait for a channel of `network` repeat their requests in `cycle`."""
        cdef Requester *channel = network.waiting
        cdef Requester *following
        network.waiting = NULL
        while channel:
            following = channel.next
            self.add(channel, cycle)
            channel = following
        return 0

    # Buffers.

    cdef int head(
        self, InputVc *channel, Worm *worm, VirtualNetwork **output, long long cycle
    ) except -1:
        """The head of a packet can be used from `cycle` on."""
        cdef Passage *passage = self.free_passages
        if passage:
            self.free_passages = passage.next
        else:
            passage = <Passage *> self.arena.take(1, sizeof(Passage))
        passage.worm, passage.output, passage.next = worm, output, NULL
        push(self.arena, &channel.ready, cycle)
        if channel.first:
            channel.last.next = passage
            channel.last = passage
            return 0
        channel.first = channel.last = passage
        return self.begin(channel, cycle)

    cdef int body(self, InputVc *channel, long long cycle) except -1:
        """A further flit of the last packet can be used from `cycle` on."""
        push(self.arena, &channel.ready, cycle)
        if channel.is_asleep:
            channel.is_asleep = False
            self.wake(&channel.requester, cycle)
        return 0

    cdef int begin(self, InputVc *channel, long long cycle) except -1:
        """Route the first packet in `cycle`."""
        channel.left = channel.first.worm.flits
        channel.network = channel.first.output[0]
        return self.add(&channel.requester, cycle + channel.requester.arbiter.route)

    cdef int wake(self, Requester *channel, long long cycle) except -1:
        """Request the switch, or the link of a source, from `cycle` on."""
        if channel.arbiter.port:
            cycle = earliest_of_source(<Injection *> channel, cycle, self.period_ps)
        else:
            cycle = earliest(<InputVc *> channel, cycle)
        if cycle != DORMANT:
            self.add(channel, cycle)
        return 0

    cdef int taken(self, InputVc *channel, long long now) except -1:
        """The first flit leaves the buffer; its credit returns."""
        cdef OutputVc *feeder = channel.feeder
        cdef long long usable = now + channel.credit_cycles
        cdef Requester *waiting = feeder.waiting
        push(self.arena, &feeder.credits, usable)
        if waiting:
            feeder.waiting = NULL
            self.wake(waiting, usable)
        pop(&channel.ready)
        return 0

    # Sources.

    cdef int put(self, Injection *injection, Worm *worm) except -1:
        """Send a packet after those before it."""
        worm.next = NULL
        if injection.first:
            injection.last.next = worm
            injection.last = worm
            return 0
        injection.first = injection.last = worm
        injection.left = worm.flits
        return self.wake(&injection.requester, cycle_of(worm.head_ps, self.period_ps))

    cdef int inject(self, Arbiter *source, long long now) except -1:
        """Send a flit of the next queue with a request."""
        cdef Requester **requests = source.requests
        cdef OutputPort *port = source.port
        cdef int count = source.count, index, chosen = 0
        cdef Injection *injection
        cdef Worm *worm
        source.count = 0
        if port.free_at <= now:
            for index in range(1, count):
                if turn((<Injection *> requests[index]).network.index, port.pointer) < turn(
                    (<Injection *> requests[chosen]).network.index, port.pointer
                ):
                    chosen = index
            injection = <Injection *> requests[chosen]
            port.pointer = injection.network.index + 1
            port.free_at = now + port.flit_cycles
            port.flits += 1
            worm = injection.first
            if self.send_flit(injection, now) and source.notified >= 0:
                self.has_left(source.notified, worm, now)
        else:
            chosen = count
        for index in range(count):
            if index != chosen:
                self.add(requests[index], max(now + 1, port.free_at))
        return 0

    cdef int send_flit(self, Injection *injection, long long now) except -1:
        """Send a flit; whether it was the last one of its packet."""
        cdef Worm *worm = injection.first
        cdef VirtualNetwork *network = injection.network
        cdef OutputPort *port = network.port
        cdef OutputVc *vc = injection.vc
        cdef long long waited
        if not vc:
            # One of them has a credit, or the queue had no request.
            while not vc or not has_credit(vc) or first_credit(vc) > now:
                injection.last_vc = (injection.last_vc + 1) % network.count
                vc = &network.vcs[injection.last_vc]
            injection.vc = vc
        take_credit(vc)
        if (<Packet> worm.packet).train is not None:
            waited = now - cycle_of(worm.head_ps, self.period_ps)
            record_flit(port, worm, 0, now, waited, injection.left, self.period_ps)
        if injection.left == worm.flits:
            port.nbytes += worm.nbytes
            port.queued_cycles += now - cycle_of(worm.head_ps, self.period_ps)
            self.head(vc.target, worm, worm.networks + 1, now + port.delay)
        else:
            self.body(vc.target, now + port.delay)
        injection.left -= 1
        if injection.left:
            self.wake(&injection.requester, now + 1)
            return False
        injection.vc = NULL
        injection.first = worm.next
        if injection.first:
            injection.left = injection.first.flits
            self.wake(&injection.requester, now + 1)
        return True

    # What a subclass does with packets.

    cdef int ejected(self, Worm *worm, VirtualNetwork *network, long long cycle) except -1:
        """The last flit of a packet is at its endpoint in `cycle`, complete at the end of it."""
        raise NotImplementedError(type(self).__name__)

    cdef int has_left(self, int node, Worm *worm, long long now) except -1:
        """The last flit of a packet from `node` is on its first link at the end of cycle `now`."""
        raise NotImplementedError(type(self).__name__)

    cdef int admitted(self, InputVc *channel, long long now) except -1:
        """Take the space of a packet at an output with a limit; whether there was enough."""
        raise NotImplementedError(type(self).__name__)

    cdef int make_room(self, Arbiter *arbiter) except -1:
        cdef size_t room
        CycleAgenda.make_room(self, arbiter)
        if is_power_of_two(self.channels):
            room = 2 * self.channels
            self.heads = <InputVc **> self.arena.take(room, sizeof(InputVc *))
            self.requested = <OutputVc **> self.arena.take(room, sizeof(OutputVc *))
            self.inputs = <InputPort **> self.arena.take(room, sizeof(InputPort *))
            self.lost = <InputVc **> self.arena.take(room, sizeof(InputVc *))
            self.winners = <InputVc **> self.arena.take(room, sizeof(InputVc *))
            self.ports = <OutputPort **> self.arena.take(room, sizeof(OutputPort *))
        return 0
