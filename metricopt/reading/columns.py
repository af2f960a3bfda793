"""Columns: what stands beside the labels, such as groups, weights and amounts.

A column has one value for each example. It is cut with the examples, and reaches the
metric by its name.
"""

import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import Any, TypeGuard

import numpy as np
import torch
from torch import Tensor

from metricopt.errors import DataError, described
from metricopt.reading.inputs import as_tensor, require_unmasked
from metricopt.reading.outputs import Targets

Column = Tensor | np.ndarray[Any, Any]
"""Values of N examples: a tensor [N, ...] of numbers, or an array of anything else."""
Columns = Mapping[str, Column]
NO_COLUMNS: Columns = MappingProxyType({})
MOST_GROUPS = 10
"""Most different values of a column that names groups."""
WEIGHTS_ALONE = ("sample_weight",)
"""Columns that are weights, however few values they have."""


def as_columns(given: object, count: int, owner: str) -> dict[str, Column]:
    """Return columns of `count` examples: numbers as tensors, others as arrays.

    Args:
        given: a mapping from names to tensors, arrays, lists or series of pandas, or a
            data frame of these.
        count: number of examples N.
        owner: the split, for messages.

    Raises:
        DataError: if it is no such mapping, or a column has another length.
    """
    if not _is_named(given):
        raise DataError(
            f"columns of {owner} must be a dict from names to values, got "
            f"{described(given)}"
        )
    return {
        _named(name): _column(part, name, count, owner) for name, part in given.items()
    }


def columns_of(examples: object) -> Columns:
    """Return the columns of examples, which need not have any."""
    found: Columns = getattr(examples, "columns", NO_COLUMNS)
    return found


def columns_at(columns: Columns, index: Tensor) -> dict[str, Column]:
    """Return columns at indices [n] in [0, N)."""
    return {
        name: part[index.to(part.device)]
        if isinstance(part, Tensor)
        else part[index.cpu().numpy()]
        for name, part in columns.items()
    }


def columns_on(columns: Columns, device: torch.device) -> dict[str, Column]:
    """Return columns with the numbers on a device."""
    return {
        name: part.to(device) if isinstance(part, Tensor) else part
        for name, part in columns.items()
    }


def joined_columns(parts: Sequence[Columns], owner: str) -> dict[str, Column]:
    """Return the columns of batches as those of all their examples.

    Raises:
        DataError: if batches have other columns than the first.
    """
    names = list(parts[0])
    for part in parts:
        if list(part) != names:
            raise DataError(
                f"all batches of {owner} need the same columns, got "
                f"{', '.join(names) or 'none'} and {', '.join(part) or 'none'}"
            )
    return {name: _joined([part[name] for part in parts]) for name in names}


def beside(examples: Any) -> tuple[Any, Any]:
    """Return examples as a pair, and the columns in its third place, if there are any.

    Only a triple whose last part has names has columns: (inputs, targets, columns).
    """
    if isinstance(examples, tuple | list) and len(examples) == 3:
        inputs, targets, columns = examples
        if _is_named(columns):
            return (inputs, targets), columns
    return examples, NO_COLUMNS


@dataclass(frozen=True, eq=False)
class Columned(Sequence[Any]):
    """Targets with columns beside them, for a metric that takes columns.

    Attributes:
        targets: targets of the N examples.
        columns: the columns that the metric takes.
    """

    targets: Targets
    columns: Columns

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, place: Any) -> Any:
        values = {name: part[place] for name, part in self.columns.items()}
        return self.targets[place], values


def columned(targets: Targets, columns: Columns, names: Collection[str]) -> Targets:
    """Return targets with the columns of these names; as they are without a name.

    Raises:
        DataError: if there is no such column.
    """
    if not names:
        return targets
    for name in names:
        if name not in columns:
            raise DataError(
                f"the metric takes the column {name!r}, which these examples lack: "
                f"give every split it is evaluated on its columns, "
                f"(inputs, targets, {{{name!r}: values}})"
            )
    return Columned(targets, {name: columns[name] for name in names})


def apart(targets: Targets) -> tuple[Targets, Columns]:
    """Return targets and the columns beside them: the inverse of `columned`."""
    if isinstance(targets, Columned):
        return targets.targets, targets.columns
    return targets, NO_COLUMNS


