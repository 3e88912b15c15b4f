"""``revelu verify``: the certificate of a network against a target."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from revelu.cli.advice import advice_on_verifying
from revelu.cli.command import Asking, command
from revelu.cli.domains import inputs_of
from revelu.cli.exit_codes import ExitCode, of_status
from revelu.cli.options import Box, Labels, flag, optional
from revelu.errors import FormatError, InputError
from revelu.report.summary import rows_of

if TYPE_CHECKING:
    from revelu.certify.sound_statement import SoundBound
    from revelu.network import Network
    from revelu.recovery import Recovery


@command
def verify(
    recovered: Annotated[
        str,
        typer.Argument(
            metavar="RECOVERED",
            help="File of the network to verify.",
            show_default=False,
        ),
    ],
    box: Box = None,
    inputs: Annotated[
        Path | None,
        optional(
            "Table of inputs, one a row, that must agree for a certificate, too.", metavar="X.csv"
        ),
    ] = None,
    sound: Annotated[
        bool,
        flag(
            "Also bound the largest difference in --box with certainty, where TARGET is a file "
            "of weights.",
            "--sound",
        ),
    ] = False,
    labels: Labels = False,
    checks: Annotated[int, typer.Option(help="Number of fresh queries of the certificate.")] = 3000,
    *,
    asking: Asking,
) -> ExitCode:
    """Certify RECOVERED against TARGET by fresh queries.

    Example:
      revelu verify found.onnx model.onnx

    Exit codes:
      0  every check agrees
      1  they disagree
      2  usage or bad input
      3  budget or time exhausted
      4  target unreachable, or it answered nonsense
    130  interrupted
    """
    from revelu.adapters import named_network
    from revelu.tasks.verify import verify as certify

    network = named_network(recovered)
    asking.reserve([], {recovered: "is the network to verify", inputs: "holds the inputs"})
    truth = _weights_of(asking.target, box) if sound else None
    given = inputs_of(asking, inputs)
    is_placed = labels or any((box, asking.like, asking.mean, asking.std))
    box, said = (box, ()) if is_placed else _kept_box(recovered)
    with asking.opened(box, network.dim_in) as oracle:
        recovery = certify(
            network,
            oracle,
            seed=asking.seed,
            checks=checks,
            inputs=given,
            labels=labels,
            progress=asking.line,
        )
        recovery = asking.with_pictures(oracle, recovery, network)
    journaled = asking.journal is not None
    more = advice_on_verifying(recovery, budget=asking.budget, checks=checks, journaled=journaled)
    recovery = replace(recovery, evidence=(*said, *recovery.evidence, *more))
    own, rows = recovery.fields() | {"sound": None}, rows_of(recovery)
    if truth is not None and box is not None:
        found = _bound(truth, network, box, asking.seed, recovery)
        own, rows = own | {"sound": found.to_dict()}, [*rows, ("sound bound", found.words)]
    account = asking.account(asking.target, recovery, own)
    asking.show({**account, "recovered": recovered}, rows)
    return of_status(recovery.status)


def _kept_box(recovered: str) -> tuple[tuple[float, float] | None, tuple[str, ...]]:
    """The box that a file of a network says it was recovered in, and words for evidence."""
    from revelu.formats import kept_of

    box = kept_of(Path(recovered)).box if Path(recovered).is_file() else None
    if box is None:
        return None, ()
    return box, (f"recovered in [{box[0]:g}, {box[1]:g}], as {recovered} says: asked there",)


def _bound(
    truth: "Network",
    network: "Network",
    box: tuple[float, float],
    seed: int,
    recovery: "Recovery",
) -> "SoundBound":
    """Bound the largest difference in a box, of answers where their last step was measured."""
    from revelu.certify.sound_bound import sound_bound

    link = None if recovery.answers is None else recovery.link
    return sound_bound(truth, network, box, seed, link=link)


def _weights_of(target: str, box: tuple[float, float] | None) -> "Network":
    """Read the network that a sound bound compares with, before anything is asked."""
    from revelu.adapters import named_network

    if box is None:
        raise InputError("--sound bounds differences in a box: give --box LO HI")
    try:
        return named_network(target)
    except (FormatError, InputError) as error:
        raise InputError(f"--sound needs the weights of TARGET: {error}") from None
