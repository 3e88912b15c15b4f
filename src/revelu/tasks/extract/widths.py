"""Widths that the user tells: where a search ends sooner, and what is said where they are wrong.

Told widths decide no random choice and no query of a search that they are right for: it asks what
it would ask without them.  They only end what looks for more hidden layers than there are.
"""

from collections.abc import Sequence
from dataclasses import replace

from revelu.errors import InputError
from revelu.oracle import whole_number
from revelu.recover.deep import Deep, Leaky
from revelu.recover.method import Method
from revelu.recovery import Recovery, Status


def checked_widths(widths: Sequence[int] | None, dim_in: int) -> tuple[int, ...] | None:
    """Return the widths, inputs first and outputs last.

    Raises
    ------
    InputError
        If they are no whole numbers, or the target has other inputs.
    """
    if widths is None:
        return None
    found = tuple(whole_number("widths", width, 1) for width in widths)
    if len(found) < 2:
        raise InputError(f"widths are inputs, hidden layers and outputs, got {list(widths)}")
    if found[0] != dim_in:
        raise InputError(f"widths begin with {found[0]} inputs, and the target has {dim_in}")
    return found


def no_deeper(methods: Sequence[Method], widths: tuple[int, ...] | None) -> tuple[Method, ...]:
    """Return the methods without what looks for more hidden layers than were told."""
    if widths is None:
        return tuple(methods)
    n_hidden = max(len(widths) - 2, 1)
    kept = [m for m in methods if n_hidden > 1 or m.hidden[1] == 1] or list(methods)
    return tuple(_up_to(method, n_hidden) for method in kept)


def _up_to(method: Method, n_hidden: int) -> Method:
    """The method, which gives up above that number of hidden layers."""
    if not isinstance(method, Deep | Leaky):
        return method
    # It climbs a layer at a time, and the last one is found with the outputs.
    return replace(method, max_layers=min(method.max_layers, n_hidden))


def compared(recovery: Recovery, widths: tuple[int, ...] | None) -> Recovery:
    """Say where what was found has other widths than were told."""
    if widths is None:
        return recovery
    said = "-".join(map(str, widths))
    network = recovery.network
    if network is None or recovery.status is not Status.RECOVERED:
        n = max(len(widths) - 2, 1)
        layers = f"{n} hidden layer{'s' * (n > 1)}"
        told = f"no more than {layers} were looked for, as the widths {said} say"
        return replace(recovery, evidence=(*recovery.evidence, told))
    found = network.to_dense().architecture
    if found == widths:
        return recovery
    words = "-".join(map(str, found))
    told = f"the network that was certified is {words}, and not {said} as was told"
    return replace(recovery, warnings=(*recovery.warnings, told))
