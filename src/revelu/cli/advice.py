"""What to try next, in the words of the command line."""

from typing import TYPE_CHECKING

from revelu.status import Status

if TYPE_CHECKING:
    from revelu.recovery import Recovery


def advice(
    recovery: "Recovery", *, method: str, budget: int | None, checks: int, journaled: bool = False
) -> list[str]:
    """Return what would help an extraction that did not succeed.

    Parameters
    ----------
    method, budget, checks
        As given on the command line.
    journaled : bool
        Whether the budget is that of all runs of a journal.

    Returns
    -------
    list of str
        To follow the recovery's own evidence.
    """
    if recovery.details.get("out_of_reach"):
        return []
    failed = recovery.status in {Status.UNVERIFIED, Status.PARTIAL}
    if failed and method not in {"auto", "fit"}:
        needs = f"--method {method} needs the digits of float64 answers and a target of its depth"
        return [f"{needs}; --method auto chooses by what it measures"]
    if recovery.status is Status.BUDGET_EXHAUSTED and budget is not None:
        from revelu.oracle.stencils import Stencils
        from revelu.tasks.extract.job import FEWEST_CHECKS

        n_noise = Stencils().n_queries
        return [
            _for_budget(recovery, budget, min(checks, FEWEST_CHECKS), n_noise, journaled=journaled)
        ]
    return []


def advice_on_verifying(
    recovery: "Recovery", *, budget: int | None, checks: int, journaled: bool = False
) -> list[str]:
    """Return which budget would do for a network that is known."""
    if recovery.status is not Status.BUDGET_EXHAUSTED or budget is None:
        return []
    from revelu.oracle.stencils import Stencils
    from revelu.tasks.extract.job import FEWEST_CHECKS

    n_noise = Stencils().n_queries
    n = min(checks, FEWEST_CHECKS)
    # A certificate that a budget cut short is asked in other batches the next time.
    kept = recovery.ledger.by_phase.get("verify", 0) if journaled else 0
    enough = n_noise + 2 * n + kept
    if enough <= budget:  # time was over, not the budget
        return []
    needs = f"a certificate takes {n} checks on N(0, I) and as many elsewhere"
    return [f"{needs}, and the noise floor {n_noise}: --budget {enough} should do"]


def _for_budget(
    recovery: "Recovery", budget: int, fewest: int, n_noise: int, *, journaled: bool
) -> str:
    """How many queries are missing, as far as that is known."""
    # A tight budget is shared by halves: N(0, I), and hyperplanes with tails.
    room = 2 * fewest
    certificate = recovery.certificate
    if certificate is not None and (certificate.passed or not certificate.n_checks):
        # A certificate that a budget cut short is asked in other batches the next time.
        asked = 0 if journaled else certificate.n_checks + certificate.n_structural
        more = room - asked
        return (
            f"only the certificate is missing, which takes {fewest} checks on N(0, I) and as "
            f"many elsewhere: --budget {budget + more} should do"
        )
    if recovery.method == "labels":
        return (
            f"from labels recovery takes some {_cost('labels')} queries a parameter, the more the "
            f"fewer the inputs; on top come, for a certificate, {room} at least"
        )
    least = n_noise + room
    text = f"no target takes less than --budget {least}: " if budget < least else ""
    text += (
        f"recovery takes {_cost('one_hidden')} query a parameter, {_cost('fit')} where answers "
        f"lack digits, fewer with several outputs, and {_cost('deep').partition(';')[0]} with "
        "several hidden layers; on top come "
        f"{n_noise} for the noise floor and, for a certificate, {room} at least"
    )
    if recovery.network is not None:
        size = recovery.network.dim_in + recovery.network.dim_out + 1
        text += f"; each hidden neuron of this target has {size:,} parameters"
    return text


def _cost(method: str) -> str:
    """What a method takes, as `revelu methods` prints it."""
    from revelu.recover.table import METHODS

    return next(known.cost for known in METHODS if known.name == method)
