"""What a server that refuses says: JSON of several protocols, a page of HTML, plain text."""

import json
import re
from typing import Any

from revelu.adapters.credentials import shown
from revelu.adapters.open_inference import ProtocolError, read_object

# Of a request with too many rows; "the input exceeds" is of one of its numbers.
_TOO_MANY = re.compile(
    r"(?=.*\b(at most|max(imum)?|limit(ed)?|too (many|large|long)|exceed(s|ed)?|more than|up to)\b)"
    r".*\b(rows?|instances?|items?|batch(es)?|records?|examples?|samples?|entries|elements)\b",
    re.IGNORECASE | re.DOTALL,
)


def says_too_many(said: str) -> bool:
    """Whether a refusal is of a request with too many rows."""
    return _TOO_MANY.search(said) is not None


def error_of(content: bytes) -> str:
    """Return what a server says went wrong, by the content of its answer."""
    try:
        found = read_object(content)
        # As protocols call it; else all that there is.
        said = next((found[key] for key in ("error", "message", "detail") if found.get(key)), "")
    except ProtocolError:
        said = page_title(content) or content.decode(errors="replace")
    if isinstance(said, list) and said:
        more = f" (and {len(said) - 1} more)" if len(said) > 1 else ""
        return f"{shown(_complaint(said[0]))}{more}"
    return shown(said) or "it does not say why"


def first_complaint(content: bytes) -> bytes:
    """Return an answer that lists what is wrong with its first complaint alone."""
    try:
        found = read_object(content)
    except ProtocolError:
        return content
    cut = {
        name: [part[0], f"and {len(part) - 1} more"]
        if isinstance(part, list) and len(part) > 1
        else part
        for name, part in found.items()
    }
    return content if cut == found else json.dumps(cut).encode()


def _complaint(said: Any) -> Any:
    """What is wrong and where, of a complaint as FastAPI writes it; others as they are."""
    if isinstance(said, dict) and said.get("msg"):
        where = said.get("loc")
        parts = where if isinstance(where, list) else []
        return ": ".join(filter(None, [".".join(map(str, parts)), str(said["msg"])]))
    return said


def page_title(content: bytes) -> str:
    """Return what a page of HTML is called; nothing, where the content is none."""
    if content.lstrip()[:1] != b"<":
        return ""
    text = content[:65_536].decode(errors="replace")
    found = re.search(r"<(title|h1)[^>]*>(.*?)</\1>", text, re.IGNORECASE | re.DOTALL)
    return found[2].strip() if found is not None else text
