"""``--report``: the account of a command as a page."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from revelu.errors import FormatError, InputError

if TYPE_CHECKING:
    from revelu.network import Network
    from revelu.network.span import Span
    from revelu.oracle import Oracle


class Reporting:
    """The page of a command, if one is wanted.

    Parameters
    ----------
    command : str
    path : pathlib.Path or None
        Where the page goes; None for none.
    taken : pathlib.Path, str or None
        Files that it must not replace.

    Raises
    ------
    FormatError
        If the path is no place for a page.
    MissingExtraError
        If what draws pages is not installed.
    """

    def __init__(self, command: str, path: Path | None, *taken: Path | str | None) -> None:
        self.command, self.path = command, path
        if path is None:
            return
        from revelu.report.page import check_installed

        if path.suffix.lower() not in {".html", ".htm"}:
            raise FormatError(f"{path}: a report ends in .html")
        if not path.parent.is_dir():
            raise FormatError(f"{path}: the folder {path.parent} does not exist")
        for other in taken:
            if other is not None and Path(other).resolve() == path.resolve():
                raise InputError(f"{path}: is in use already; write the report to another file")
        check_installed()

    def pictures(
        self, oracle: "Oracle", found: "Network | None", seed: int
    ) -> dict[str, Any] | None:
        """Ask for what the pictures of a target need; nothing without a page."""
        if self.path is None:
            return None
        from revelu.tasks.report_data import portrait

        return portrait(oracle, found, seed)

    def of_span(self, account: dict[str, Any], span: "Span") -> dict[str, Any]:
        """Write the page of a span; return the account that it shows."""
        if self.path is None:
            return account
        from revelu.tasks.report_data import of_span

        return self.finished(account, of_span(span))

    def of_network(self, account: dict[str, Any], network: "Network | None") -> dict[str, Any]:
        """Write the page of a network from samples; return the account that it shows."""
        if self.path is None or network is None:
            return self.finished(account)
        from revelu.tasks.report_data import of_network

        return self.finished(account, of_network(network))

    def finished(
        self, account: dict[str, Any], figures: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Write the page; return the account that it shows.

        Raises
        ------
        FormatError
            If it cannot be written.
        """
        if self.path is None:
            return account
        from revelu.formats.arrays import replace_file
        from revelu.report.page import page

        outputs = [*account.get("outputs", []), str(self.path)]
        account = {**account, "figures": figures or {}, "outputs": outputs}
        replace_file(self.path, page(self.command, account).encode("utf-8"))
        return account
