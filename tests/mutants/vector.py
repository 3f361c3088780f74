"""Edits of the vector engine: the stream of vectors, the costs of functions, shared engines."""

from tests.mutants.mutant import Mutant

ENGINE = "sip_node/chip/pe/compute/math.py"
TIMES = "sip_node/chip/pe/compute/vector_times.py"
STREAM = "sip_node/chip/pe/compute/vector_stream.py"
PASSES = "runtime/language/chains/passes.py"
FUNCTIONS = "runtime/language/functions.py"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        name="vector-fetch-not-pipelined",
        file=TIMES,
        old="path_ps, fetched = paths.ps, stream.fetched",
        new="path_ps, fetched = paths.ps, lambda _: stream.fetched_bytes",
        breaks="the engine begins with the first vector, not with the last",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-store-not-pipelined",
        file=ENGINE,
        old="self._engine.at(first_ps, self._store_result, operation, end_ps)",
        new="self._engine.at(self.free_ps, self._store_result, operation, end_ps)",
        breaks="the first result is stored while the engine computes the others",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-store-reserved-too-early",
        file=ENGINE,
        old="self._engine.at(first_ps, self._store_result, operation, end_ps)",
        new="self._store_result(operation, end_ps)",
        breaks="an operation takes its place at the store port with its first result",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-last-store-free",
        file=TIMES,
        old="path_ps(nbytes, left[vector], last_bytes)",
        new="path_ps(nbytes, left[vector])",
        breaks="the last vector is stored after it was computed",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-no-bends",
        file=STREAM,
        old="(*ends, *(end + 1 for end in ends), self.count)",
        new="(self.count,)",
        breaks="a stream is held up where an operand ends, not only at its ends",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-eight-bytes-in-a-lane",
        file=STREAM,
        old="max(1, item_bytes(block.dtype) // _LANE_BYTES)",
        new="1",
        breaks="an element of 8 bytes takes two lanes",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-tree-of-one-more-level",
        file=ENGINE,
        old="(math.lanes - 1).bit_length()",
        new="math.lanes.bit_length()",
        breaks="a tree over n lanes has ceil(log2 n) levels",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-scan-of-one-level",
        file=ENGINE,
        old="levels = self._tree_cycles if step.scans else 0",
        new="levels = 1 if step.scans else 0",
        breaks="a running sum sends every vector through all levels of the tree",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-reduction-streams-out",
        file=TIMES,
        old="if step.reduces:",
        new="if step.after:",
        breaks="a reduction has no result before its last vector",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-softmax-divides-once",
        file=ENGINE,
        old="later_results * self._cycles_of(step.after)",
        new="0 * self._cycles_of(step.after)",
        breaks="softmax takes the reciprocals of its rows vector by vector",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-softmax-divides-for-free",
        file=PASSES,
        old='reduces=True, after=("div",)',
        new="reduces=True",
        breaks="softmax takes the reciprocal of its sums",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-comparison-as-bitwise",
        file=FUNCTIONS,
        old='return Elementwise(function, 2, "compare", bools=True)',
        new='return Elementwise(function, 2, "bitwise", bools=True)',
        breaks="a comparison has a cost of its own",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-cat-fetches-side-by-side",
        file=ENGINE,
        old='VectorStream.joined if name == "cat" else VectorStream',
        new="VectorStream",
        breaks="the pieces of a concatenation are fetched one after the other",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-fetch-port-shared-by-nobody",
        file=ENGINE,
        old="fetch_ps, _ = self._fetch.reserve(",
        new="_, _ = self._fetch.reserve(",
        breaks="operands wait at the fetch port for the tiles of a product",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-store-port-shared-by-nobody",
        file=ENGINE,
        old="end_ps = max(stored_ps, end_ps)",
        new="pass",
        breaks="results wait at the store port for the tile of a product",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-engine-takes-two-at-once",
        file=ENGINE,
        old="times, free_ps = plan.passes[operation.begun], self.free_ps",
        new="times, free_ps = plan.passes[operation.begun], 0",
        breaks="an operation waits until the engine has finished the operation before it",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-epilogue-overtakes",
        file=ENGINE,
        old="start_ps = max(now_ps, self.free_ps)",
        new="start_ps = now_ps",
        breaks="an epilogue waits for the operation in the engine",
        noticed_by="v.",
    ),
)
