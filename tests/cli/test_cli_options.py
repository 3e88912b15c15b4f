"""Options that say where and how a target is asked: the same in every command that has them."""

import typer

from revelu.cli.app import app

WHERE = ("like", "columns", "mean", "std", "keep_discrete", "box")
HOW = ("link", "labels")
ASKING = ("extract", "audit", "verify", "diagnose", "compare")


def options(command):
    found = typer.main.get_command(app).commands[command]
    return {parameter.name: parameter for parameter in found.params}


def test_where_and_how_a_target_is_asked_is_said_alike():
    first = options(ASKING[0])
    for command in ASKING[1:]:
        known = options(command)
        for name in (*WHERE, *HOW):
            mine, theirs = known[name], first[name]
            assert mine.opts == theirs.opts
            assert mine.help == theirs.help
            assert (mine.metavar, mine.default) == (theirs.metavar, theirs.default)
            assert mine.nargs == theirs.nargs
