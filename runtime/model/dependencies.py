"""Dependency graphs: whether they are acyclic, and what depends on a vertex in the end."""

Dependencies = dict[object, set[object]]
"""Vertex -> the vertices that follow it. A vertex without an entry is an end."""


def reachable_ends(after: Dependencies) -> dict[object, frozenset[object]] | None:
    """The ends that are reachable from each vertex; None if the graph has a cycle.

    Depth first, without recursion: a path may have thousands of vertices.
    """
    ends: dict[object, frozenset[object]] = {}
    for root in after:
        # A vertex stays on the stack while its followers are visited: met there again, it is part
        # of a cycle.
        stack: list[object] = [root]
        open_vertices: set[object] = set()
        while stack:
            vertex = stack[-1]
            if vertex in ends:
                stack.pop()
                continue
            following = after.get(vertex)
            if following is None:
                ends[vertex] = frozenset([vertex])
            elif vertex in open_vertices:
                ends[vertex] = frozenset().union(*(ends[each] for each in following))
                open_vertices.discard(vertex)
            else:
                open_vertices.add(vertex)
                if not open_vertices.isdisjoint(following):
                    return None
                stack += [each for each in following if each not in ends]
    return ends
