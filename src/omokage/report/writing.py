"""Where reports go: pages and figures replace earlier ones of ours, and nothing else."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..base.files import require_file, write_new
from ..errors import MissingExtra, OutputError

GENERATOR = '<meta name="generator" content="omokage'  # in the head of every page
FORMAT = "omokage-evaluation/2"
EARLIER = ("omokage-evaluation/1",)  # replaced, but no longer written


def require_report() -> None:
    """Refuse early where pages cannot be made, before the work that would go into one."""
    if not all(find_spec(name) for name in ("jinja2", "markupsafe", "matplotlib")):
        raise MissingExtra("support for reports", "report")


def require_report_places(html: Path | None, results: Path | None = None, release: Path | None = None) -> None:
    """Refuse, before any work is done, a page that cannot be made and places that must not be written to."""
    if html is not None:
        require_report()
    for path, ours in ((html, _is_page), (results, _is_results)):
        if path is None:
            continue
        if release is not None and release.resolve() in path.resolve().parents:
            raise OutputError(f"{path} lies in the release, which must hold nothing else: choose another place")
        require_file(path, overwrite=True, ours=ours)


def write_page(text: str, path: str | Path) -> Path:
    """Write a page whole or not at all; an earlier page of ours is replaced."""
    write_new(path, text.encode(), overwrite=True, ours=_is_page)
    return Path(path)


def write_results(text: str, path: str | Path) -> Path:
    """Write the figures of an evaluation, given as JSON, whole or not at all; earlier ones are replaced."""
    figures = json.loads(text, parse_constant=_nothing)
    content = json.dumps({"format": FORMAT, **figures}, indent=2, ensure_ascii=False) + "\n"
    write_new(path, content.encode(), overwrite=True, ours=_is_results)
    return Path(path)


def _nothing(_constant: str) -> Any:
    """NaN and Infinity, which JSON does not have."""
    return None


def _is_page(content: bytes) -> bool:
    return GENERATOR.encode() in content[:1000]


def _is_results(content: bytes) -> bool:
    try:
        found = json.loads(content)
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("format") in (FORMAT, *EARLIER)
