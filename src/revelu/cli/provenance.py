"""Where an account comes from: the command line, and the day."""

import shlex
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import typer

# Options whose values may hold secrets: headers, and bodies of requests.
_SECRET = ("header", "request")

_HIDDEN = "***"


def today() -> str:
    """Return the day, of UTC."""
    return f"{datetime.now(UTC).date()}"


def command_line(context: typer.Context) -> str:
    """Return the command as it was given, without what may be secret."""
    words = ["revelu", f"{context.info_name}"]
    for parameter in context.command.params:
        name = f"{parameter.name}"
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            words += _words(parameter, context.params[name])
    return shlex.join(words)


def _words(parameter: Any, value: Any) -> list[str]:
    """A parameter as it is written."""
    if parameter.param_type_name == "argument":
        given = value if isinstance(value, list | tuple) else [value]
        return [without_secrets(f"{word}") for word in given]
    option = max(parameter.opts, key=len)
    if isinstance(value, bool):
        return [option]
    if getattr(parameter, "count", False):
        return [option] * int(value)
    if parameter.name in _SECRET:
        values = value if isinstance(value, list | tuple) else [value]
        return [word for text in values for word in (option, _hidden(f"{parameter.name}", text))]
    if parameter.nargs > 1:
        return [option, *map(str, value)]
    values = value if parameter.multiple else [value]
    return [word for text in values for word in (option, without_secrets(f"{text}"))]


def _hidden(name: str, text: str) -> str:
    """What may be shown of a text that may hold a secret: a header's name."""
    return f"{text.partition(':')[0].strip()}: {_HIDDEN}" if name == "header" else _HIDDEN


def without_secrets(text: str) -> str:
    """Return an address without its password and its query; other texts as they are."""
    if not text.startswith(("http://", "https://")):
        return text
    parts = urlsplit(text)
    host = parts.netloc.rpartition("@")
    place = f"{_HIDDEN}@{host[2]}" if host[1] else host[2]
    query = _HIDDEN if parts.query else ""
    return urlunsplit((parts.scheme, place, parts.path, query, ""))
