"""``revelu learn --halfspaces``: rules behind labels, with the errors of each."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from revelu.cli.command import Learning
from revelu.cli.exit_codes import ExitCode, of_status
from revelu.errors import FormatError
from revelu.report.sections import halfspaces_table
from revelu.status import Status


def learn_halfspaces(
    data: Path,
    outputs: Iterable[Path],
    combine: str,
    n_halfspaces: int | None,
    learning: Learning,
    columns: tuple[Sequence[str], Sequence[str]] = ((), ()),
    *,
    force: bool = False,
) -> ExitCode:
    """Recover halfspaces from a file of labelled samples, write and print them.

    Parameters
    ----------
    columns : (sequence of str, sequence of str)
        Of labels, and those that are to be dropped.
    force : bool
        Let what is not certified replace a file, too.
    """
    from revelu.formats.samples import find_shards
    from revelu.tasks.rules.halfspaces import recover_halfspaces

    paths = learning.reserve(outputs, {data: "holds the samples"}, _check)
    with learning.timed():
        found = recover_halfspaces(
            X=partial(find_shards, data, *columns),
            combine=combine,
            seed=learning.seed,
            n_halfspaces=n_halfspaces,
            progress=learning.line,
        )
    certified = found.status is Status.RECOVERED
    unwritten = []
    if len(found.normals):
        learning.write(paths, found.save, certified=certified, force=force)
    else:
        unwritten = [_NOTHING.format(path=path) for path in paths]
    own = {
        **found.fields(),
        "samples": found.details.get("n_samples"),
        "rare": found.details.get("n_rare"),
    }
    account = learning.account(f"{data}", found, own, *unwritten)
    rows = [] if found.certificate is None else [("certificate", found.certificate.statement)]
    rows.append(("samples", f"{own['samples']:,}, {own['rare']:,} on the rare side"))
    if found.wrong_labels is not None:
        rows.append(("wrong labels", _WRONG.format(*found.wrong_labels)))
    learning.show(account, halfspaces_table(account, most=12), rows)
    return of_status(found.status)


_NOTHING = "{path}: is not written, as no halfspace was found"
_WRONG = "{:.2%} of those on the other side, {:.2%} of those on the rare side"


def _check(path: Path) -> None:
    from revelu.formats import check_writable

    if path.suffix.lower() != ".npz":
        raise FormatError(f"{path}: halfspaces are written to an .npz archive")
    check_writable(path)
