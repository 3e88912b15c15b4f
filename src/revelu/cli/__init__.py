"""The command line: one file a command."""

from revelu.cli.signals import quit_on_interrupts

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit with one of :class:`revelu.cli.exit_codes.ExitCode`."""
    quit_on_interrupts()
    # Importing the commands takes a second, which an interrupt does not wait for.
    from revelu.cli.app import run

    run()
