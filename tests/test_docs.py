"""The documentation: its links lead somewhere, its lines are narrow, and all of its code runs.

Each page is a session: its commands and its Python run in order, in one folder, on small inputs under the names it uses.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import runpy
import sys
import tomllib
from pathlib import Path
from typing import Any

import pages
import pytest
from pages import PAGES, ROOT, SHELL, Block, blocks_of, commands_of, lay_out, name_of, without_blocks

from omokage import errors
from omokage.cli import app

WIDTH = 120

# Commands that are parsed, with all their options, but not run, and why.
PARSED = {
    "demo": "tests/test_examples.py runs it",
    "photo": "finds faces on a real photo and draws a crowd of 160; tests/test_group_photo.py runs it",
    "faces evaluate": "three recognizers look at real photos; tests/test_face_evaluation.py runs it",
    "faces train-encoder": "trains a network; tests/test_latent.py runs it",
    "faces train-attributes": "trains a network; tests/test_attribute.py runs it",
    "models get": "fetches 470 MB; tests/test_models.py runs it",
}
NETWORKS = ("latent", "--generator", "--encoder", "--attributes")  # options that need networks; tests/test_latent.py runs them
# The same command, made small: options that replace those of the page or are added to them.
SMALLER = {
    "faces": {"--size": "64", "--workers": "1"},
    "audit": {"--runs": "20"},
    "compare": {"--k": "3,10", "--map": "none,log+pca:5/none", "--model": "logistic", "--jobs": "1"},
    "evaluate": {"--model": "logistic", "--splits": "2"},
}


# ---------------------------------------------------------------------------------------------------- sessions


class Session:
    """A page, run from top to bottom."""

    def __init__(self, page: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.page, self.run, self.monkeypatch = page, run, monkeypatch
        self.names: dict[str, Any] = {"__name__": "__page__"}

    def take(self, block: Block) -> None:
        where = f"{name_of(self.page)}:{block.line}"
        if block.title is not None:
            self._write(block)
        elif block.language in SHELL:
            for words, shown in commands_of(block):
                self._command(words, shown, where)
        elif block.language == "python":
            exec(compile("\n" * block.line + block.text, where, "exec"), self.names)
        else:
            assert block.language in ("text", "json", "toml", "csv"), f"{where}: name the block's language"

    def _write(self, block: Block) -> None:
        """A file of the page; one of the package itself is imported under its own name instead."""
        path = Path(block.title or "")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
        if path.parts[:3] == ("src", "omokage", "cli"):
            self._add_command(path)
        elif path.parts[0] == "tests":
            self._test(block)
        else:
            self.monkeypatch.syspath_prepend(str(Path.cwd()))

    def _add_command(self, path: Path) -> None:
        """A new module of the command line, imported under the name it will have, and registered."""
        name = ".".join(path.with_suffix("").parts[1:])
        spec = importlib.util.spec_from_file_location(name, path.resolve())
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        self.monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        self.monkeypatch.setattr(app, "registered_commands", [*app.registered_commands])
        module.register(app)

    def _test(self, block: Block) -> None:
        """The tests that a page shows, called with the fixtures they ask for."""
        names: dict[str, Any] = {}
        exec(compile(block.text, str(block.title), "exec"), names)
        tests = [each for name, each in names.items() if name.startswith("test_")]
        assert tests
        pages.patients(Path("patients.csv"))
        fixtures = {"run": self.run, "patients": Path("patients.csv")}
        for test in tests:
            test(**{name: fixtures[name] for name in inspect.signature(test).parameters})

    def _command(self, words: list[str], shown: list[str], where: str) -> None:
        while re.fullmatch(r"[A-Z_]+=\S*", words[0]):
            assert words.pop(0) == "PYTHONPATH=.", where
        if words[0] == "omokage":
            self._omokage(words[1:], shown, where)
            return
        if words[0] == "python" and Path(words[1]).is_file():  # the page shows this script
            runpy.run_path(words[1], run_name="__main__")
            return
        check = {"python": _script, "pytest": _tests, "make": _target, "pip": _extra, "cat": _files,
                 "mkdocs": _nothing}  # fmt: skip
        assert words[0] in check, f"{where}: this test does not know the command {words[0]}"
        check[words[0]](words[1:], where)

    def _omokage(self, words: list[str], shown: list[str], where: str) -> None:
        parsed = parse(words)
        two = " ".join(words[:2])
        if any(two == each or words[0] == each for each in PARSED) or (words[0] == "faces" and set(words) & set(NETWORKS)):
            assert parsed, where
            return
        result = self.run(*smaller(words))
        assert result.code == 0, f"{where}: omokage {' '.join(words)}\n{result.out}{result.err}"
        printed = {_numberless(line) for line in result.out.splitlines()}
        for line in shown:
            assert line == "…" or _numberless(line) in printed, f"{where}: it does not print {line!r}\n{result.out}"


def _numberless(line: str) -> str:
    """A line of output whatever its figures: the stand-ins are smaller than what a page shows."""
    return re.sub(r"[0-9][0-9.,]*", "#", line).rstrip()


def smaller(words: list[str]) -> list[str]:
    """The command with small settings in place of those of the page."""
    words = list(words)
    for option, value in SMALLER.get(words[0], {}).items():
        if len(words) > 1 and words[1] in ("forget", "evaluate"):
            continue
        while option in words:
            at = words.index(option)
            del words[at : at + 2]
        words += [option, value]
    return words


def parse(words: list[str]) -> dict[str, Any]:
    """The values of a command's parameters; a wrong option or a missing one raises."""
    from typer.main import get_command

    command: Any = get_command(app)
    context = command.make_context("omokage", list(words), resilient_parsing=False)
    while hasattr(command, "commands"):
        rest = [*context._protected_args, *context.args]
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
    return dict(context.params)


