"""Results in the target's own units, of what was found in the coordinates of a domain."""

from dataclasses import replace

import numpy as np

from revelu.certify.labels import examine_labels, predict_labels
from revelu.network import Network
from revelu.oracle import Domain, Oracle
from revelu.recover.method import Layer
from revelu.recovery import Recovery, SpanRecovery, Status
from revelu.types import FloatArray


def in_units(
    recovery: Recovery,
    domain: Domain | None,
    rng: np.random.Generator,
    rows: FloatArray | None = None,
) -> Recovery:
    """Return a recovery whose networks and layers read the target's inputs.

    Parameters
    ----------
    recovery : Recovery
        Found in the coordinates of the domain.
    domain : Domain or None
        None where queries are inputs.
    rng : numpy.random.Generator
        Draws inputs at which the two are compared: none is asked.
    rows : ndarray, shape (m, r), optional
        Coordinates of inputs that were given.
    """
    if domain is None:
        return recovery
    layer, network = recovery.first_layer, recovery.network
    if network is not None:
        outer = network_in_units(network, domain)
        recovery = within_rounding(recovery, outer, network, domain, rng, rows)
    return replace(
        recovery,
        rejected=recovery.rejected and network_in_units(recovery.rejected, domain),
        first_layer=layer and layer_in_units(layer, domain),
        warnings=(*recovery.warnings, *domain.notes),
    )


def within_rounding(
    recovery: Recovery,
    outer: Network,
    inner: Network,
    domain: Domain,
    rng: np.random.Generator,
    rows: FloatArray | None = None,
    n: int = 4000,
    margin: float = 0.01,
) -> Recovery:
    """Return a recovery with the network that reads inputs, certified if it is as good.

    The certificate is of the one that reads coordinates.  Far from 0 a bias of the other rounds
    away what small weights of large inputs add up to.

    Parameters
    ----------
    outer, inner : Network
        What reads inputs, and coordinates.
    rows : ndarray, shape (m, r), optional
        Coordinates of inputs that were given, at which they have to agree, too.
    n : int
        Inputs drawn from the domain: none is asked.
    margin : float
        Share of the tolerance that rounding may add where the statement counts checks that
        differ: the largest error is theirs, and says nothing of what the others leave.
    """
    recovery, said = replace(recovery, network=outer), recovery.certificate
    if recovery.status is not Status.RECOVERED or said is None:
        return recovery
    if recovery.classes:
        return _with_equal_labels(recovery, inner, domain, rng, n)
    shape = n, domain.dim_in
    Z = rng.uniform(-1.0, 1.0, shape) if domain.is_uniform else rng.standard_normal(shape)
    Z = Z if rows is None else np.vstack([Z, rows])
    with np.errstate(over="ignore", invalid="ignore"):
        apart = np.abs(outer(domain.to_target(Z)) - inner(Z))
    rounding = float(np.max(np.where(np.isfinite(apart), apart, np.inf), initial=0.0))
    agree = said.fraction_within == 1.0
    room = said.tolerance - said.max_abs_error if agree else margin * said.tolerance
    if rounding <= room:
        return recovery
    told = (
        f"in the target's own units the network's rounding adds errors of up to {rounding:.2g}, "
        f"more than the certificate of {said.tolerance:.2g} leaves room for: its inputs are far "
        "larger than what moves them"
    )
    certificate = replace(said, passed=False)
    return replace(
        recovery,
        status=Status.UNVERIFIED,
        certificate=certificate,
        evidence=(*recovery.evidence, told),
    )


