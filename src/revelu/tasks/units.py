"""Results in the target's own units, of what was found in the coordinates of a domain."""

from dataclasses import replace

import numpy as np

from revelu.network import Network
from revelu.oracle import Domain
from revelu.recover.method import Layer
from revelu.recovery import Recovery, SpanRecovery


def in_units(recovery: Recovery, domain: Domain | None) -> Recovery:
    """Return a recovery whose networks and layers read the target's inputs.

    Parameters
    ----------
    recovery : Recovery
        Found in the coordinates of the domain.
    domain : Domain or None
        None where queries are inputs.
    """
    if domain is None:
        return recovery
    layer = recovery.first_layer
    return replace(
        recovery,
        network=recovery.network and network_in_units(recovery.network, domain),
        rejected=recovery.rejected and network_in_units(recovery.rejected, domain),
        first_layer=layer and layer_in_units(layer, domain),
        warnings=(*recovery.warnings, *domain.notes),
    )


def layer_in_units(layer: Layer, domain: Domain | None) -> Layer:
    """Return a first layer that reads inputs, of one that reads coordinates."""
    if domain is None:
        return layer
    (W, b), (M, t) = layer, reading(domain)
    return W @ M, b + W @ t


def network_in_units(network: Network, domain: Domain) -> Network:
    """Return the network that reads inputs, of one that reads coordinates."""
    return network.after(*reading(domain))


def network_in_coordinates(network: Network, domain: Domain | None) -> Network:
    """Return the network that reads coordinates, of one that reads inputs."""
    return network if domain is None else network.after(domain.matrix.T, domain.center)


def reading(domain: Domain) -> tuple[np.ndarray, np.ndarray]:
    """``M (r, d)`` and ``t (r,)`` such that ``z = M x + t`` are the coordinates of an input."""
    M = domain.inverse.T
    return M, -M @ domain.center


def span_in_units(found: SpanRecovery, domain: Domain | None) -> SpanRecovery:
    """Return a span of directions of inputs, of one of directions of coordinates.

    What moves along ``v`` in coordinates is looked at along ``M' v`` in inputs.
    """
    if domain is None:
        return found
    rows = found.span.basis @ reading(domain)[0]
    basis = np.linalg.qr(rows.T)[0].T if len(rows) else rows
    # The map turns errors of a direction by no more than its condition number.
    sizes = np.linalg.svd(domain.matrix, compute_uv=False)
    worse = float(sizes[0] / sizes[-1])
    errors = np.minimum(found.span.errors * worse, np.pi / 2)
    span = replace(found.span, basis=basis, errors=errors)
    return replace(found, span=span, warnings=(*found.warnings, *domain.notes))
