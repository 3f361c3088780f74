"""The traversal of routes by packets, in C. Its version in Python is `hops.py`.

A route is an array of links, computed when its first packet leaves. The event of a hop holds the
route, the index of the stage at which the head of the packet is, and the time of its tail. Servers
in C are called directly; a link with a class in Python (`impl:`) is called by its `reserve`, so the
two mix in one machine. What a packet contains is read once, when it departs (`depart`).
"""

from cpython.list cimport PyList_GET_ITEM
from cpython.mem cimport PyMem_Calloc, PyMem_Free

from runtime.core.compiled.memory_blocks cimport resized
from sip_node.kernel.calendar cimport NORMAL
from sip_node.chip.fabric.packet cimport train_of
from sip_node.chip.records.packet_train cimport FIRST_STAGES, wait_behind
from sip_node.compiled.prefetch cimport prefetch
from sip_node.pdes.sender cimport Sender


cdef class Route:
    """The links from a node to another one; shared by all packets that take it."""

    def __cinit__(self, Py_ssize_t length, int target):
        self.length, self.target = length, target
        self.links = <int *> resized(NULL, length * sizeof(int))

    def __dealloc__(self):
        PyMem_Free(self.links)


cdef class Hops(Actor):
    """The base of a fabric."""

    def bind(self, Calendar engine not None, routes, list servers not None,
             dict endpoints not None, int sip, int gateway, send_bounds):
        self.calendar, self.number = engine, engine.enlist(self)
        self.find_stages, self.routes = routes.stages, {}
        self.endpoints = endpoints
        self.send_bounds, self.senders = send_bounds, send_bounds.in_flight
        self.sip, self.gateway, self.lookout = sip, gateway, Lookout()
        # None for a link without a bandwidth, which is no stage of a route.
        self.links = [None if each is None else <FifoServer?> each for each in servers]
        self.names = ["" if each is None else each.name for each in servers]
        self.stages = <Stage *> PyMem_Calloc(max(1, len(servers)), sizeof(Stage))
        if not self.stages:
            raise MemoryError

    def __dealloc__(self):
        PyMem_Free(self.stages)

    def send(self, Packet packet not None, int origin, long long tail_ps):
        self.depart(packet, origin, tail_ps)

    cdef int depart(self, Packet packet, int origin, long long tail_ps) except -1:
        """Send a packet from node `origin` now: `send` for C classes."""
        cdef Event event
        cdef Route route
        cdef int sip = packet.transfer.sip
        self.sent += 1
        if self.records and packet.train is None:
            packet.train = train_of(packet.transfer)
        if sip == self.sip:
            route = self.route(origin, packet.transfer.node)
        else:
            # To another SIP: see hops.py for the bound on its next message.
            route = self.route(origin, self.gateway)
            packet.entrance_ps = self.calendar.now_ps + route.latency_ps
            if route.approach is not None and self.lookout.egress_to[sip] is not None:
                route.approach.depart(packet)
            else:
                sender = self.senders.get(sip)
                if sender is None:
                    self.send_bounds.departed(sip, packet.entrance_ps)
                else:
                    (<Sender> sender).departed(packet.entrance_ps)
        event.actor, event.step = self.number, 0
        # Borrowed: `routes` keeps every route as long as this object.
        event.context = <void *> route
        event.tail_ps, event.nbytes = tail_ps, packet.size
        return self.advance(route, event, packet)

    @property
    def actor(self):
        """The number of its events in the calendar."""
        return self.number

    def rejoin(
        self, Packet packet not None, int origin, int step, long long head_ps, long long tail_ps
    ):
        """Let a packet from `origin` go on at a stage of its route in this SIP."""
        cdef Event event
        cdef bint is_here = packet.transfer.sip == self.sip
        cdef Route route = self.route(origin, packet.transfer.node if is_here else self.gateway)
        event.actor, event.step = self.number, step
        event.context = <void *> route
        event.tail_ps, event.nbytes = tail_ps, packet.size
        self.calendar.insert(head_ps, NORMAL, event, packet)

    cdef int act(self, Event event, object subject) except -1:
        return self.advance(<Route> event.context, event, <Packet> subject)

    cdef int advance(self, Route route, Event event, Packet packet) except -1:
        """The head of a packet is at a stage of its route, or at the end of it."""
        cdef FifoServer server
        cdef Stage *stage
        cdef int link
        cdef long long head_ps, start_ps, waited_ps
        if event.step == route.length:
            return self.deliver(route.target, packet, event.tail_ps)
        if packet.train is not None:
            # For the wait behind others, while the server comes into the cache.
            prefetch(&packet.train.links, 0, 3)
            prefetch(&packet.train.own_links[min(event.step + 1, FIRST_STAGES - 1)], 1, 3)
        link = route.links[event.step]
        stage = &self.stages[link]
        server = <FifoServer> PyList_GET_ITEM(self.links, link)
        head_ps = self.calendar.now_ps + stage.pre_ps
        start_ps = server.serve(head_ps, event.tail_ps + stage.pre_ps, event.nbytes)
        event.step += 1
        if packet.train is not None:
            # As in `at_link`, without a reference to the train for each packet and link.
            if event.step >= packet.train.stages:
                packet.train.reach(event.step)
            waited_ps = wait_behind(
                &packet.train.links[event.step], head_ps, start_ps, server.tail_ps
            )
            if waited_ps:
                packet.queued(waited_ps, <str> self.names[link])
        event.tail_ps = server.tail_ps + stage.post_ps
        if packet.approach is not None and event.step == route.length:
            route.approach.reserve(packet, start_ps + stage.post_ps, event.tail_ps)
        return self.calendar.insert(start_ps + stage.post_ps, NORMAL, event, packet)

    cdef int deliver(self, int node, Packet packet, long long tail_ps) except -1:
        self.delivered += 1
        endpoint = self.endpoints[node]
        if isinstance(endpoint, Endpoint):
            (<Endpoint> endpoint).accept(packet, tail_ps)
            return 0
        endpoint.accept(packet, tail_ps)
        return 0

    cdef Route route(self, int source, int target):
        """The route from a node to another one."""
        cdef Route route
        cdef long long ends = (<long long> source << 32) | target
        cdef RecentRoute *recent = &self.recent[(31 * source + target) & (RECENT_ROUTES - 1)]
        if recent.route and recent.ends == ends:
            return <Route> recent.route
        route = self.routes.get(ends)
        if route is None:
            route = self.routes[ends] = self.new_route(self.find_stages(source, target), target)
            if target == self.gateway:
                route.approach = self.approach_of(route)
        recent.ends, recent.route = ends, <void *> route
        return route

    cdef Route new_route(self, tuple stages, int target):
        """The route with these stages."""
        cdef Route route = Route(len(stages), target)
        cdef Stage *stage
        cdef int index, link
        for index, each in enumerate(stages):
            link = route.links[index] = each.link
            stage = &self.stages[link]
            stage.pre_ps, stage.post_ps = each.pre_ps, each.post_ps
            route.latency_ps += stage.pre_ps + stage.post_ps
        return route

    def approach(self, int node):
        """The approach of packets from a node to the UCIe ports; None where nothing is foreseen."""
        return self.route(node, self.gateway).approach

    cdef Approach approach_of(self, Route route):
        cdef int last = route.links[route.length - 1] if route.length else 0
        server = self.links[last] if route.length else None
        if server is None or not in_c(server) or self.lookout.egress_to is None:
            return None
        return self.lookout.approach(
            last, <FifoServer> server, self.stages[last].pre_ps, self.stages[last].post_ps
        )


cdef bint in_c(server) except -1:
    """Whether a link is served by the method in C, not by that of a class derived from it."""
    return isinstance(server, FifoServer) and not (<FifoServer> server).is_replaced
