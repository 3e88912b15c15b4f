"""``revelu extract`` of a file in which the weights lie open: it is read, and nothing is asked."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from revelu.cli.command import Asking
from revelu.cli.domains import inputs_of
from revelu.cli.exit_codes import ExitCode, of_status
from revelu.cli.networks import frame_of
from revelu.report.summary import rows_of

if TYPE_CHECKING:
    from revelu.adapters.open_models import OpenTarget
    from revelu.network import Network
    from revelu.recovery import Recovery


def read(
    asking: Asking,
    outputs: list[Path],
    *,
    against: str | None,
    box: tuple[float, float] | None,
    inputs: Path | None,
    checks: int,
    head: bool,
    keep_scaler: bool,
    like_input: bool,
    force: bool,
) -> ExitCode:
    """Read a file, certify it against a target where one is given, and write it."""
    from revelu.adapters.open_models import open_read
    from revelu.adapters.ports import Ports
    from revelu.tasks.extract.read import as_read, read_recovery

    file = asking.target
    with asking.timed():
        opened = open_read(Path(file), asking.dim_in, Ports(activation=asking.activation))
    if like_input:  # which it is written with in any case, where it has them
        frame_of(opened, file)
    if against is None:
        recovery = read_recovery(opened)
        asking.picture(recovery.network)
    else:
        asking.target = against
        found = _certified(asking, opened, box, inputs, checks)
        recovery = as_read(found, opened)
    if recovery.network is not None:
        written = head or recovery.is_classifier
        save = save_read(opened, recovery.network, head=written, keep_scaler=keep_scaler)
        known = recovery.certified is not False
        asking.write(outputs, save, certified=known, force=force)
    account = asking.account(asking.target, recovery, recovery.fields())
    asked = [] if against is None else [("asked", asking.target)]
    asking.show({**account, "file": file}, [*asked, *rows_of(recovery)])
    return of_status(recovery.status)


def _certified(
    asking: Asking,
    opened: "OpenTarget",
    box: tuple[float, float] | None,
    inputs: Path | None,
    checks: int,
) -> "Recovery":
    """Ask the target that a file is said to be, where the file's own scaling says it is used."""
    from revelu.tasks.verify import verify

    rows = inputs_of(asking, inputs)
    network = opened.network
    with asking.opened(box, network.dim_in, opened.suggested_domain) as oracle:
        found = verify(
            network, oracle, seed=asking.seed, checks=checks, inputs=rows, progress=asking.line
        )
        return asking.with_pictures(oracle, replace(found, network=network), network)


def save_read(
    opened: "OpenTarget", network: "Network", *, head: bool, keep_scaler: bool
) -> Callable[[Path], None]:
    """Return what writes a network that was read, with its names."""

    def save(path: Path) -> None:
        from revelu import formats
        from revelu.network import LayeredNetwork
        from revelu.numerics.links import NONE

        model, link = opened.model, opened.link if head else NONE
        if path.suffix.lower() != ".onnx":
            network.save(path)
            return
        kept = formats.Kept(model.words, model.labels, model.columns)
        if isinstance(network, LayeredNetwork):
            network.save(path, head=link, frame=model.frame, kept=kept)
            return
        weights, biases = list(network.weights), list(network.biases)
        if keep_scaler and model.scaling is not None:
            kept = replace(kept, scaling=model.scaling)
            weights[0], biases[0] = model.nodes[0].arrays
        formats.save_arrays(
            path,
            weights,
            biases,
            network.skip,
            "float64",
            link,
            model.frame,
            network.certified,
            kept=kept,
        )

    return save
