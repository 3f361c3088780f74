"""Makes Arrow's arrays of numpy's arrays and of texts, from buffers.

Arrow's own conversion imports pandas where it is installed, which takes half a second.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from runtime.core.run_tables import Form

if TYPE_CHECKING:
    import numpy as np

_TYPES = {
    Form.INT16: "int16",
    Form.INT32: "int32",
    Form.INT64: "int64",
    Form.FLAG: "bool_",
}


def arrow_type(form: Form) -> object:
    """The type of a column."""
    # Imported here: a command that records nothing does without its 20 MB, and so does every LP.
    # It has no types.
    arrow: Any = import_module("pyarrow")
    if form is Form.TEXT:
        return arrow.dictionary(arrow.int32(), arrow.string())
    return getattr(arrow, _TYPES[form])()


def number_array(form: Form, values: "np.ndarray[Any, np.dtype[Any]]") -> object:
    """A column of numbers or flags."""
    import numpy as np

    arrow: Any = import_module("pyarrow")
    if form is Form.FLAG:
        packed = np.packbits(values != 0, bitorder="little")
    else:
        packed = np.ascontiguousarray(values)
    buffers = [None, arrow.py_buffer(packed)]
    return arrow.Array.from_buffers(arrow_type(form), len(values), buffers)


def text_array(codes: "np.ndarray[Any, np.dtype[np.int32]]", texts: Sequence[str]) -> object:
    """A column of texts: row i has the text `texts[codes[i]]`."""
    import numpy as np

    arrow: Any = import_module("pyarrow")
    encoded = [text.encode() for text in texts]
    ends = np.zeros(len(encoded) + 1, "<i4")
    np.cumsum([len(text) for text in encoded], out=ends[1:])
    buffers = [None, arrow.py_buffer(ends), arrow.py_buffer(b"".join(encoded))]
    dictionary = arrow.Array.from_buffers(arrow.string(), len(encoded), buffers)
    indices = number_array(Form.INT32, codes)
    # The codes are checked where they arrive.
    return arrow.DictionaryArray.from_arrays(indices, dictionary, safe=False)
