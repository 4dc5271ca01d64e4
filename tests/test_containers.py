"""Released files attacked below their cells (buffers, dictionaries, leftovers): released cells in released order, no more."""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import spearmanr

from omokage import Anonymizer, Mondrian, Roles, read_table
from omokage.errors import TableError
from omokage.tables.containers import raw_parts
from omokage.tables.table import Table, as_table
from omokage.tables.write import rebuilt, write_frame

N = 400
ROLES = Roles(quasi=["age"], keep=["text", "category"])


def parts_of(file: Path) -> Iterator[tuple[str, bytes]]:
    return raw_parts(file.name, file.read_bytes())


def people(n=N):
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "text": [f"the long story of person {i:05d}" for i in rng.permutation(n)],
            "category": pl.Series([f"ward {i:05d}" for i in rng.permutation(n)], dtype=pl.Categorical),
        }
    )


def released(frame, form, tmp_path, roles=ROLES):
    """Read from a file, anonymize and write, as the command does; gives the written file and the key."""
    source = tmp_path / f"in.{form}"
    if form in ("csv", "tsv"):
        frame.write_csv(source, separator="\t" if form == "tsv" else ",")
    elif form == "npz":
        np.savez(source, **{c.name: np.array(c.to_list()) for c in frame})
    else:
        (frame.write_parquet if form == "parquet" else frame.write_ipc)(source)
    release = Anonymizer(Mondrian(5), random_state=1).release(read_table(source), roles=roles)
    return release.write(tmp_path / "out") / f"data.{form}", release


def places(content, values):
    """Where each value first lies in the bytes, as text of UTF-8 or of NumPy; -1 where it does not."""
    return np.array([max(content.find(v.encode()), content.find(v.encode("utf-32-le"))) for v in values])


@pytest.mark.parametrize("form", ["feather", "parquet", "csv", "tsv", "npz"])
@pytest.mark.parametrize("column", ["text", "category"])
def test_no_buffer_undoes_the_shuffle(form, column, tmp_path):
    """The attack: sort the released values by their place in any part of the file; in the input's order it was 400 of 400."""
    frame = people()
    file, release = released(frame, form, tmp_path)
    original = frame[column].cast(pl.String).to_list()
    tried = 0
    for name, content in parts_of(file):
        at = places(content, original)
        if (at < 0).all():
            continue
        tried += 1
        order = np.argsort(at)
        undone = int((order == np.arange(N)).sum())
        assert undone <= 8, f"{name}: {undone} of {N} rows undone"
        assert abs(spearmanr(at, np.arange(N)).statistic) < 0.2, name
        if form != "parquet":  # its dictionaries come in the order of first use, packed: seen through pyarrow only
            assert (np.argsort(at) == np.argsort(release.key.rows)).all(), name
    assert tried


def test_string_views_point_to_nothing_with_pyarrow_alone(tmp_path):
    """As it was carried out: views of the released column sorted by (buffer, offset) gave the input's order."""
    frame = people()
    file, _ = released(frame, "feather", tmp_path)
    with pa.ipc.open_file(file) as opened:
        column = opened.read_all()["text"].chunk(0)
    assert column.type == pa.large_string()
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int64)[: N + 1]
    assert (np.diff(offsets) > 0).all()  # row by row, in released order
    assert offsets[-1] == sum(len(v) for v in column.to_pylist())  # and no byte besides


