"""Options that say where and how a target is asked: the same in every command that has them."""

import typer

from revelu.cli.app import app

WHERE = ("like", "columns", "mean", "std", "keep_discrete", "box")
HOW = ("link", "labels")
ASKING = ("extract", "audit", "verify", "diagnose")
# A network is verified by numbers, and a diagnosis follows axes to where they end.
WITHOUT = {("verify", "labels"), ("diagnose", "labels"), ("diagnose", "box")}


def options(command):
    found = typer.main.get_command(app).commands[command]
    return {parameter.name: parameter for parameter in found.params}


def test_where_and_how_a_target_is_asked_is_said_alike():
    first = options(ASKING[0])
    for command in ASKING[1:]:
        known = options(command)
        missing = {(command, name) for name in (*WHERE, *HOW) if name not in known}
        assert missing == {pair for pair in WITHOUT if pair[0] == command}
        for name in {*WHERE, *HOW} & known.keys():
            mine, theirs = known[name], first[name]
            assert mine.opts == theirs.opts
            assert mine.help == theirs.help
            assert (mine.metavar, mine.default) == (theirs.metavar, theirs.default)
            assert mine.nargs == theirs.nargs


def test_what_compares_files_has_none_of_its_own():
    shared = {*WHERE, *HOW} & options("compare").keys()
    first = options("extract")
    assert all(options("compare")[name].help == first[name].help for name in shared)
