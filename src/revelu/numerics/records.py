"""Arrays whose rows belong together: structures of arrays, cut and joined by row."""

from typing import Any, Self

import numpy as np

from revelu.types import BoolArray, IntArray


class Records:
    """The base of a dataclass whose fields are arrays of one length, a row for each record.

    A field may be such a structure itself, or a tuple of arrays.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> @dataclass(frozen=True)
    ... class Points(Records):
    ...     X: np.ndarray
    ...     labels: np.ndarray
    >>> points = Points(np.eye(2), np.array([3, 4]))
    >>> points.joined(points).take(np.array([1, 2])).labels.tolist()
    [4, 3]
    """

    def __len__(self) -> int:
        return len(next(iter(vars(self).values())))

    def take(self, rows: BoolArray | IntArray) -> Self:
        """Return some of the records."""
        return type(self)(**{name: _taken(value, rows) for name, value in vars(self).items()})

    def joined(self, *others: Self) -> Self:
        """Return these, then the others."""
        all_ = [vars(records) for records in (self, *others)]
        return type(self)(**{name: _joined([part[name] for part in all_]) for name in all_[0]})


def _taken(value: Any, rows: BoolArray | IntArray) -> Any:
    if isinstance(value, Records):
        return value.take(rows)
    if isinstance(value, tuple):
        return tuple(part[rows] for part in value)
    return value[rows]


def _joined(values: list[Any]) -> Any:
    first, *others = values
    if isinstance(first, Records):
        return first.joined(*others)
    if isinstance(first, tuple):
        return tuple(np.concatenate(parts) for parts in zip(*values, strict=True))
    return np.concatenate(values)