def _script(words: list[str], where: str) -> None:
    """A script of this repository, with options that it knows."""
    script = ROOT / words[0]
    assert script.is_file(), f"{where}: there is no {words[0]}"
    for option in words[1:]:
        assert not option.startswith("-") or f'"{option}"' in script.read_text(encoding="utf-8"), f"{where}: {option}"


def _tests(words: list[str], where: str) -> None:
    for word in words:
        assert word.startswith("-") or (ROOT / word).exists(), f"{where}: there is no {word}"


def _target(words: list[str], where: str) -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert set(words) <= set(targets), f"{where}: the Makefile has {', '.join(targets)}"


def _extra(words: list[str], where: str) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert words[0] == "install", where
    for named in re.findall(r"\[([\w,]+)\]", " ".join(words)):
        assert set(named.split(",")) <= set(extras), f"{where}: the extras are {', '.join(extras)}"


def _files(words: list[str], where: str) -> None:
    for word in words:
        assert Path(word).is_file(), f"{where}: the commands before it do not write {word}"


def _nothing(words: list[str], where: str) -> None:
    pass


def _marked(page: Path) -> Any:
    return pytest.param(page, id=name_of(page))


@pytest.mark.filterwarnings("default::UserWarning")
@pytest.mark.parametrize("page", [_marked(page) for page in PAGES if blocks_of(page)])
def test_all_code_of_a_page_runs(page, run, tmp_path, monkeypatch, drawn_eyes):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("omokage.faces.crowd.drawn_faces", pages.drawn_people)
    lay_out(tmp_path, page)
    before = set(sys.modules)
    session = Session(page, run, monkeypatch)
    for block in blocks_of(page):
        session.take(block)
    for name in set(sys.modules) - before:  # modules that a page wrote must not serve the next one
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", None) or getattr(sys.modules[name], "__path__", "")):
            del sys.modules[name]


def test_commands_that_are_not_run_are_known():
    from typer.main import get_command

    top: Any = get_command(app)
    for words in map(str.split, PARSED):
        command = top
        for word in words:
            command = command.commands[word]
    with pytest.raises(BaseException, match=r"[Nn]o such option"):
        parse(["photo", "party.jpg", "-o", "x.jpg", "--nonsense"])


# ---------------------------------------------------------------------------------------------------- text and links


def slug(heading: str) -> str:
    """The anchor that Markdown makes of a heading."""
    words = re.sub(r"[^\w\s-]", "", re.sub(r"`|\*|\[([^\]]*)\]\([^)]*\)", r"\1", heading)).strip().lower()
    return re.sub(r"\s", "-", words)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_lines_are_narrow(page):
    """A row of a table cannot be broken; every other line can."""
    lines = page.read_text(encoding="utf-8").splitlines()
    wide = [f"{name_of(page)}:{i}" for i, line in enumerate(lines, 1) if len(line) >= WIDTH and not line.startswith("|")]
    assert not wide, wide


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_relative_links_and_anchors_resolve(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", without_blocks(page)):
        if re.match(r"\w+:", target):
            continue
        file, _, anchor = target.partition("#")
        found = (page.parent / file).resolve() if file else page
        if found == ROOT / "docs" / "reference" / "command-line.md":
            continue  # made when the site is built, which checks its links
        assert found.exists(), f"{name_of(page)} links to {target}"
        if anchor and found.suffix == ".md":
            headings = re.findall(r"^#+ (.+)$", without_blocks(found), re.M)
            assert anchor in map(slug, headings), f"{name_of(page)} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_scripts_named_in_the_text_exist(page):
    for code in re.findall(r"`((?:python|pytest) [^`]+)`", without_blocks(page)):
        words = code.split()
        {"python": _script, "pytest": _tests}[words[0]](words[1:], name_of(page))


def test_every_error_has_its_section():
    """What it means and what to do, under a heading with the name of the class."""
    text = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^#+ `(\w+)`\n(.*?)(?=^#|\Z)", text, re.M | re.S))
    classes = {name for name, each in inspect.getmembers(errors, inspect.isclass) if each.__module__ == errors.__name__}
    assert set(sections) == classes
    for name, section in sections.items():
        assert "**What to do.**" in section, name


def test_stand_ins_have_the_columns_that_the_pages_name(tmp_path):
    pages.otto(tmp_path / "otto.csv")
    header = (tmp_path / "otto.csv").read_text().splitlines()[0].split(",")
    assert header == ["id", *(f"feat_{j}" for j in range(1, 94)), "target"]
