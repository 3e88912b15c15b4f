"""Profiles: an endpoint in a TOML file."""

import dataclasses
import os
import tomllib
from pathlib import Path
from typing import Any

from revelu.adapters.endpoints.endpoint import Endpoint
from revelu.errors import FormatError, InputError


def read_profile(path: str | os.PathLike[str], **given: Any) -> Endpoint:
    """Read the endpoint that a file describes: a key for each argument of :class:`Endpoint`.

    Parameters
    ----------
    path : path
    **given : Any
        Arguments that stand in place of the file's.

    Raises
    ------
    FormatError
        If the file cannot be read.
    InputError
        If it describes no endpoint.
    """
    try:
        fields = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise FormatError(f"{path}: is no TOML: {error}") from None
    known = [field.name for field in dataclasses.fields(Endpoint)]
    if unknown := sorted(set(fields) - set(known)):
        raise InputError(f"{path}: has {unknown[0]}; an endpoint has {', '.join(known)}")
    fields = {**fields, **given}
    if "url" not in fields:
        raise InputError(f"{path}: has no url")
    # Files are named from the profile's folder.
    for name in ("client_cert", "client_key", "ca_cert"):
        if name in fields and name not in given:
            fields[name] = f"{Path(path).parent / fields[name]}"
    try:
        return Endpoint(**fields)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