@pytest.mark.parametrize("form", ["feather", "parquet"])
def test_categories_that_no_row_has_are_not_written(form, tmp_path):
    frame = people().with_columns(
        category=pl.Series(["left", "right"] * (N // 2), dtype=pl.Enum(["Ignatius-Secretus", "right", "left"]))
    )
    file, _ = released(frame, form, tmp_path)
    assert not [name for name, content in parts_of(file) if b"Ignatius" in content]


@pytest.mark.parametrize("form", ["feather", "parquet"])
def test_values_under_empty_cells_are_not_written(form, tmp_path):
    """Masking leaves the value in memory; Feather writes the memory."""
    frame = people().with_columns(number=pl.Series(range(123_456_789_000_000, 123_456_789_000_000 + N)))
    hidden = frame.with_columns(pl.when(pl.col("age") < 50).then(c).alias(c) for c in ("text", "number"))
    roles = Roles(quasi=["age"], keep=["text", "number"], rest="drop")
    table = Table(**{**vars(as_table(hidden)), "format": form})
    out = Anonymizer(Mondrian(5), random_state=1).release(table, roles=roles)
    file = out.write(tmp_path / "out") / f"data.{form}"
    gone = frame.filter(pl.col("age") >= 50)
    needles = [t.encode() for t in gone["text"]] + [n.to_bytes(8, "little") for n in gone["number"]]
    for name, content in parts_of(file):
        assert not [needle for needle in needles if needle in content], name


def test_rows_that_were_cut_off_are_not_written(tmp_path):
    """A slice shares its buffers with the whole table: those left out must not travel with it."""
    whole = people()
    table = Table(**{**vars(as_table(whole.head(200))), "format": "feather"})
    release = Anonymizer(Mondrian(5)).release(table, roles=ROLES)
    file = release.write(tmp_path / "out") / "data.feather"
    for name, content in parts_of(file):
        assert (places(content, whole["text"][200:]) < 0).all(), name


def test_a_released_frame_in_memory_is_rebuilt_too(tmp_path):
    """Who writes ``release.data`` by hand is as safe as who calls ``write``."""
    frame = people()
    release = Anonymizer(Mondrian(5), random_state=1).release(frame, roles=ROLES)
    release.data.write_ipc(tmp_path / "own.feather")
    for _, content in parts_of(tmp_path / "own.feather"):
        at = places(content, frame["text"])
        assert (at < 0).all() or (np.argsort(at) == np.arange(N)).sum() <= 8


def test_writing_rebuilds_whatever_frame_it_is_given(tmp_path):
    frame = people()
    order = np.random.default_rng(1).permutation(N)
    number = pl.Series("number", range(123_456_789_000_000, 123_456_789_000_000 + N))
    shuffled = frame.with_columns(number)[order]
    masked = shuffled.with_columns(pl.when(pl.col("number") == number[0]).then("number").alias("number"))
    write_frame(masked, tmp_path / "t.feather", Table(frame, {}, "feather"))
    for name, content in parts_of(tmp_path / "t.feather"):
        assert not [n for n in number[1:] if n.to_bytes(8, "little") in content], name
        at = places(content, frame["text"])
        assert (at < 0).all() or (np.argsort(at) == order).all()


def test_rebuilding_keeps_every_cell():
    frame = pl.DataFrame(
        {
            "whole": pl.Series([2**64 - 1, None, 0], dtype=pl.UInt64),
            "real": [float("nan"), None, -0.0],
            "single": pl.Series([0.1, None, 1e30], dtype=pl.Float32),
            "flag": [True, None, False],
            "nano": pl.Series([1, None, 2**60 + 1]).cast(pl.Datetime("ns", "Europe/Berlin")),
            "day": pl.Series([1, None, -719_162]).cast(pl.Date),
            "text": ["", None, "é\0\n"],
            "exact": pl.Series(["1.10", None, "-7.25"]).cast(pl.Decimal(20, 2)),
            "nothing": [None, None, None],
            "^a$": [1, 2, 3],
            "": [1, 2, 3],
        }
    )
    assert rebuilt(frame).equals(frame)
    assert rebuilt(frame).schema == frame.schema


def test_an_archive_says_nothing_of_time_and_its_members_are_listed(tmp_path):
    file, _ = released(people(), "npz", tmp_path)
    with zipfile.ZipFile(file) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert all(not entry.comment for entry in archive.infolist())
    assert [name for name, _ in parts_of(file)] == ["file", "member age.npy", "member text.npy", "member category.npy"]


def test_packed_columns_are_unpacked(tmp_path):
    """What zstd hides from a search in the file is found in its parts."""
    frame = pl.DataFrame({"text": [f"a story of person {i % 7}" for i in range(500)], "n": range(500)})
    frame.write_parquet(tmp_path / "t.parquet", compression="zstd")
    frame.write_ipc(tmp_path / "t.feather", compression="zstd")
    for file in (tmp_path / "t.parquet", tmp_path / "t.feather"):
        parts = dict(parts_of(file))
        assert b"a story of person 3" in b"".join(content for name, content in parts.items() if name != "file")
        assert (499).to_bytes(8, "little") in b"".join(content for name, content in parts.items() if "column n" in name)


@pytest.mark.parametrize("form", ["parquet", "feather"])
def test_parts_without_pyarrow(form, tmp_path, monkeypatch):
    frame = people().with_columns(choice=pl.Series(["x"] * N, dtype=pl.Enum(["x", "never chosen"])))
    file = tmp_path / f"t.{form}"
    (frame.write_parquet if form == "parquet" else frame.write_ipc)(file)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    parts = dict(parts_of(file))
    assert all(value.encode() in parts["column text"] for value in frame["text"])
    assert all(value.to_bytes(8, "little") in parts["column age"] for value in frame["age"])
    assert b"never chosen" in parts["dictionary of column choice"]


@pytest.mark.parametrize("form", ["npz", "parquet", "feather"])
def test_parts_of_a_damaged_file(form, tmp_path):
    (tmp_path / f"t.{form}").write_bytes(b"PK ARROW1 PAR1 but not really")
    with pytest.raises(TableError, match=r"damaged|cannot be read"):
        list(parts_of(tmp_path / f"t.{form}"))


# ---------------------------------------------------------------------- archives that unpack to more than they may


def packed(array, names=("x",), declared=None):
    """An archive whose members are written compressed; with ``declared`` their sizes lie."""
    out = io.BytesIO()
    np.savez_compressed(out, **dict.fromkeys(names, array))
    content = out.getvalue()
    if declared is not None:
        real = zipfile.ZipFile(io.BytesIO(content)).infolist()[0].file_size.to_bytes(4, "little")
        content = content.replace(real, declared.to_bytes(4, "little"))
    return content


def test_an_archive_that_unpacks_to_gigabytes_is_refused_before_it_is_unpacked(tmp_path):
    import tracemalloc

    file = tmp_path / "t.npz"
    file.write_bytes(packed(np.zeros((1 << 20, 32), dtype=np.int64)))  # 268 MB in 0.3 MB
    tracemalloc.start()
    with pytest.raises(TableError, match=r"would unpack to 0\.3 GB: if you trust it, save it again with numpy.savez"):
        read_table(file)
    with pytest.raises(TableError, match="would unpack"):
        list(parts_of(file))
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()


def test_an_archive_that_lies_about_its_size_is_not_unpacked_further(tmp_path):
    import tracemalloc

    file = tmp_path / "t.npz"
    file.write_bytes(packed(np.zeros((1 << 20, 8), dtype=np.int64), declared=1000))  # 67 MB, said to be 1 kB
    tracemalloc.start()
    with pytest.raises(TableError, match=r"damaged|cannot be read"):
        read_table(file)
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()


def header(shape, descr="<f8", fortran=False):
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": descr, "fortran_order": fortran, "shape": shape})
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (header((10**12,)) + b"\0" * 16, "does not say as many bytes"),
        (header((-1, -1)) + b"\0" * 8, "does not say as many bytes"),
        (header((0, 3)), "has no rows"),
        (header((3, 0)), "has no rows"),
        (header(()) + b"\0" * 8, "0 dimensions"),
        (header((1, 1, 1)) + b"\0" * 8, "3 dimensions"),
        (header((2,), "|V4") + b"\0" * 8, "values of type void"),
        (header((2,), "<m8[s]") + b"\0" * 16, "values of type timedelta"),
        (header((2,), "|O") + b"\0" * 16, "values of type object"),
        (header((1,), "<U0"), "cannot be read|values of type"),
        (header((1,), "<U1") + b"\xff\xff\xff\xff", "cannot be read"),
        (header((1,), "|S1") + b"\xff", "cannot be read"),
        (header((1, (1 << 18) + 1), "|i1") + b"\0" * ((1 << 18) + 1), "more than 262144 columns"),
    ],
)
def test_hostile_headers_of_arrays(content, words, tmp_path):
    (tmp_path / "t.npy").write_bytes(content)
    with pytest.raises(TableError, match=words):
        read_table(tmp_path / "t.npy")


