"""What may be claimed where the whole network was not found: layers, or that there is none."""

import numpy as np

from revelu.errors import CurvedError, LimitReachedError, TargetError
from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.blank import blank_share
from revelu.probe.hyperplane import look_across, points_on_hyperplanes, shares_seen
from revelu.probe.kink_lines import KinkLines
from revelu.probe.line import Askable
from revelu.probe.smoothness import Smoothness
from revelu.recover.deep.seeds import SeedSearch
from revelu.recover.deep.stack import Stack
from revelu.recover.in_box import OracleInBox
from revelu.recover.method import Law, Layer
from revelu.tasks.extract.job import CertifyingJob
from revelu.tasks.extract.rough_claims import doubt_about_few_digits
from revelu.types import FloatArray


def doubt_about(
    job: CertifyingJob,
    noise: NoiseFloor,
    layers: tuple[Layer, ...],
    *,
    n_inputs: int = 64,
    most_alike: float = 0.5,
    live: float = 0.75,
    most_blank: float = 0.25,
    several: int = 5,
    n_points: int = 16,
    at_least: int = 4,
    n_queries: int = 4000,
    same: float = 1e-6,
    exact: float = 3e-7,
) -> str:
    """Say why layers are not to be called exact, where the first one may be of deeper neurons.

    A first-layer hyperplane is known by bending the function wherever that changes.  Where a
    function is constant beyond a deeper neuron's surface, that one does, too: its extension meets
    nothing that goes straight on.  Such a hyperplane has points beside which nothing changes; and
    where a function is constant nearly everywhere one piece of such a surface may be all there is.
    And a layer that looks in fewer directions than there are is not whole where answers change in
    another one, or where a hyperplane of no row goes straight on across those of several: only a
    few neurons above read it, and it bends the function where they are on.  Signs that few
    gradients have told are asked for again, and where the function bends is measured: a search
    that was cut leaves rows as one line has shown them.

    Parameters
    ----------
    layers : tuple of (W, b)
        The lowest first; one at least.
    n_inputs, most_alike : int, float
        Inputs, and the share of them that may have one and the same answer.
    live, most_blank : float
        The share of the points of each hyperplane beside which the function has to change, and of
        the inputs around which no answer may: where many are, pieces of deeper neurons' surfaces
        are so long that a hyperplane may lie in one;
    several : int
        or bends of ``several`` sizes, which one piece of a deeper neuron's surface does not have.
    n_points, at_least : int
        Points of each, six queries, and of those of a wide layer,
    n_queries : int
        which take about ``n_queries``, also where the seconds allowed are over.
    same : float
        By how much answers may change in a direction that no row looks in, relative to their
        spread: rows have errors.
    exact : float
        How far a row that is called exact may be off, relative to its norm: half of the digits of
        float64 answers, at the bends that are as faint as a few thousandths.

    Returns
    -------
    str
        Empty where nothing speaks against them.
    """
    (W, b), oracle = layers[0], job.oracle
    if Law.of(noise) is not Law.FLOAT64:
        return doubt_about_few_digits(job, noise, layers[0])
    ask, b, bound = _from_the_middle(oracle, W, b)
    n = max(at_least, min(n_points, n_queries // (6 * max(len(W), 1))))
    rng = np.random.default_rng(job.new_seed())
    X = np.clip(rng.standard_normal((n_inputs, oracle.dim_in)), -bound, bound)
    try:
        with oracle.overtime(), oracle.phase("verify"):
            Y = ask(X)
            n_alike = int(np.unique(Y, axis=0, return_counts=True)[1].max())
            moved = ask(_moved_unseen(X, W, rng, bound))
            blank = blank_share(ask, noise, oracle.dim_in, rng, bound=bound)
            shares, kinds = shares_seen(ask, noise, W, b, rng, n, bound=bound)
            n_turned = _n_turned(ask, noise, W, b, rng, bound)
            n_others = _n_others(ask, noise, (W, b), rng, bound, n_queries)
            n_vague = _n_vague(ask, noise, (W, b), rng, bound, n, exact)
    except (LimitReachedError, TargetError, CurvedError) as error:
        return f"no layer is called exact: {len(W)} rows seen so far, none looked at again: {error}"
    with np.errstate(invalid="ignore"):  # infinite where the target is saturated
        least = same * np.linalg.norm(Y.std(axis=0))
        n_changed = int((np.abs(moved - Y) > least).any(axis=1).sum())
    if n_changed:
        return (
            f"no layer is called exact: at {n_changed} of {n_inputs} inputs answers change in "
            f"directions that none of the {len(W)} neurons found looks in"
        )
    if n_turned:
        return f"no layer is called exact: of {n_turned} rows the answers say the other sign"
    if n_others:
        return (
            "no layer is called exact: a hyperplane that none of the rows found is of goes "
            "straight on across theirs"
        )
    if n_vague:
        return (
            f"no layer is called exact: at {n_vague} of the {len(W)} rows found so far the "
            f"function bends more than {exact:.0e} beside the hyperplane, or not there"
        )
    told = (kinds >= several) | ((shares >= live) & (blank <= most_blank))
    if n_alike <= most_alike * n_inputs and told.all():
        return ""
    return (
        "no layer is called exact: where the answers do not change, nothing tells a first layer's "
        "hyperplane from a deeper neuron's"
    )


def _from_the_middle(
    oracle: Oracle, W: FloatArray, b: FloatArray
) -> tuple[Askable, FloatArray, float]:
    """An oracle, offsets of rows and a bound, in which a box reaches as far to all sides."""
    if oracle.box is None:
        return oracle, b, np.inf
    lo, hi = oracle.box
    bound = (hi - lo) / 2.0
    return OracleInBox(oracle, bound), b + (lo + hi) / 2.0 * W.sum(axis=1), bound


def doubt_about_class(job: CertifyingJob, noise: NoiseFloor, *, blank: float = 0.1) -> str:
    """Say why a target is not to be called no network for want of affine pieces on lines.

    Where the answers change at few inputs, the noise floor was measured where they do not.

    Parameters
    ----------
    blank : float
        The share of the inputs around which no answer may change.

    Returns
    -------
    str
        Empty where nothing speaks against it.
    """
    oracle = job.oracle
    bound = np.inf if oracle.box is None else min(abs(end) for end in oracle.box)
    rng = np.random.default_rng(job.new_seed())
    try:
        with oracle.overtime(), oracle.phase("verify"):
            share = blank_share(oracle, noise, oracle.dim_in, rng, bound=bound)
    except (LimitReachedError, TargetError):
        return ""
    if share <= blank:
        return ""
    return f"around {share:.0%} of the inputs no answer changes: pieces are not told from rounding"


def is_smooth(
    job: CertifyingJob,
    noise: NoiseFloor,
    how: Smoothness = Smoothness(),  # noqa: B008 - frozen
) -> bool:
    """Whether answers of few digits are a smooth function's, however much larger their errors are.

    Those of float64 have the digits that lines need, and deep networks bend often.
    """
    oracle = job.oracle
    if Law.of(noise) is Law.FLOAT64 or oracle.box is not None or oracle.link.has_head:
        return False
    rng = np.random.default_rng(job.new_seed())
    try:
        with oracle.overtime(), oracle.phase("verify"):
            return how.is_smooth(oracle, noise, oracle.dim_in, rng)
    except (LimitReachedError, TargetError):
        return False


def _n_turned(
    oracle: Askable,
    noise: NoiseFloor,
    W: FloatArray,
    b: FloatArray,
    rng: np.random.Generator,
    bound: float,
    *,
    n_points: int = 4,
    step: float = 1e-3,
    off: float = 1e-2,
) -> int:
    """Count rows of which the answers say that they are on where their sums are negative.

    Where rows are independent there is a direction that changes the sum of one of them alone.  On
    the side where that neuron is off nothing changes along it (DG21, 3.5.3).
    """
    if not len(W) or np.linalg.matrix_rank(W) < len(W):
        return 0
    rows = np.repeat(np.arange(len(W)), n_points)
    X, _ = points_on_hyperplanes(rng, W[rows], b[rows], bound=bound)
    Z = np.linalg.pinv(W).T[rows]
    Z *= step * (np.linalg.norm(X, axis=1) / np.linalg.norm(Z, axis=1))[:, None]
    inside = (np.abs(X) + np.abs(Z) <= bound).all(axis=1)
    if not inside.any():
        return 0
    rows, X, Z = rows[inside], X[inside], Z[inside]
    here, up, down = np.split(oracle(np.vstack([X, X + Z, X - Z])) / noise.unit, 3)
    with np.errstate(invalid="ignore"):  # infinite where the target is saturated
        up, down = (np.abs(Y - here).max(axis=1) for Y in (up, down))
    least = 2.0 * SIGMAS * float(noise.nu.max()) * noise.growth(X)
    votes = ((up > least) & (down < off * up)).astype(int)
    votes -= (down > least) & (up < off * down)
    return int((np.bincount(rows, votes) < 0).sum())


def _n_vague(
    oracle: Askable,
    noise: NoiseFloor,
    layer: Layer,
    rng: np.random.Generator,
    bound: float,
    n_points: int,
    exact: float,
    *,
    side: float = 1e-5,
) -> int:
    """Count rows beside whose hyperplane the function bends, by more than an error of answers.

    Parameters
    ----------
    n_points : int
        Of each hyperplane, four queries a point, so far to either ``side`` of it, relative to the
        point.
    """
    W, b = layer
    rows = np.repeat(np.arange(len(b)), n_points)
    X, M = points_on_hyperplanes(rng, W[rows], b[rows], bound=bound)
    growth = noise.growth(X)
    lines = KinkLines(X, M, np.zeros(len(X)), side * growth)
    seen = lines.read(oracle(lines.points), noise)
    off = np.maximum(np.abs(seen.tau) - SIGMAS * seen.tau_error, 0.0) / growth
    n_vague = 0
    for j in range(len(b)):
        own = (rows == j) & seen.is_kink
        is_live = bool(((rows == j) & ~seen.is_blank).any())
        n_vague += bool(np.median(off[own]) > exact) if own.any() else is_live
    return n_vague


def _n_others(
    oracle: Askable,
    noise: NoiseFloor,
    layer: Layer,
    rng: np.random.Generator,
    bound: float,
    n_queries: int,
    *,
    n_segments: int = 24,
    spread: float = 1.5,
    most: int = 40,
    least: int = 4,
    n_across: int = 36,
    n_walls: int = 2,
    n_bent: int = 2,
) -> int:
    """Count hyperplanes of no row that bend the function beyond those of several rows.

    A deeper neuron's surface turns at nearly all of those: critical points on segments are taken
    for points of a hyperplane each, and places elsewhere on it are looked at.

    Parameters
    ----------
    n_segments, spread : int, float
        Segments, and the distance of their ends from the origin, in standard deviations.
    most, least : int
        Critical points on them that are looked at: as many as ``n_queries`` answers tell the
        gradients of.
    n_across, n_walls : int
        Places of each hyperplane, and the rows whose hyperplanes lie between them.
    n_bent : int
        Places at which the function has to bend.  Another hyperplane lies beside one place in
        thousands, and over a thousand are looked at: one of them tells nothing, two of the same
        hyperplane do not occur by chance.
    """
    (W, b), d = layer, oracle.dim_in
    stack, search = Stack(d, [W], [b]), SeedSearch()
    starts, ends = np.clip(spread * rng.standard_normal((2, n_segments, d)), -bound, bound)
    pairs = zip(starts, ends - starts, strict=True)
    breaks = [stack.breaks(x, v, 0.0, 1.0) for x, v in pairs]
    places = search.scan.find(oracle, noise, starts, ends, breaks, rng)
    n = int(np.clip(n_queries // (4 * d), least, most))
    chosen = rng.permutation(len(places))[:n]
    seeds = search.measure(oracle, noise, places.take(chosen), rng)
    if not seeds:
        return 0
    at, normals = (
        np.repeat(np.array(found), n_across, axis=0)
        for found in ([seed.x for seed in seeds], [seed.normal for seed in seeds])
    )
    offsets = -(normals * at).sum(axis=1)
    X, normals = points_on_hyperplanes(rng, normals, offsets, bound=bound)
    crossed = stack.states(X)[0] != stack.states(at)[0]
    apart = crossed.sum(axis=1) >= np.clip(d // 2, 1, min(n_walls, len(b)))
    if not apart.any():
        return 0
    bent, _ = look_across(oracle, noise, X[apart], normals[apart])
    owners = np.repeat(np.arange(len(seeds)), n_across)[apart]
    return int((np.bincount(owners[bent], minlength=1) >= n_bent).sum())


def _moved_unseen(
    X: FloatArray, W: FloatArray, rng: np.random.Generator, bound: float
) -> FloatArray:
    """Inputs moved at random, as far as inputs are apart, so that no row's sum changes."""
    d = X.shape[1]
    _, values, vt = np.linalg.svd(W)
    rank = int((values > d * np.finfo(float).eps * values.max(initial=0.0)).sum())
    unseen = vt[rank:]
    V = rng.standard_normal(X.shape) @ unseen.T @ unseen
    if not np.isfinite(bound):
        return np.asarray(X + V)
    # As far as the faces of the box.
    with np.errstate(divide="ignore"):
        room = ((bound - np.sign(V) * X) / np.abs(V)).min(axis=1)
    return np.asarray(X + np.minimum(room, 1.0)[:, None] * V)
