"""``revelu probe`` says what a service answers, and the command that it names works."""

import pytest
from targets_probe import SERVICES, SHAPES, tried
from typer.testing import CliRunner

from revelu.cli.app import app


def run(arguments):
    done = CliRunner().invoke(app, list(arguments))
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize("service", [*SHAPES, *SERVICES], ids=lambda service: service.name)
def test_command_that_a_probe_names_works(service):
    found = tried(service, run)
    assert found.outcome == ("named" if service.words else "recovered")
    assert found.seen
    if not service.words:
        assert found.following.startswith("revelu extract ")
