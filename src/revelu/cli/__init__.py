"""The command line: one file a command."""

from revelu.cli.app import main

__all__ = ["main"]
