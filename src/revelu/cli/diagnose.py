"""``revelu diagnose``: which assumptions of the theorems hold, measured."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from revelu.cli.command import Asking, command
from revelu.cli.exit_codes import ExitCode, of_status
from revelu.cli.networks import save_network
from revelu.cli.options import optional
from revelu.errors import InputError
from revelu.report.sections import conditions_table, facts

if TYPE_CHECKING:
    from revelu.network.regularity import Regularity
    from revelu.tasks.diagnose.diagnosis import Diagnosis


@command
def diagnose(
    perturb: Annotated[
        float | None,
        optional("Add a uniform number of [-A, A] to each weight of a local file.", metavar="A"),
    ] = None,
    output: Annotated[
        list[Path] | None,
        optional(
            "Where to write the perturbed network, as extract does; may be given again.",
            "--output",
            "-o",
            metavar="FILE",
        ),
    ] = None,
    *,
    asking: Asking,
) -> ExitCode:
    """Measure how regular TARGET is: which assumptions of the theorems hold.

    Example:
      revelu diagnose model.onnx

    Exit codes:
      0  finished
      1  finished without figures: the target does not allow them
      2  usage or bad input
      3  budget or time exhausted
      4  target unreachable, or it answered nonsense
    130  interrupted
    """
    from revelu.formats import check_writable
    from revelu.tasks.diagnose.diagnose import diagnose as examine

    if output and perturb is None:
        raise InputError("there is nothing to write without --perturb")
    outputs = asking.reserve(output or [], check=check_writable)
    with asking.opened() as oracle:
        found = examine(oracle, perturb=perturb, seed=asking.seed, progress=asking.line)
        found = asking.with_pictures(oracle, found, found.network)
    if found.perturbed is not None:
        asking.write(outputs, save_network(found.perturbed.network, softmax=found.probabilities))
    account = asking.account(asking.target, found, _fields_of(found))
    asking.show(account, conditions_table(account), facts("diagnose", account))
    return ExitCode.CERTIFIED if found.status is None else of_status(found.status)


def _fields_of(found: "Diagnosis") -> dict[str, Any]:
    """What an account says of a diagnosis."""
    network, noise, risk = found.network, found.noise, found.at_risk
    top, digits = found.top_layers, found.precision
    return {
        "architecture": None if network is None else list(network.architecture),
        "parameters": None if network is None else network.n_parameters,
        "softmax": found.probabilities,
        "noise": None if noise is None else {"law": noise.law, "nu": float(noise.nu.max())},
        "delta": found.delta,
        "at_risk": None if risk is None else risk.name,
        "measured": _regularity(found.measured),
        "exact": _regularity(found.exact),
        "precision": None
        if digits is None
        else {**dataclasses.asdict(digits), "digits_lost": digits.digits_lost},
        "top_layers": None if top is None else dataclasses.asdict(top),
        "query_counts": dict(found.query_counts),
        "perturbation": _perturbation(found),
    }


def _regularity(found: "Regularity | None") -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "delta": found.delta,
        "axes": found.n_axes,
        "kinks": found.n_kinks,
        "hyperplanes": found.n_hyperplanes,
        "conditions": [dataclasses.asdict(condition) for condition in found.conditions],
    }


def _perturbation(found: "Diagnosis") -> dict[str, Any] | None:
    if found.perturbed is None or found.exact is None:
        return None
    return {
        "amplitude": found.perturbed.amplitude,
        "lemma_amplitude": found.perturbed.lemma_amplitude,
        "failure_bound": found.perturbed.failure_bound,
        "before": _regularity(found.exact),
        "after": _regularity(found.perturbed.regularity),
    }