def copied(columns: Columns) -> dict[str, Column]:
    """Return a copy of columns, which somebody may change."""
    return {name: copy.deepcopy(part) for name, part in columns.items()}


def as_array(column: Column) -> np.ndarray[Any, Any]:
    """Return a column as an array of numpy."""
    if not isinstance(column, Tensor):
        return column
    wide = column.float() if column.dtype == torch.bfloat16 else column  # not of numpy
    return wide.cpu().numpy()


def levels(column: Column) -> tuple[Tensor, list[str]]:
    """Return the place of every value [N] among the different ones, and their names."""
    values = as_array(column)
    numbers = isinstance(column, Tensor)
    # Not as floats: great numbers may differ in digits that a float lacks.
    kinds = values if numbers else np.array([_text_of(each) for each in values.flat])
    different, places = np.unique(kinds, return_inverse=True)
    names = [_name_of(each) if numbers else str(each) for each in different]
    return torch.from_numpy(places.reshape(-1)), names


def _text_of(value: Any) -> str:
    """Return the name of a value among others of any kind."""
    return _name_of(value) if isinstance(value, Real | np.bool_) else str(value)


def _name_of(number: Any) -> str:
    """Return a name that no other number has; the same for 1, 1.0 and True."""
    return str(int(number)) if float(number).is_integer() else str(number)


def groups_of(
    columns: Columns, *, amounts: bool = True
) -> dict[str, tuple[Tensor, list[str]]]:
    """Return the places of all groups [N], and their names, by column that names some.

    A column names groups if it has 2 to `MOST_GROUPS` different values, one for each
    example, and is not called a weight. Numbers with a point may be amounts as well:
    without `amounts`, they name no groups.
    """
    found = {}
    for name, column in columns.items():
        pointed = isinstance(column, Tensor) and column.is_floating_point()
        if name in WEIGHTS_ALONE or column.ndim != 1 or (pointed and not amounts):
            continue
        places, names = levels(column)
        if 1 < len(names) <= MOST_GROUPS:
            found[name] = places, names
    return found


@dataclass(frozen=True)
class GroupNames:
    """The names of groups, in the order of their numbers.

    Attributes:
        column: name of the column that names groups.
        names: the different values, as `levels` names them.
    """

    column: str
    names: tuple[str, ...]

    def places(self, values: object, count: int) -> Tensor:
        """Return the numbers of the groups of N examples, [N], int64.

        Raises:
            DataError: if there is another number of values, or another group.
        """
        column = _column(values, self.column, count, "these outputs")
        places, found = levels(column)
        new = [name for name in found if name not in self.names]
        if new:
            raise DataError(
                f"offsets are known for the groups {', '.join(self.names)} of "
                f"{self.column!r}, got also {', '.join(new)}"
            )
        numbers = [self.names.index(name) for name in found]
        return torch.tensor(numbers, dtype=torch.int64)[places]


def _is_named(given: object) -> TypeGuard[Mapping[Any, Any]]:
    """Return whether something holds values by name, as data frames do, too."""
    return isinstance(given, Mapping) or hasattr(given, "keys")


def _named(name: object) -> str:
    if isinstance(name, str):
        return name
    raise DataError(f"the name of a column must be a text, got {described(name)}")


def _column(given: object, name: object, count: int, owner: str) -> Column:
    require_unmasked(given, f"column {name!r} of {owner}")
    try:
        values: Any = given if isinstance(given, Tensor) else np.asarray(given)
    except ValueError as error:
        raise DataError(
            f"column {name!r} of {owner} needs values of one shape: {error}"
        ) from error
    if values.ndim == 0 or len(values) != count:
        got = "one" if values.ndim == 0 else str(len(values))
        raise DataError(
            f"column {name!r} of {owner} needs one value for each of the {count} "
            f"examples, got {got}"
        )
    held = as_tensor(values)
    return values if held is None else held.detach()


def _joined(parts: Iterable[Any]) -> Any:
    held = list(parts)
    if all(isinstance(part, Tensor) for part in held):
        return torch.cat(held)
    return np.concatenate([np.asarray(part) for part in held])
