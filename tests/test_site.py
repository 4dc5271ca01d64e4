"""The documentation as a site: it builds strictly, has every page, and fetches nothing from elsewhere when it is read."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; every warning of the build is an error (not with --quiet, which stops counting them)."""
    for package in ("mkdocs", "material", "mkdocstrings"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed; it is one of the dev extras")
    target = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


LOADED = re.compile(r"<(?:script|img|source|iframe|embed|video|audio)\b[^>]*?\b(?:src|srcset)=[\"']?([^\"'\s>]+)")
LINKED = re.compile(r"<link\b[^>]*>")


def loaded_from(html: str) -> list[str]:
    """Addresses that a browser fetches to show a page: scripts, pictures, frames, styles, fonts, icons."""
    styles = [tag for tag in LINKED.findall(html) if not re.search(r"rel=[\"']?(?:canonical|next|prev|alternate)", tag)]
    hrefs = [href for tag in styles for href in re.findall(r"href=[\"']?([^\"'\s>]+)", tag)]
    return LOADED.findall(html) + hrefs + re.findall(r"(?:url\(|@import\s+)[\"']?([^\"')\s]+)", html)


def test_what_a_browser_fetches_is_found():
    html = (
        "<script src=https://a/b.js></script><link rel='stylesheet' href=\"//c/d.css\"><style>x{background:url(http://e)}</style>"
    )
    assert loaded_from(html) == ["https://a/b.js", "//c/d.css", "http://e"]


def test_nothing_is_fetched_from_elsewhere(site):
    pages_built = list(site.rglob("*.html"))
    assert len(pages_built) > 30
    for path in [*pages_built, *site.rglob("*.css")]:
        outside = [each for each in loaded_from(path.read_text(encoding="utf-8")) if re.match(r"(?:https?:)?//", each)]
        assert not outside, f"{path.relative_to(site)} loads {outside}"


def test_the_site_has_every_page_and_the_command_line(site):
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / page.relative_to(ROOT / "docs")).with_suffix(".html").is_file()
    commands = (site / "reference" / "command-line.html").read_text(encoding="utf-8")
    for words in ("omokage table", "omokage faces anonymize", "--l-diversity", "omokage models list"):
        assert words in commands
    assert ":class:" not in (site / "reference" / "anonymizing.html").read_text(encoding="utf-8")


def test_search_works_without_a_server(site):
    """The index is a script, which a page on the disk may load, and our frame stands in for the worker it may not start."""
    assert (site / "search" / "search_index.js").read_text(encoding="utf-8").startswith("var __index = ")
    assert "site/iframe-worker.js" in (site / "index.html").read_text(encoding="utf-8")
    assert (site / "site" / "iframe-worker.js").is_file()
    assert not (site / "site" / "hooks.py").exists()
