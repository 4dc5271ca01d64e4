"""Documentation pages as sessions: their code blocks, and small inputs under the names that the pages use."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```[ ]*$", re.M | re.S)
TITLE = re.compile(r'title="([^"]*)"')
SHELL = ("sh", "console")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the file it is titled with, its text, and the line it starts at."""

    language: str
    title: str | None
    text: str
    line: int


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks_of(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    content = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(content):
        language, _, rest = match["info"].strip().partition(" ")
        title = TITLE.search(rest)
        text = re.sub(rf"^{match['indent']}", "", match["text"], flags=re.M)
        found.append(Block(language, title[1] if title else None, text, content.count("\n", 0, match.start()) + 1))
    return found


def without_blocks(page: Path) -> str:
    """The prose of a page, with as many lines."""
    return FENCE.sub(lambda match: "\n" * match[0].count("\n"), page.read_text(encoding="utf-8"))


def commands_of(block: Block) -> Iterator[tuple[list[str], list[str]]]:
    """The commands of a shell block as words; in a console block those after a prompt, with the lines they are said to print."""
    text = block.text.replace("\\\n", " ")
    if block.language == "console":
        for session in re.split(r"^\$ ", text, flags=re.M)[1:]:
            command, _, shown = session.partition("\n")
            yield shlex.split(command, comments=True), shown.splitlines()
        return
    for line in text.splitlines():
        if words := shlex.split(line, comments=True):
            yield words, []


# ---------------------------------------------------------------------------------------------------- stand-ins


def otto(path: Path, rows: int = 200) -> None:
    """Counts with the column names of Otto: 93 features and a target of nine classes."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 9, rows)
    rates = rng.gamma(0.3, 2.0, (9, 93))
    counts = rng.poisson(rates[kind])
    frame = pl.DataFrame({"id": np.arange(1, rows + 1), **{f"feat_{j + 1}": counts[:, j] for j in range(93)}})
    frame.with_columns(pl.Series("target", [f"Class_{c + 1}" for c in kind])).write_csv(path)


ADULT = ROOT / "experiments" / "adult.schema.toml"
ADULT_COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race", "sex",
    "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
)  # fmt: skip


def adult_frame(rows: int) -> pl.DataFrame:
    """People with the columns of the Adult census table, drawn from its public schema."""
    rng = np.random.default_rng(1)
    schema = tomllib.loads(ADULT.read_text(encoding="utf-8"))
    drawn: dict[str, object] = {
        "fnlwgt": rng.integers(20_000, 400_000, rows),
        "education-num": rng.integers(1, 17, rows),
        "income": rng.choice(schema["target"]["classes"], rows),
    }
    for name, column in schema["columns"].items():
        if "categories" in column:
            drawn[name] = rng.choice(column["categories"], rows)
        else:
            drawn[name] = rng.choice([column["low"], *column["cuts"]], rows)
    return pl.DataFrame(drawn).select(ADULT_COLUMNS)


def party(path: Path) -> None:
    """A picture without people, for commands that are only parsed."""
    from PIL import Image

    Image.new("RGB", (64, 48), (90, 120, 160)).save(path)


def photos(path: Path) -> None:
    from drawn import draw_photos

    draw_photos(path, 9)


def drawn_people(number: int, progress: object) -> Path:
    """In place of the generator's people: a folder of people drawn by hand, under the same names."""
    from drawn import draw_photos

    for i, path in enumerate(draw_photos(Path("people").absolute(), number)):
        path.rename(path.with_name(f"{i:04d}.png"))
    return Path("people").absolute()


def patients(path: Path) -> None:
    from conftest import PATIENTS

    path.write_text(PATIENTS)


STAND_INS = {
    "patients.csv": patients,
    "otto.csv": otto,
    "adult.csv": lambda path: adult_frame(400).write_csv(path),
    "adult_data.csv": lambda path: adult_frame(400).write_csv(path, include_header=False),
    "new.csv": lambda path: adult_frame(5).drop("income").write_csv(path),
    "adult.schema.toml": lambda path: path.write_bytes(ADULT.read_bytes()),
    "photos": photos,
    "party.jpg": party,
}


def lay_out(folder: Path, page: Path) -> None:
    """A stand-in for every input that the page names and does not write itself."""
    blocks = blocks_of(page)
    text = "\n".join(block.text for block in blocks)
    own = {block.title for block in blocks} | set(re.findall(r'Path\("(\w+)"\)\.mkdir', text))
    for name, make in STAND_INS.items():
        if name not in own and re.search(rf"(?<![\w/]){re.escape(name)}\b", text):
            make(folder / name)
