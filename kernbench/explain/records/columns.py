"""The columns of a recorded table as arrays: numbers unchanged, texts as codes of a list."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from runtime.core.run_tables import Form, RunTable

Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Texts(Struct, frozen=True):
    """A column of texts: row i has the text `values[codes[i]]`."""

    codes: NDArray[np.int32]
    values: tuple[str, ...]

    def __getitem__(self, row: int) -> str:
        return self.values[self.codes.item(row)]

    def __len__(self) -> int:
        return len(self.codes)

    def matching(self, accepts: Callable[[str], bool]) -> Mask:
        """The rows whose text `accepts`."""
        # The predicate sees each different text once, however long the column is.
        return self.mapped([accepts(value) for value in self.values], np.bool_)

    def equal(self, text: str) -> Mask:
        """The rows with this text."""
        return self.matching(text.__eq__)

    def mapped(self, of_value: Sequence[object], dtype: Any) -> NDArray[Any]:
        """The entry of `of_value` for each row; `of_value` has one entry for each of `values`."""
        if not self.values:
            return np.zeros(len(self.codes), dtype)
        return np.array(of_value, dtype)[self.codes]

    def take(self, rows: NDArray[Any]) -> "Texts":
        """The texts of these rows."""
        return Texts(self.codes[rows], self.values)


class Columns(Struct, frozen=True):
    """A table of one SIP."""

    table: RunTable
    numbers: Mapping[str, NDArray[Any]]
    texts: Mapping[str, Texts]
    metadata: Mapping[str, str] = {}

    def __len__(self) -> int:
        first = self.table.columns[0]
        return len(self.texts[first.name] if first.form is Form.TEXT else self.numbers[first.name])

    def __getitem__(self, name: str) -> NDArray[Any]:
        """A column of numbers."""
        return self.numbers[name]

    def text(self, name: str) -> Texts:
        """A column of texts."""
        return self.texts[name]

    def take(self, rows: NDArray[Any]) -> "Columns":
        """The table of these rows: their numbers, or a mask."""
        return Columns(
            self.table,
            {name: column[rows] for name, column in self.numbers.items()},
            {name: column.take(rows) for name, column in self.texts.items()},
            self.metadata,
        )

    @classmethod
    def empty(cls, table: RunTable) -> "Columns":
        """The table without rows."""
        names = [(each.name, str(each.packed)) for each in table.columns]
        return cls.of_rows(table, np.zeros(0, np.dtype(names)), ())

    @classmethod
    def of_rows(
        cls,
        table: RunTable,
        rows: NDArray[Any],
        texts: Sequence[str],
        metadata: Mapping[str, str] | None = None,
    ) -> "Columns":
        """The table of packed rows, whose texts are indices of `texts`."""
        values = tuple(texts)
        numbers = {each.name: rows[each.name] for each in table.columns}
        return cls(
            table,
            {c.name: numbers[c.name] for c in table.columns if c.form is not Form.TEXT},
            {c.name: Texts(numbers[c.name], values) for c in table.columns if c.form is Form.TEXT},
            metadata or {},
        )
