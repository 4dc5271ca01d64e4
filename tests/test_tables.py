"""Reading, roles and encoding: what a cell is taken for, what is refused, and that nothing leaks by being forgotten."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omokage import Roles, read_table
from omokage.errors import TableError
from omokage.tables.encode import encode
from omokage.tables.table import as_table
from omokage.tables.write import write_frame
from omokage.tables.writing import read_written

ROWS = """code,whole,number,flag,day,moment,word,gap
007,1,1.5,true,2020-01-31,2020-01-31T10:00:00,x,
010,2,2,False,2020-02-01,2020-02-01T11:30:00,"a,b",3
999,-3,1e3,TRUE,2021-12-24,2021-12-24T00:00:00,é,4
"""


def write(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_kinds_of_a_csv(tmp_path):
    table = read_table(write(tmp_path, "t.csv", ROWS))
    assert table.kinds == {
        "code": "code", "whole": "number", "number": "number", "flag": "boolean", "day": "date", "moment": "date",
        "word": "category", "gap": "number",
    }  # fmt: skip
    assert table.frame["code"].to_list() == ["007", "010", "999"]
    assert table.frame["flag"].to_list() == [True, False, True]
    assert table.frame["gap"].null_count() == 1
    assert table.verbatim("number").to_list() == ["1.5", "2", "1e3"]


@pytest.mark.parametrize(("name", "separator"), [("t.csv", ","), ("t.csv", ";"), ("t.tsv", "\t")])
def test_separators(tmp_path, name, separator):
    table = read_table(write(tmp_path, name, f"a{separator}b\n1{separator}2\n3{separator}4\n"))
    assert table.frame.to_dict(as_series=False) == {"a": [1, 3], "b": [2, 4]}
    assert table.separator == separator


def test_a_number_too_long_to_be_one_is_a_code(tmp_path):
    table = read_table(write(tmp_path, "t.csv", "card\n12345678901234567890123\n22345678901234567890123\n"))
    assert table.kinds["card"] == "code"


def test_kinds_can_be_chosen(tmp_path):
    path = write(tmp_path, "t.csv", "zip,w\n1220,a\n1221,b\n")
    assert read_table(path, {"zip": "code"}).frame["zip"].to_list() == ["1220", "1221"]
    with pytest.raises(TableError, match="cannot be taken for a number"):
        read_table(path, {"w": "number"})
    with pytest.raises(TableError, match="no column 'x'"):
        read_table(path, {"x": "code"})
    with pytest.raises(TableError, match="not 'float'"):
        read_table(path, {"zip": "float"})


@pytest.mark.parametrize("form", ["parquet", "feather", "npy", "npz", "csv", "tsv"])
def test_forms_round_trip(tmp_path, form):
    frame = pl.DataFrame({"x_0": [1.5, 2.5, 3.5], "x_1": [1.0, 2.0, 3.0]})
    path = tmp_path / f"t.{form}"
    if form in ("csv", "tsv"):
        frame.write_csv(path, separator="\t" if form == "tsv" else ",")
    elif form == "parquet":
        frame.write_parquet(path)
    elif form == "feather":
        frame.write_ipc(path)
    elif form == "npy":
        np.save(path, frame.to_numpy())
    else:
        np.savez(path, x=frame.to_numpy())
    table = read_table(path)
    assert table.frame.equals(frame)
    out = tmp_path / f"out.{form}"
    write_frame(table.frame, out, table)
    assert [[float(v) for v in row] for row in read_written(out.name, out.read_bytes()).rows()] == [
        [1.5, 1.0],
        [2.5, 2.0],
        [3.5, 3.0],
    ]


def test_npz_keeps_the_names_of_its_arrays(tmp_path):
    np.savez(tmp_path / "t.npz", x=np.arange(6.0).reshape(3, 2), y=np.array(["a", "b", "a"]))
    table = read_table(tmp_path / "t.npz")
    assert table.frame.columns == ["x_0", "x_1", "y"]
    write_frame(table.frame.drop("x_1"), tmp_path / "out.npz", table)
    with np.load(tmp_path / "out.npz") as back:
        assert back["x"].shape == (3, 1)
        assert back["y"].tolist() == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.xls", "x", "the ending must be one of"),
        ("t.csv", "", "is empty"),
        ("t.csv", "a,b\n", "has no rows"),
        ("t.csv", "a,a\n1,2\n", "names twice"),
        ("t.csv", "a,b\n1,2,3\n", "more cells than the header|cannot be read"),
        ("t.csv", "a,b,c\n1,2,3\n4,5", "cut off: its last line has 2 of 3 cells"),
        ("t.csv", b"a,b\n\xff\xfe,2\n", "not text in UTF-8"),
        ("t.parquet", b"PAR1 but not really", "cannot be read as a table"),
        ("t.feather", b"ARROW1 but not really", "cannot be read as a table"),
        ("t.npy", b"\x93NUMPY but not really", "cannot be read as arrays"),
        ("t.npz", b"PK but not really", "cannot be read as arrays"),
    ],
)
def test_unreadable_files_are_named(tmp_path, name, content, words):
    with pytest.raises(TableError, match=words):
        read_table(write(tmp_path, name, content))


def test_truncated_parquet(tmp_path):
    pl.DataFrame({"a": range(1000)}).write_parquet(tmp_path / "t.parquet")
    content = (tmp_path / "t.parquet").read_bytes()
    with pytest.raises(TableError, match=r"t\.parquet cannot be read"):
        read_table(write(tmp_path, "t.parquet", content[: len(content) // 2]))


def test_nothing_is_unpickled(tmp_path):
    np.save(tmp_path / "t.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(TableError, match="cannot be read as arrays"):
        read_table(tmp_path / "t.npy")


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(TableError, match="No such file"):
        read_table(tmp_path / "none.csv")
    (tmp_path / "f.csv").mkdir()
    with pytest.raises(TableError, match="is a folder"):
        read_table(tmp_path / "f.csv")


def test_errors_do_not_tell_cells(tmp_path):
    secret = "Ignatius-Secretus"
    with pytest.raises(TableError) as error:
        read_table(write(tmp_path, "t.csv", f"a,b\n{secret},2,3\n"))
    assert secret not in str(error.value)


# ---------------------------------------------------------------------- roles

FRAME = pl.DataFrame({"id": ["x", "y"], "feat_1": [1, 2], "feat_2": [3, 4], "target": ["a", "b"]})


def test_patterns_and_rest():
    table = as_table(FRAME)
    assert Roles(["id"], ["feat_*"], keep=["target"]).resolve(table) == {
        "id": "identifier", "feat_1": "quasi", "feat_2": "quasi", "target": "keep",
    }  # fmt: skip
    assert Roles(quasi=["feat_*"], rest="drop").resolve(table)["target"] == "identifier"
    assert Roles(rest="quasi").resolve(table) == dict.fromkeys(FRAME.columns, "quasi")


def test_forgotten_columns_are_an_error():
    with pytest.raises(TableError, match=r"no role is named for 'id', 'target': name them"):
        Roles(quasi=["feat_*"]).resolve(as_table(FRAME))


def test_a_row_number_needs_no_role_and_is_removed():
    frame = FRAME.with_columns(id=pl.Series([1, 2]))
    assert Roles(quasi=["feat_*"], keep=["target"]).resolve(as_table(frame))["id"] == "identifier"
    with pytest.raises(TableError, match="'id'"):
        Roles(quasi=["feat_*"], keep=["target"]).resolve(as_table(frame.with_columns(id=pl.Series([1, 3]))))


@pytest.mark.parametrize(
    ("roles", "words"),
    [
        (Roles(["id"], ["feet_1"]), "no column 'feet_1': did you mean 'feat_1'"),
        (Roles(["id"], ["qqq"]), "no column 'qqq'; there are 4 columns"),
        (Roles(["id"], ["id", "feat_*"]), "'id' is named both as identifier and as quasi"),
        (Roles(["id", "feat_*"], keep=["target"]), "no quasi-identifier is named"),
        (Roles(quasi=["feat_*"], rest="hide"), "not 'hide'"),
    ],
)
def test_wrong_roles(roles, words):
    with pytest.raises(TableError, match=words):
        roles.resolve(as_table(FRAME))


# ---------------------------------------------------------------------- encoding


@given(
    st.lists(
        st.tuples(st.none() | st.integers(-5, 5), st.sampled_from(["a", "b", "c", None]), st.booleans()),
        min_size=1,
        max_size=20,
    )
)
def test_encoding_is_finite_and_tells_unlike_rows_apart(rows):
    frame = pl.DataFrame(rows, schema={"n": pl.Int64, "c": pl.String, "b": pl.Boolean}, orient="row")
    for ordinal in (True, False):
        for scale in ("range", "std", "none"):
            z = encode(as_table(frame), ["n", "c", "b"], scale, ordinal)
            assert np.isfinite(z).all()
            for i in range(len(rows)):
                for j in range(i):
                    alike = (rows[i][0], rows[i][1] or "", rows[i][2]) == (rows[j][0], rows[j][1] or "", rows[j][2])
                    assert np.array_equal(z[i], z[j]) == alike


def test_unlike_categories_are_one_apart():
    z = encode(as_table(pl.DataFrame({"c": ["x", "y", "z", "y"]})), ["c"], "range", ordinal=False)
    assert np.linalg.norm(z[0] - z[1]) == pytest.approx(1.0)
    assert np.linalg.norm(z[1] - z[3]) == 0.0


def test_many_categories_stay_narrow():
    frame = pl.DataFrame({"c": [f"v{i}" for i in range(500)]})
    assert encode(as_table(frame), ["c"], "range", ordinal=False).shape[1] == 64


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_nan_is_not_a_missing_value(bad):
    with pytest.raises(TableError, match="'n' holds NaN or infinity in 1 rows"):
        encode(as_table(pl.DataFrame({"n": [1.0, bad, 3.0]})), ["n"], "range", ordinal=True)


def test_pandas_frames():
    frame = pd.DataFrame({"a": [1, 2], "b": pd.Categorical(["x", "y"]), "c": pd.to_datetime(["2020-01-01", "2020-01-02"])})
    assert as_table(frame).kinds == {"a": "number", "b": "category", "c": "date"}
    with pytest.raises(TableError, match="neither numbers, dates nor text"):
        as_table(pd.DataFrame({"a": [1, "x", object()]}))


def test_nested_columns_are_refused():
    with pytest.raises(TableError, match="'a' is of type List"):
        as_table(pl.DataFrame({"a": [[1], [2]]}))
