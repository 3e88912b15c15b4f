"""All tables: what each measures, its rows, runs, first seed and limit.

    python benchmarks/registry.py                 a line a table
    python benchmarks/registry.py signs polish    those of these scripts, row by row

``revelu bench`` has the names of the scripts; each script that is run by ``runner.py`` has its
tables at its top level.
"""

import argparse
import importlib
from collections.abc import Iterator
from types import ModuleType

from runner import Row, Table, chosen, parser_of

from revelu.cli.bench import TABLES


def tables_of(module: ModuleType) -> Iterator[Table]:
    """Yield the tables of a script, alone or in a tuple, in their order."""
    for value in vars(module).values():
        for table in value if isinstance(value, tuple) else (value,):
            if isinstance(table, Table):
                yield table


def rows_known(table: Table) -> list[Row]:
    """List the rows; none of a table whose rows follow from options of its own."""
    if callable(table.rows) and table.options is not None:
        return []
    return [row for _, row in chosen(table, parser_of(table).parse_args([]))]


def line(name: str, table: Table) -> str:
    """Tell of a table."""
    rows = rows_known(table)
    runs = sum(row.networks for row in rows)
    size = f"rows: {len(rows)}, runs: {runs:,}" if rows else "rows by its options"
    limit = "" if table.limit is None else f", at most {table.limit:g} s a run"
    about = table.about.splitlines()[0]
    return f"{name}, {table.mark}: {about}  {size}; seeds from {table.first_seed:,}{limit}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[[], *TABLES], metavar="NAME")
    wanted = parser.parse_args().names
    for name, script in TABLES.items():
        if wanted and name not in wanted:
            continue
        try:
            module = importlib.import_module(script.removesuffix(".py"))
        except ModuleNotFoundError as missing:
            print(f"{name}: needs {missing.name}")
            continue
        for table in tables_of(module):
            print(line(name, table))
            for row in rows_known(table) if wanted else ():
                print(f"    {row.name}: {row.networks}")


if __name__ == "__main__":
    main()
