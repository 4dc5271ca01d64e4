"""Text that comes from outside (column names, file names, a certificate), made safe to show on a terminal or a page."""

from __future__ import annotations

import unicodedata

LONGEST = 500  # characters of one piece of outside text that are shown


def plain(text: str, longest: int | None = None) -> str:
    """``text`` on one line, without control characters, escape sequences and marks that change the direction of writing.

    Examples
    --------
    >>> plain("job\\x1b[31m\\nname\\u202e")
    'job?[31m name?'
    """
    shown = "".join(" " if c in "\n\r\t" else c if _harmless(c) else "?" for c in text)
    if longest is not None and len(shown) > longest:
        shown = shown[: longest - 1] + "…"
    return shown


def _harmless(character: str) -> bool:
    if " " <= character <= "~":
        return True
    return unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
