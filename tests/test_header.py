"""A file without a header must not publish its first person as column names; usual headers pass."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import datasets

from omokage import Anonymizer, Mondrian, Roles, read_table
from omokage.errors import TableError
from omokage.tables.table import as_table

PERSON = "seems? to be a person"
ADULT = """39, State-gov, 77516, Bachelors, Male, 2174, <=50K
50, Self-emp-not-inc, 83311, Bachelors, Male, 0, <=50K
38, Private, 215646, HS-grad, Male, 0, <=50K
53, Private, 234721, 11th, Male, 0, <=50K
28, Private, 338409, Bachelors, Female, 0, >50K

"""


def write(tmp_path, content, name="t.csv"):
    path = tmp_path / name
    path.write_text(content)
    return path


@pytest.mark.data
def test_adult_without_its_names_publishes_nobody(run, data_folder, tmp_path):
    """The attack: ``cp adult.data adult.csv`` and anonymize; the header of the release was the first person."""
    lines = (data_folder / "adult" / "adult.data").read_text().splitlines(keepends=True)
    source = write(tmp_path, "".join(lines[:500]))
    result = run("table", source, "-o", tmp_path / "out", "--k", 5, "--quasi", "*")
    assert result.code == 2
    assert "15 of 15 column names" in result.err
    for cell in lines[0].split(","):
        assert len(cell.strip()) < 3 or cell.strip() not in result.err  # an error never tells a cell
    assert not (tmp_path / "out").exists()
    assert run("table", source, "-o", tmp_path / "out", "--k", 5, "--quasi", "*", "--no-header", "--seed", 0).code == 0
    released = (tmp_path / "out" / "data.csv").read_text()
    assert released.splitlines()[0] == ",".join(f"column_{j}" for j in range(1, 16))
    assert len(released.splitlines()) == 501
    assert run("verify", tmp_path / "out").code == 0


@pytest.mark.parametrize(
    "content",
    [
        ADULT,
        "1.5,2\n3.5,4\n",
        "anna,1990-01-31\nbob,1991-02-01\n",
        "anna,31.1.1990\nbob,1.2.1991\n",
        "anna,12:30\nbob,13:45\n",
        "0,1\n1,0\n1,1\n",
        "1,2,3\n4,2,3\n1,2,5\n5,5,5\n",  # answers, by chance in even steps
        "anna,berlin\nbob,berlin\n",
        "P0017,x\nP0001,y\nP0002,y\nP0003,z\n",
        "a.b@c.org,x\nd@e.de,y\n",
        "a3bb189e-8bf9-3888-9912-ace4e6543002,x\nb3bb189e-8bf9-3888-9912-ace4e6543002,y\n",
        "-5,x\n7,y\n",
        "x\n2020-01\n2020-02\n".replace("x\n", "2020-03\n"),
    ],
)
def test_a_person_in_the_first_line_is_refused(content, tmp_path):
    source = write(tmp_path, content)
    with pytest.raises(TableError, match=PERSON):
        read_table(source)
    table = read_table(source, header=False)
    assert table.frame.columns == [f"column_{j}" for j in range(1, table.frame.width + 1)]
    assert table.frame.height == len(content.strip().splitlines())


def test_every_scikit_learn_table_without_its_header_is_refused(tmp_path):
    for load in (datasets.load_iris, datasets.load_wine, datasets.load_breast_cancer, datasets.load_diabetes):
        frame = load(as_frame=True).frame
        assert read_table(write(tmp_path, frame.to_csv(index=False))).frame.shape == frame.shape
        assert read_table(write(tmp_path, frame.to_csv())).frame.shape == (len(frame), frame.shape[1] + 1)
        with pytest.raises(TableError, match=rf"{PERSON}|names twice"):
            read_table(write(tmp_path, frame.to_csv(index=False, header=False)))


@pytest.mark.parametrize(
    "header",
    [
        ",".join(map(str, range(784))),  # as pandas writes an array
        "label," + ",".join(f"{i}x{j}" for i in range(1, 4) for j in range(1, 4)),
        "country,1990,1995,2000",
        "country,2020-01-31,2020-02-28,2020-03-31",
        "id,feat_1,feat_2,Class",
        "Q1,Q2,Q3",
        ",age,sex",
        "How old are you?,Your town",
        "wave,400.5,401.0,401.5,402.0,402.5",
    ],
)
def test_usual_headers_pass(header, tmp_path):
    width = header.count(",") + 1
    rng = np.random.default_rng(0)
    first = "x" if header.startswith(("country", "How")) else None
    rows = [[first or 500 + i, *rng.integers(0, 250, width - 1)] for i in range(20)]
    content = header + "\n" + "\n".join(",".join(map(str, row)) for row in rows) + "\n"
    assert read_table(write(tmp_path, content)).frame.width == width


def test_a_header_can_be_trusted(run, tmp_path):
    ticked = "Email,Phone,age\nEmail,,30\n,Phone,31\nEmail,,30\n,Phone,31\n"
    source = write(tmp_path, ticked)
    with pytest.raises(TableError, match=r"2 of 3 column names .* use --header"):
        read_table(source)
    assert read_table(source, header=True).frame.columns == ["Email", "Phone", "age"]
    assert run("table", source, "-o", tmp_path / "out", "--k", 2, "--quasi", "*", "--header").code == 0
    assert run("verify", tmp_path / "out").code == 0


def test_names_are_given(run, tmp_path):
    source = write(tmp_path, ADULT)
    names = ["age", "work", "weight", "education", "sex", "gain", "income"]
    table = read_table(source, names=names)
    assert table.frame.columns == names
    assert table.frame.height == 5  # the empty line at the end is nobody
    assert read_table(source, {"weight": "code"}, names=names).kinds["weight"] == "code"
    assert read_table(source, names=names, header=True).frame.height == 4
    result = run(
        "table", source, "-o", tmp_path / "out", "--k", 2, "--names", ",".join(names), "--quasi", "age,sex", "--rest", "drop",
        "--key", tmp_path / "key.json",
    )  # fmt: skip
    assert result.code == 0, result.err
    assert (tmp_path / "out" / "data.csv").read_text().startswith("age,sex\n")
    for wrong, words in (
        (["a"], "has 7 columns, but 1 names were given"),
        (["a"] * 7, "names twice"),
        ([*names[:6], " "], "is empty"),
        ("abcdefg", "must be a list"),
    ):
        with pytest.raises(TableError, match=words):
            read_table(source, names=wrong)


def test_evaluating_reads_the_originals_in_the_same_way(run, tmp_path):
    rng = np.random.default_rng(0)
    source = write(tmp_path, "".join(f"{a},{b},{c}\n" for a, b, c in zip(*rng.integers(0, 50, (3, 60)), strict=True)))
    how = ("--names", "a,b,c")
    run("table", source, "-o", tmp_path / "out", "--k", 3, "--quasi", "a,b", "--keep", "c", "--key", tmp_path / "k.json", *how)
    assert run("evaluate", source, tmp_path / "out", "--key", tmp_path / "k.json").code == 2
    result = run("evaluate", source, tmp_path / "out", "--key", tmp_path / "k.json", *how)
    assert result.code == 0, result.err


def test_only_text_files_can_lack_a_header(tmp_path):
    np.save(tmp_path / "t.npy", np.zeros((3, 2)))
    for wrong in ({"header": False}, {"names": ["a", "b"]}):
        with pytest.raises(TableError, match="names its columns itself"):
            read_table(tmp_path / "t.npy", **wrong)


@pytest.mark.parametrize("form", ["parquet", "feather", "polars", "pandas"])
def test_a_frame_made_from_a_file_without_a_header_is_refused(form, tmp_path):
    source = write(tmp_path, ADULT)
    wrong = pd.read_csv(source)  # what a user does who forgets header=None
    right = pd.read_csv(source, header=None)

    def released(frame):
        if form in ("parquet", "feather"):
            (tmp_path / f"t.{form}").unlink(missing_ok=True)
            own = pl.from_pandas(frame)
            (own.write_parquet if form == "parquet" else own.write_ipc)(tmp_path / f"t.{form}")
            frame = read_table(tmp_path / f"t.{form}")
        elif form == "polars":
            frame = pl.from_pandas(frame)
        return Anonymizer(Mondrian(2)).release(frame, roles=Roles(rest="quasi"))

    with pytest.raises(TableError, match=PERSON):
        released(wrong)
    assert released(right).certificate.found.k >= 2


def test_one_name_that_is_a_value_does_not_make_a_frame_a_person():
    assert as_table(pl.DataFrame({"c": ["a", "b", "c"], "n": [1, 2, 3], "d": ["x", "y", "z"]})).frame.width == 3


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        (",age,\n7,2,3\n8,3,4\n", ["column_1", "age", "column_3"]),
        ("a , b\n1,2\n", ["a", "b"]),
        ('"a\nb",c\n1,2\n', ["a\nb", "c"]),
        ("\ufeffa,b\n1,2\n", ["a", "b"]),
        ("\n\na,b\n1,2\n", ["a", "b"]),
        ("a;b,c\n1,2\n", ["a;b", "c"]),
        ("weight;height\n61,5;170\n71,5;180\n", ["weight", "height"]),
    ],
)
def test_names_are_tidied(content, columns, tmp_path):
    assert read_table(write(tmp_path, content)).frame.columns == columns


@pytest.mark.parametrize("content", ["a, a\n1,2\n", ",column_1\n1,2\n", "secret,secret\n1,2\n"])
def test_names_that_are_the_same_once_tidied(content, tmp_path):
    with pytest.raises(TableError, match=r"names twice \(columns 1, 2 have the same\)") as error:
        read_table(write(tmp_path, content))
    assert "secret" not in str(error.value)


def test_an_empty_line_is_nobody(tmp_path):
    """It would be counted as a person, and a class of k would hold k - 1."""
    assert read_table(write(tmp_path, "a,b\n1,2\n\n3,4\n,\n\n\n")).frame.height == 2
    assert read_table(write(tmp_path, "a\n1\n\n3\n")).frame.height == 3  # with one column it is a missing value
