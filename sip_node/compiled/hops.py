"""The base of components at the end of routes, for the interpreter: see hops.pyx."""

from sip_node.compiled.calendar import Actor

Endpoint = Actor
