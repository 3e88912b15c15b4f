"""``revelu learn``: recover the network behind samples, verify it, write it."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from revelu.cli.command import Learning, command
from revelu.cli.exit_codes import ExitCode, of_status
from revelu.cli.networks import save_network
from revelu.cli.options import Force, LinkName, Outputs, optional
from revelu.report.summary import rows_of
from revelu.status import Status

if TYPE_CHECKING:
    from revelu.recovery import Recovery


@command
def learn(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="Samples: an .npz file with X and y, a .csv or .parquet with a column y, or a "
            "folder of such files.",
            show_default=False,
        ),
    ],
    output: Outputs = None,
    force: Force = False,
    neurons: Annotated[
        int | None,
        optional(
            "Number of neurons, or of halfspaces, where it is known; default: it is found.",
            min=1,
            metavar="K",
        ),
    ] = None,
    target: Annotated[
        str | None,
        optional(
            "Columns that hold the answers; several are probabilities of classes; default: y.",
            metavar="A,B",
        ),
    ] = None,
    drop: Annotated[
        str | None, optional("Columns to leave out, beside the answers.", metavar="C,D")
    ] = None,
    order: Annotated[
        str, typer.Option(help="1 for at most as many neurons as inputs, 2 for more; auto chooses.")
    ] = "auto",
    link: LinkName = "auto",
    max_seconds: Annotated[
        float | None,
        optional(
            "Seconds after which the search ends; the best network so far is written, uncertified."
        ),
    ] = None,
    halfspaces: Annotated[
        str | None,
        optional(
            "Find halfspaces instead: y is 1 where any of them holds (or), or "
            "where all hold (and); "
            "written to .npz.",
            metavar="or|and",
        ),
    ] = None,
    workers: Annotated[
        int | None, optional("Threads that read files and sum over them; default: 1.", metavar="N")
    ] = None,
    dask: Annotated[
        str | None,
        optional("Address of a Dask cluster that does so in place of threads.", metavar="ADDRESS"),
    ] = None,
    *,
    learning: Learning,
) -> ExitCode:
    """Recover the network behind samples (x, f(x)), without a query.

    Example:
      revelu learn measured.csv --target y -o learned.onnx

    Exit codes:
      0  recovered, and samples kept apart agree
      1  finished, not certified
      2  usage or bad input
      3  time exhausted
    130  interrupted
    After 1, 3 and 130, what was found is still written, and said to be uncertified; it
    replaces no file without --force.
    """
    if halfspaces is not None:
        from revelu.cli.halfspaces import learn_halfspaces

        columns = _columns(target), _columns(drop)
        paths = output or []
        return learn_halfspaces(data, paths, halfspaces, neurons, learning, columns, force=force)
    from revelu.adapters.executors import executor
    from revelu.formats import check_writable

    outputs = learning.reserve(output or [], {data: "holds the samples"}, check_writable)
    with learning.timed(), executor(workers, dask) as pool:
        recovery, ended = _recovered(
            data,
            n_neurons=neurons,
            order=order,
            seed=learning.seed,
            executor=pool,
            progress=learning.line,
            target=_columns(target),
            drop=_columns(drop),
            link=link,
            max_seconds=max_seconds,
        )
    is_certified = recovery.status is Status.RECOVERED
    if recovery.network is not None:
        save = save_network(recovery.network, recovery.link)
        learning.write(outputs, save, certified=is_certified, force=force)
        learning.picture(recovery.network)
    account = learning.account(f"{data}", recovery, _fields_of(recovery))
    if ended is not None:
        account["status"] = "interrupted"
    learning.show(account, _rows_of(recovery))
    if ended is not None:
        raise ended
    return of_status(recovery.status)


def _recovered(data: Path, **options: Any) -> tuple["Recovery", KeyboardInterrupt | None]:
    """What was learned; with the interrupt, what was learned until then."""
    from revelu.recovery import Recovery
    from revelu.tasks.learn.learn import learn as recover
    from revelu.tasks.partial import partial_of

    try:
        return recover(data, **options), None
    except KeyboardInterrupt as error:
        partial = partial_of(error)
        if not isinstance(partial, Recovery):
            raise
        return partial, error


def _columns(given: str | None) -> list[str]:
    return [name.strip() for name in (given or "").split(",") if name.strip()]


def _fields_of(recovery: "Recovery") -> dict[str, Any]:
    """What an account says of what was learned.

    The fields of an extraction, and ``samples``, ``exact``, ``noise``, its ``law``, each neuron's
    ``likelihood_ratios``, ``standard_errors``
    (``W``, ``b``, ``A``, ``c`` and, with a skip, ``V``) and ``sign_patterns``.
    """
    details = recovery.details
    errors = details.get("standard_errors")
    bars = None
    if errors is not None:
        bars = {name: value.tolist() for name, value in vars(errors).items() if value is not None}
    return {
        **recovery.fields(),
        "samples": details.get("n_samples"),
        "exact": details.get("exact"),
        "noise": details.get("noise"),
        "law": _law(details.get("law")),
        "likelihood_ratios": details.get("likelihood_ratios"),
        "standard_errors": bars,
        "sign_patterns": [signs.tolist() for signs in details.get("sign_patterns", [])],
    }


def _law(found: dict[str, Any] | None) -> dict[str, Any] | None:
    """The law of the noise, as JSON has it: no infinite number."""
    if found is None:
        return None
    return found | {"tail": found["tail"] if math.isfinite(found["tail"]) else None}


def _rows_of(recovery: "Recovery") -> list[tuple[str, str]]:
    """What people are told of it: samples instead of queries, error bars."""
    details = recovery.details
    rows = [*rows_of(recovery), ("samples", f"{details.get('n_samples', 0):,}")]
    if not details.get("exact", True):
        rows.append(("noise", f"{details['noise']:.2g}"))
    errors = details.get("standard_errors")
    if errors is not None and errors.b.size:
        rows.append(("error bars", f"weights {errors.W.max():.1g}, biases {errors.b.max():.1g}"))
    return rows