def _with_equal_labels(
    recovery: Recovery, inner: Network, domain: Domain, rng: np.random.Generator, n: int
) -> Recovery:
    """Return a recovery from labels, certified if rounding changes none of them.

    The network that reads coordinates is examined, borders included, as it was on the target, with
    that which reads inputs in the place of the target.
    """
    outer, said, classes = recovery.network, recovery.certificate, np.array(recovery.classes)
    if outer is None or said is None:  # pragma: no cover - the caller has looked
        raise TypeError
    by_outer = Oracle(
        lambda Z: predict_labels(outer, classes, domain.to_target(Z)), domain.dim_in, name="outer"
    )
    n_wrong = len(examine_labels(inner, classes, by_outer, n, rng).wrong)
    if not n_wrong:
        return recovery
    told = (
        f"in the target's own units the network's rounding changes {n_wrong:,} of some {n:,} "
        "labels, borders included: its inputs are far larger than what moves them"
    )
    return replace(
        recovery,
        status=Status.UNVERIFIED,
        certificate=replace(said, passed=False),
        evidence=(*recovery.evidence, told),
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


def span_in_units(
    found: SpanRecovery, domain: Domain | None, largest_angle: float = 0.01
) -> SpanRecovery:
    """Return a span of directions of inputs, of one of directions of coordinates.

    What moves along ``v`` in coordinates is looked at along ``M' v`` in inputs.  Columns that are
    held count as looked at: nothing was asked of them.

    Parameters
    ----------
    largest_angle : float
        In radians: a span farther off in inputs is not recovered.
    """
    if domain is None:
        return found
    basis, errors, angle = _turned(found, domain)
    # The map turns rounding by no more than its condition number.
    worse = domain.condition
    rounding = np.finfo(np.float64).eps * worse
    errors = np.minimum(np.where(errors > 0, np.maximum(errors, rounding), 0.0), np.pi / 2)
    angle = min(max(angle, rounding), np.pi / 2)
    span = replace(found.span, basis=basis, errors=errors)
    warnings = (*found.warnings, *domain.notes)
    found = replace(found, span=span, warnings=warnings)
    if not np.isfinite(found.expected_angle):
        return found
    found = replace(found, expected_angle=angle)
    if found.status is not Status.RECOVERED or angle <= largest_angle:
        return found
    told = (
        f"inputs move {worse:.1g} times as much one way as another: in the target's own units the "
        f"span may be off by {angle:.1g} rad"
    )
    return replace(found, status=Status.UNVERIFIED, evidence=(*found.evidence, told))


def _turned(found: SpanRecovery, domain: Domain) -> tuple[FloatArray, FloatArray, float]:
    """Return the basis in inputs, shape (k, d), its errors, shape (k,) or (0,), and its angle.

    Let ``B (r, n)`` span what was found in coordinates, ``C`` its null space, and ``M`` read them.
    A row of ``B`` that errs by ``e`` errs along ``C``, ``e u C`` with u a unit vector of no
    direction of its own.  ``B M = L Q``, of orthonormal rows Q, is the span in inputs, and to first
    order its rows err by ``inv(L) diag(e) U C M (1 - Q' Q)``.  Of U only the lengths are known: a
    row of it makes ``|C M (1 - Q' Q)| / sqrt(n - r)`` on average, in the Frobenius norm.  What the
    whole span errs by beyond its rows' own errors is shared out among them.
    """
    B, M = found.span.basis, reading(domain)[0]
    held = np.eye(len(domain.center))[domain.is_held]
    Q, R = np.linalg.qr(np.vstack([B @ M, held]).T)
    outside = found.span.null_basis @ M
    each = np.linalg.norm(outside - outside @ Q @ Q.T) / np.sqrt(max(len(outside), 1))
    # Where rounding hides a row, its error is that of rounding.
    turn = each * np.linalg.pinv(R).T[:, : len(B)]
    known, angle = found.span.errors, found.expected_angle
    errors = np.linalg.norm(turn * known, axis=1) if len(known) else known
    if not np.isfinite(angle):
        return Q.T, errors, angle
    shared = np.sqrt(max(angle**2 - float(known @ known), 0.0) / max(len(B), 1))
    own = known if len(known) else np.zeros(len(B))
    return Q.T, errors, float(np.linalg.norm(turn * np.hypot(own, shared)))
