"""Every message that Omokage raises is asked for by some test."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

from omokage import errors

TESTS = Path(__file__).parent
SOURCE = Path(errors.__file__).parent
KINDS = {name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, errors.OmokageError)}
LEAST = {3: 12, 4: 14}  # letters of a distinctive part of so many words: not all of them are short
SHORT = 6
MARKS = ".,:;()'\""


def constant(node: ast.expr) -> list[str]:
    """The parts of a message that are always the same."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        return [part for value in node.values for part in (constant(value) if isinstance(value, ast.Constant) else ["\0"])]
    if isinstance(node, ast.BinOp):
        return constant(node.left) + constant(node.right)
    if isinstance(node, ast.IfExp):
        return constant(node.body) + constant(node.orelse)
    return []


def messages_of(source: str) -> Iterator[str]:
    """The messages that are raised in a module, with … for what changes."""
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args):
            continue
        kind = node.exc.func.id if isinstance(node.exc.func, ast.Name) else ""
        message = "".join(constant(node.exc.args[0])).replace("\0", "…")
        if kind in KINDS and message.strip("… "):
            yield message


def parts(text: str) -> set[str]:
    """Three or four words in a row, without the marks at their ends; nothing goes over what changes, and short ones are whole."""
    found = set()
    for piece in text.split("…"):
        words = piece.split()
        for number, letters in LEAST.items():
            several = (" ".join(words[i : i + number]).strip(MARKS) for i in range(len(words) - number + 1))
            found |= {each for each in several if len(each) >= letters}
    return found or {piece.strip().strip(MARKS) for piece in text.split("…") if len(piece.strip()) >= SHORT}


@lru_cache
def asked_for() -> str:
    """All texts in the tests but docstrings, as patterns are read: without their backslashes."""
    texts = []
    for path in TESTS.glob("test_*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                texts.append(re.sub(r"\s+", " ", node.value.replace("\\", "")))
    return "\n".join(texts)


def is_asked_for(message: str) -> bool:
    return any(part in asked_for() for part in parts(message))


def by_module() -> dict[str, set[str]]:
    """Of each module, the messages that no test asks for."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        found[name] = {each for each in messages_of(path.read_text(encoding="utf-8")) if not is_asked_for(each)}
    return {name: messages for name, messages in found.items() if messages}


def test_every_message_is_asked_for():
    assert by_module() == {}, "write a test that asks for these"


def test_the_search_finds_the_messages():
    """So that nothing is wrong with the search itself."""
    total = sum(len(list(messages_of(path.read_text(encoding="utf-8")))) for path in SOURCE.rglob("*.py"))
    assert total > 400


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("raise InputError(f'there are {n} rows, but {m} are needed')", "there are … rows, but … are needed"),
        ("raise InputError('the first part, ' f'then {x}')", "the first part, then …"),
        ("raise ValueError('not one of ours at all')", None),
        ("raise InputError(text)", None),
    ],
)
def test_messages_are_read_from_the_source(source, message):
    assert list(messages_of(source)) == ([] if message is None else [message])


def test_a_message_that_nobody_asks_for_is_noticed():
    unheard = " ".join(["unheard", "of", "message" + "s", "there"][::-1])
    assert not is_asked_for(unheard)
    assert is_asked_for("its arrays have different numbers of rows")
    assert parts("… is a folder, but a file is needed") >= {"file is needed", "is a folder, but"}
    assert parts("… is empty") == {"is empty"}