@pytest.mark.parametrize("dtype", [">f8", "<f2", "|S3", "<U3", "|b1", "<M8[D]", "<M8[s]", "<M8[Y]", "<u8", "<i8", "longdouble"])
def test_arrays_of_every_type(dtype, tmp_path):
    array = np.array([[0, 1], [1, 0]]).astype("i8").astype(dtype)
    np.save(tmp_path / "t.npy", array)
    assert read_table(tmp_path / "t.npy").frame.shape == (2, 2)
    np.save(tmp_path / "t.npy", np.asfortranarray(array))
    assert read_table(tmp_path / "t.npy").frame["x_0"].to_list() != read_table(tmp_path / "t.npy").frame["x_1"].to_list()


def test_two_arrays_that_would_give_one_column(tmp_path):
    np.savez(tmp_path / "t.npz", x=np.zeros((3, 2)), x_1=np.zeros(3))
    with pytest.raises(TableError, match="two columns would be called 'x_1'"):
        read_table(tmp_path / "t.npz")


@pytest.mark.parametrize(("name", "words"), [("^a$", "begins with"), (" ", "without a name")])
def test_odd_names_of_arrays(name, words, tmp_path):
    np.savez(tmp_path / "t.npz", **{name: np.arange(5.0)})
    with pytest.raises(TableError, match=words):
        read_table(tmp_path / "t.npz")
