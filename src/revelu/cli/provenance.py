"""Where an account comes from: the command line, and the day."""

import json
import re
import shlex
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import typer

# A place for rows in a request, and what a variable or the kind of an authorisation looks like.
_STRING_OR_PLACE = re.compile(
    r'"(?:[^"\\]|\\.)*"|\$rows?(?:\[\d+\])?|\$objects\((?:[^()"]|"(?:[^"\\]|\\.)*")*\)'
)
# A member of $objects(A, B=1) that stays what is said.
_MEMBER = re.compile(r'("(?:[^"\\]|\\.)*"|[^",=()]+)=\s*("(?:[^"\\]|\\.)*"|[^",()]+)')
_VARIABLE = re.compile(r"\$(?:\w+|\{\w+\})")
_KINDS = {"apikey", "basic", "bearer", "digest", "negotiate", "token"}

# A character that no request has, in front of a place while that is read as a text.
_PLACED = "\ue000"

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
    if parameter.nargs > 1:
        return [option, *map(str, value)]
    values = value if parameter.multiple else [value]
    told = _TOLD.get(f"{parameter.name}", without_secrets)
    return [word for text in values for word in (option, told(f"{text}"))]


def without_secrets(text: str) -> str:
    """Return an address without its password and its query; other texts as they are."""
    if not text.lower().startswith(("http://", "https://")):
        return text
    parts = urlsplit(text)
    host = parts.netloc.rpartition("@")
    place = f"{_HIDDEN}@{host[2]}" if host[1] else host[2]
    query = _HIDDEN if parts.query else ""
    return urlunsplit((parts.scheme, place, parts.path, query, ""))


def _header(text: str) -> str:
    """What may be shown of a header: its name, variables, and what holds no secret."""
    from revelu.adapters.addresses import may_be_secret

    name, colon, value = (part.strip() for part in text.partition(":"))
    if not colon:  # which is a usage error; all of it may be the secret
        return _HIDDEN
    words = value.split()
    if may_be_secret(name, value):
        words = [w if _VARIABLE.fullmatch(w) or w.lower() in _KINDS else _HIDDEN for w in words]
    return f"{name}: {' '.join(words)}"


def _request(text: str) -> str:
    """What may be shown of a request: all but the members that may be secret."""
    places: list[str] = []

    def mark(found: re.Match[str]) -> str:
        if found[0][0] == '"':
            return found[0]
        places.append(_MEMBER.sub(_member, found[0]))
        return f'"{_PLACED}{len(places) - 1}"'

    marked = _STRING_OR_PLACE.sub(mark, text)
    try:
        request = json.loads(marked)
    except (ValueError, RecursionError):
        return _HIDDEN
    told = _without_secret_members(request, is_secret=False)
    if told == request and _PLACED not in text and all(place in text for place in places):
        return text
    shown = json.dumps(told, ensure_ascii=False)
    return re.sub(f'"{_PLACED}(\\d+)"', lambda found: places[int(found[1])], shown)


def _member(found: re.Match[str]) -> str:
    """A member of an object that stays, without what may be secret."""
    from revelu.adapters.addresses import may_be_secret

    name, value = (part.strip().strip('"') for part in found.groups())
    return f'{found[1]}="{_HIDDEN}"' if may_be_secret(name, value) else found[0]


def _without_secret_members(value: Any, *, is_secret: bool) -> Any:
    """A request, with a mark in place of texts and numbers that go by a telling name."""
    from revelu.adapters.addresses import may_be_secret

    if isinstance(value, str) and value.startswith(_PLACED):
        return value
    if isinstance(value, dict | list):
        members = value.values() if isinstance(value, dict) else value
        # A name may stand beside what goes by it: {"name": "token", "value": "..."}.
        is_secret |= any(may_be_secret(text, "") for text in members if isinstance(text, str))
    if isinstance(value, dict):
        return {
            name: _without_secret_members(member, is_secret=is_secret or may_be_secret(name, ""))
            for name, member in value.items()
        }
    if isinstance(value, list):
        return [_without_secret_members(member, is_secret=is_secret) for member in value]
    if isinstance(value, str):
        return _HIDDEN if is_secret or may_be_secret("", value) else value
    return _HIDDEN if is_secret and value is not None else value


_TOLD = {"header": _header, "request": _request}
