"""``revelu diagnose``: which assumptions of the theorems hold, measured."""

from pathlib import Path
from typing import Annotated

from revelu.cli.command import Asking, command
from revelu.cli.exit_codes import ExitCode, of_status
from revelu.cli.networks import save_network
from revelu.cli.options import Box, Labels, optional
from revelu.errors import InputError
from revelu.report.summary import parts_of


@command
def diagnose(
    perturb: Annotated[
        float | None,
        optional(
            "Largest number that is added at random to each weight of a local "
            "file, with either sign.",
            metavar="A",
        ),
    ] = None,
    output: Annotated[
        list[Path] | None,
        optional(
            "File to write the perturbed network to: .onnx, .npz, .safetensors "
            "or .pt; may be given "
            "again.",
            "--output",
            "-o",
            metavar="FILE",
        ),
    ] = None,
    box: Box = None,
    labels: Labels = False,
    *,
    asking: Asking,
) -> ExitCode:
    """Say what kind of function TARGET is, and how regular: which assumptions of the theorems hold.

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
    with asking.opened(box) as oracle:
        found = examine(
            oracle, perturb=perturb, seed=asking.seed, labels=labels, progress=asking.line
        )
        found = asking.with_pictures(oracle, found, found.network)
    if found.perturbed is not None:
        asking.write(outputs, save_network(found.perturbed.network, found.link))
    account = asking.account(asking.target, found, found.fields())
    asking.show(account, *parts_of(found, account))
    return ExitCode.CERTIFIED if found.status is None else of_status(found.status)
