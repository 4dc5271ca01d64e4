"""Reports: one file, offline, safe against what is in the data, and saying what was measured."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest

from omokage.errors import OutputError
from omokage.report import write_page

EVIL = '<script>alert("x")</script>'


class Tags(HTMLParser):
    """Which tags a page has, and what it would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href") and value and not value.startswith("#"):
                self.fetched.append(value)


def read(path):
    text = path.read_text()
    tags = Tags()
    tags.feed(text)
    return text, tags


def test_report_of_a_release_with_html_in_the_data(run, tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {f"a{EVIL}": rng.normal(size=60), "$b_1$": rng.normal(size=60), "s": rng.choice([EVIL, "flu & cold"], 60)}
    )
    frame.write_csv(tmp_path / "t.csv")
    made = run(
        "table", tmp_path / "t.csv", "-o", tmp_path / "out", "--k", 4, "--quasi", "a*", "--quasi", "$b_1$", "--sensitive", "s",
        "--key", tmp_path / "key.json",
    )  # fmt: skip
    assert made.code == 0, made.err
    result = run(
        "evaluate", tmp_path / "t.csv", tmp_path / "out", "--key", tmp_path / "key.json", "--target", "s", "--model", "logistic",
        "--splits", 2, "--html", tmp_path / "r.html", "--json", tmp_path / "r.json",
    )  # fmt: skip
    assert result.code == 0, result.err
    assert "the promise allows 25.00%" in result.out
    text, tags = read(tmp_path / "r.html")
    assert "script" not in tags.tags
    assert tags.fetched == []
    assert not re.search(r"https?://(?!www\.w3\.org|purl\.org|creativecommons)", text)
    assert EVIL not in text
    assert "What is not covered" in text
    assert "proved optimal" in text
    assert tags.tags.count("svg") == 3
    assert (tmp_path / "r.json").read_text().startswith("{")


def test_comparison_page(run, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 3))
    pl.DataFrame({"id": range(120), "a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "t": np.where(x[:, 0] > 0, "p", "q")}).write_csv(
        tmp_path / "t.csv"
    )
    arguments = (
        "compare", tmp_path / "t.csv", "--target", "t", "--k", "3,10", "--map", "none,pca:2", "--noise", "laplace:0.3",
        "--model", "logistic", "--html", tmp_path / "f.html", "--jobs", 1,
    )  # fmt: skip
    result = run(*arguments)
    assert result.code == 0, result.err
    text, tags = read(tmp_path / "f.html")
    assert tags.fetched == []
    assert "k=3 cells in pca:2" in text
    assert text.count("<tr") == 1 + 6
    assert "linked" in result.out
    lines = (tmp_path / "f.jsonl").read_text().splitlines()
    assert len(lines) == 7
    assert run(*arguments).code == 0  # everything is kept: nothing runs again
    assert (tmp_path / "f.jsonl").read_text().splitlines() == lines


def test_compare_says_what_it_cannot_use(run, tmp_path, patients):
    result = run("compare", patients, "--target", "disease", "--k", 2, "--html", tmp_path / "f.html")
    assert result.code == 2
    assert "needs numbers, but column 'id'" in result.err
    assert run("compare", patients, "--target", "disease", "--k", "x", "--html", tmp_path / "f.html").code == 2
    assert run("compare", patients, "--target", "disease", "--html", tmp_path / "f.html").code == 2


def test_a_page_is_written_whole_or_not_at_all(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError):
        write_page("text", tmp_path / "file" / "page.html")
    assert write_page("text", tmp_path / "deep" / "page.html").read_text() == "text"
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["page.html"]


def test_counts_take_their_plural():
    from omokage import Anonymizer, Mondrian
    from omokage.evaluate import evaluate, link
    from omokage.report import evaluation_page, verdict

    x = np.arange(4.0)[:, None]
    said = []
    result = evaluate(
        link(x, Anonymizer(Mondrian(4)).release(x)),
        attacks=[lambda view: np.zeros(4, dtype=int)],
        progress=lambda stage, done=0, total=0: said.append(stage),
    )
    sentences = " ".join(verdict(result))
    assert "the only class in the written file has 4 rows" in sentences
    assert "the strongest of 1 attack: direct guess" in sentences
    assert "The weakest" not in sentences
    page = evaluation_page(result)
    assert "4 rows, 1 column." in page
    assert "1 attack<" in page
    assert not re.search(r"\b1 (rows|columns|attacks|records|splits|classes)\b", page)
    assert [stage.split(":")[0] for stage in said][:2] == ["fitting the spaces that the certificate names", "attacking"]
