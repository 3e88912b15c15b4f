"""A hook of MkDocs: formulas become MathML, which browsers draw without a script."""

import html
import re
from typing import Any

from latex2mathml.converter import convert

# What pymdownx.arithmatex leaves where a formula stood.
_INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
_BLOCK = re.compile(r'<div class="arithmatex">\\\[(.*?)\\\]</div>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """Replace the formulas of a page."""
    content = _BLOCK.sub(lambda found: convert(_tex(found), display="block"), content)
    return _INLINE.sub(lambda found: convert(_tex(found)), content)


def _tex(found: re.Match[str]) -> str:
    return html.unescape(found[1]).strip()
