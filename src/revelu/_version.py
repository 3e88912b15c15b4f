"""The version, read by the build and by ``revelu --version``."""

__version__ = "0.1.0"
