"""``revelu extract``: recover the network behind a target, verify it, write it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from revelu.cli.advice import advice
from revelu.cli.command import Asking, command
from revelu.cli.domains import inputs_of
from revelu.cli.exit_codes import ExitCode, of_status
from revelu.cli.networks import box_of, frame_of, save_network
from revelu.cli.options import Box, Force, KeepUncertified, Labels, Outputs, flag, optional
from revelu.cli.reading import read
from revelu.errors import InputError
from revelu.report.summary import rows_of

if TYPE_CHECKING:
    from revelu.recovery import Recovery


@command
def extract(
    output: Outputs = None,
    force: Force = False,
    keep_uncertified: KeepUncertified = False,
    method: Annotated[
        str,
        typer.Option(
            help="Method that recovers the network: shared_weights, one_hidden, near_duplicates, "
            "fit, two_hidden, leaky, deep or labels; auto chooses; `revelu methods` explains each. "
            "read: of a file whose weights lie open."
        ),
    ] = "auto",
    polish: Annotated[
        bool,
        flag(
            "Refine all weights to the last digits, by about one more query a parameter.",
            "--polish",
        ),
    ] = False,
    box: Box = None,
    inputs: Annotated[
        Path | None,
        optional(
            "Table of inputs, one a row, that must agree for a certificate, too.", metavar="X.csv"
        ),
    ] = None,
    widths: Annotated[
        str | None,
        optional(
            "Widths of the target, if they are known: inputs, hidden layers, outputs. A warning "
            "says where the network found has others.",
            metavar="784,8,8,1",
        ),
    ] = None,
    elsewhere: Annotated[
        bool,
        flag(
            "If the target does not bend near N(0, I), look for where it does, and search there.",
            "--elsewhere",
        ),
    ] = False,
    like_input: Annotated[
        bool,
        flag("Write .onnx files with the target's own names, shapes and types.", "--like-input"),
    ] = False,
    head: Annotated[
        bool,
        flag("Write the target's last step, such as a sigmoid, into the .onnx file.", "--head"),
    ] = False,
    labels: Labels = False,
    checks: Annotated[int, typer.Option(help="Number of fresh queries of the certificate.")] = 3000,
    keep_scaler: Annotated[
        bool,
        flag(
            "For a file that is read: write its scaler as nodes of its own, to .onnx only.",
            "--keep-scaler",
        ),
    ] = False,
    against: Annotated[
        str | None,
        optional("For a file that is read: the target to certify it against.", metavar="TARGET"),
    ] = None,
    *,
    asking: Asking,
) -> ExitCode:
    r"""Recover the network behind TARGET by queries, verify it, write it.

    Example, of a file:
      revelu extract model.onnx -o found.onnx --like-input

    Example, of an endpoint:
      revelu extract https://HOST/predict --request '{"features": $rows}' \
      --answer '$.prediction' --dim-in 64 --key-env API_KEY -o found.onnx

    Example, of a pickle of scikit-learn, which is read and not run:
      revelu extract old.pkl -o new.onnx

    Exit codes:
      0  recovered and certified
      1  finished, not certified
      2  usage or bad input
      3  budget or time exhausted
      4  target unreachable, or it answered nonsense
    130  interrupted
    After 1 and 3, what was found, if anything, is still written, and said to be
    uncertified; it replaces no file without --force.  A network that is wrong at
    most inputs, by more than a tenth of what varies, was not found: it is written
    with --keep-uncertified alone.
    """
    from revelu.formats import check_writable
    from revelu.tasks.extract.extract import extract as recover
    from revelu.tasks.extract.read import is_to_be_read

    outputs = asking.reserve(output or [], check=check_writable)
    if head and not any(path.suffix.lower() == ".onnx" for path in outputs):
        raise InputError("--head writes the target's head to an .onnx file: give -o FILE.onnx")
    if is_to_be_read(asking.target, method, trust=asking.trust, labels=labels):
        return read(
            asking,
            outputs,
            against=against,
            box=box,
            inputs=inputs,
            checks=checks,
            head=head,
            keep_scaler=keep_scaler,
            like_input=like_input,
            force=force,
        )
    if keep_scaler or against is not None:
        raise InputError("--keep-scaler and --against are for files that are read, as a .pkl is")
    told = _widths(widths)
    rows = inputs_of(asking, inputs)
    with asking.opened(box) as oracle:
        frame = frame_of(oracle.target, asking.target) if like_input else None
        recovery = recover(
            oracle,
            method=method,
            polish=polish,
            seed=asking.seed,
            inputs=rows,
            checks=checks,
            elsewhere=elsewhere,
            labels=labels,
            widths=told,
            progress=asking.line,
        )
        recovery = asking.with_pictures(oracle, recovery, recovery.network)
        within = box_of(oracle)
    further = advice(
        recovery,
        method=method,
        budget=asking.budget,
        checks=checks,
        journaled=asking.journal is not None,
    )
    if not asking.was_interrupted:
        recovery = replace(recovery, evidence=(*recovery.evidence, *further))
    # A classifier's softmax is written as ever; other heads where they are asked for.
    behind = recovery.link if head or like_input or recovery.is_classifier else None
    found, errors = recovery.network, recovery.standard_errors
    save = None if found is None else save_network(found, behind, frame, errors, within)
    missing = _written(asking, outputs, recovery, save, force=force, keep=keep_uncertified)
    account = asking.account(asking.target, recovery, recovery.fields(), *missing)
    asking.show(account, rows_of(recovery))
    return of_status(recovery.status)


def _widths(given: str | None) -> list[int] | None:
    """Read whole numbers between commas."""
    if given is None:
        return None
    try:
        return [int(width) for width in given.split(",")]
    except ValueError:
        raise InputError(f"--widths {given}: whole numbers between commas") from None


def _wrong(recovery: "Recovery") -> str:
    """How wrong a network is that is no copy; empty of others, and where layers of it are exact."""
    from revelu.certify.certificate import is_no_copy

    said = recovery.certificate
    if recovery.first_layer is not None or said is None or not is_no_copy(said):
        return ""
    share = f"{1.0 - said.fraction_within:.0%}"
    return f"the network is wrong at {share} of the inputs, by {said.nrmse:.0%} of what varies"


def _written(
    asking: Asking,
    outputs: list[Path],
    recovery: "Recovery",
    save: Callable[[Path], None] | None,
    *,
    force: bool,
    keep: bool,
) -> list[str]:
    """Write what was found, and return what is to be said of it."""
    if recovery.network is None or save is None:
        return ["nothing to write: no network was found"] if outputs else []
    certified = bool(recovery.network.certified)
    if outputs and not (certified or keep) and (wrong := _wrong(recovery)):
        names = ", ".join(map(str, outputs))
        return [f"{names}: not written, for {wrong}; --keep-uncertified writes it"]
    asking.write(outputs, save, certified=certified, force=force)
    if asking.written and not certified:
        return [f"{', '.join(asking.written)}: NOT certified, as the file says"]
    return []
