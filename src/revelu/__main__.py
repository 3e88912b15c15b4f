"""The command line as ``python -m revelu``."""

from revelu.cli import main

if __name__ == "__main__":
    main()
