"""The groups in which the help of a command lists its options."""

import copy
import inspect
from collections.abc import Iterable
from typing import Annotated, get_args

from typer.models import ArgumentInfo, OptionInfo

GROUPS: dict[str, tuple[str, ...]] = {
    "Target": (
        *("dim_in", "trust", "input_name", "output_name", "input_shape", "image"),
        *("activation", "fixed", "link", "target", "drop"),
    ),
    "Where it is asked": ("box", "like", "columns", "mean", "std", "keep_discrete"),
    "Search": (
        *(
            "method",
            "widths",
            "polish",
            "elsewhere",
            "labels",
            "neurons",
            "order",
            "halfspaces",
            "known",
        ),
        *(
            "against",
            "sound",
            "checks",
            "inputs",
            "every_row",
            "norm",
            "perturb",
            "tolerance",
            "seed",
        ),
    ),
    "Limits": ("budget", "max_seconds", "journal", "rate", "retry_for", "batch", "workers", "dask"),
    "Output": (
        *(
            "output",
            "vnnlib",
            "force",
            "keep_uncertified",
            "like_input",
            "head",
            "keep_scaler",
            "plot",
            "png",
        ),
        *("price", "baseline", "fail_on", "report", "format", "details"),
        *("as_json", "as_csv", "verbose", "quiet"),
    ),
    "Endpoints": (
        *("request", "answer", "header", "key_env", "preset", "endpoint", "get", "classes"),
        *("client_cert", "client_key", "ca_cert", "remote"),
    ),
}
"""Names of parameters, in the order in which the help has them; others stand before them."""

_PLACES = {name: (group, i) for group, names in GROUPS.items() for i, name in enumerate(names)}


def in_groups(parameters: Iterable[inspect.Parameter]) -> list[inspect.Parameter]:
    """Return a command's parameters in the order of its help: arguments first, then groups."""
    return sorted(map(_with_group, parameters), key=_place)


def group_of(parameter: inspect.Parameter) -> str:
    """Return the group of an option; empty for what is none, and for one that has none."""
    if not isinstance(_declared(parameter), OptionInfo):
        return ""
    return _PLACES.get(parameter.name, ("", 0))[0]


def _declared(parameter: inspect.Parameter) -> object:
    """What its annotation says besides the type."""
    return next(iter(get_args(parameter.annotation)[1:]), None)


def _with_group(parameter: inspect.Parameter) -> inspect.Parameter:
    declared = copy.copy(_declared(parameter))  # commands share it
    if not isinstance(declared, OptionInfo):
        return parameter
    declared.rich_help_panel = group_of(parameter) or None
    kind = get_args(parameter.annotation)[0]
    return parameter.replace(annotation=Annotated[kind, declared])


def _place(parameter: inspect.Parameter) -> tuple[bool, int, int]:
    group, i = _PLACES.get(parameter.name, ("", 0))
    is_argument = isinstance(_declared(parameter), ArgumentInfo)
    return not is_argument, -1 if is_argument or not group else [*GROUPS].index(group), i
