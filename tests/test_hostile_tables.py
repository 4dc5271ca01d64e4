"""Odd and hostile tables, by name and by chance: released or refused with one sentence, never a traceback and never a hang."""

from __future__ import annotations

import importlib
import io
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest

from omokage import Anonymizer, Laplace, Mondrian, Roles, read_table, verify
from omokage.errors import InputError, NotEnoughPeople, OmokageError, TableError
from omokage.tables.ipc_sizes import unpacked_size
from omokage.tables.table import Table, as_table
from omokage.tables.unify import UNIFIERS

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
hostile = importlib.import_module("hostile")

# ---------------------------------------------------------------------- by name


@pytest.mark.parametrize("role", ["identifier", "quasi", "sensitive", "keep"])
def test_a_string_for_columns_is_not_read_letter_by_letter(role):
    """The attack: quasi="ab" named the columns a and b, and the column ab was released raw."""
    with pytest.raises(InputError, match=rf"{role} must be a list of column names, not a string: write {role}=\['ab'\]"):
        Roles(**{role: "ab"})


@pytest.mark.parametrize("wrong", [{"quasi": [1]}, {"keep": 7}, {"quasi": [["a"]]}, {"person": ["a"]}, {"person": ""}])
def test_roles_of_another_type(wrong):
    with pytest.raises(InputError, match="must be"):
        Roles(**wrong)


def test_columns_may_come_from_a_generator_and_a_person_is_no_pattern():
    table = as_table(pl.DataFrame({"ab": [1, 2], "c": ["x", "y"]}))
    assert Roles(quasi=(name for name in ["ab"]), rest="keep").resolve(table) == {"ab": "quasi", "c": "keep"}
    with pytest.raises(TableError, match=r"there is no column '\*'"):
        Roles(quasi=["ab"], person="*").resolve(table)


HUGE = {
    "signed": pl.Series([2**63 - 1 - i for i in range(12)] + [-(2**63) + i for i in range(12)], dtype=pl.Int64),
    "unsigned": pl.Series([2**64 - 1 - i for i in range(12)] + list(range(12)), dtype=pl.UInt64),
    "wide": pl.Series([2**100 - i for i in range(12)] + [-(2**100) + i for i in range(12)], dtype=pl.Int128),
    "exact": pl.Series([f"{i}.25" for i in range(24)]).cast(pl.Decimal(20, 2)),
}


@pytest.mark.parametrize("kind", sorted(HUGE))
@pytest.mark.parametrize("how", sorted(name for name, unifier in UNIFIERS.items() if "number" in unifier.kinds))
def test_whole_numbers_near_the_ends_of_their_types(kind, how, tmp_path):
    frame = pl.DataFrame({"n": HUGE[kind], "kept": HUGE[kind]})
    for form in ("csv", "parquet") if kind != "wide" else ("csv",):
        table = Table(**{**vars(as_table(frame)), "format": form})
        release = Anonymizer(Mondrian(3), random_state=0).release(
            table, roles=Roles(quasi=["n"], keep=["kept"]), unify={"n": how}
        )
        out = release.write(tmp_path / form)
        assert verify(out).passed
        written = read_table(next(out.glob("data.*")))
        assert sorted(written.frame["kept"].cast(pl.String)) == sorted(frame["kept"].cast(pl.String))
        assert written.frame["n"].null_count() == 0


def test_whole_numbers_near_the_ends_are_read(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\n" + "".join(f"{2**63 - 1 - i},{2**64 - 1 - i},{-(2**63) + i}\n" for i in range(9)))
    table = read_table(tmp_path / "t.csv")
    assert table.kinds == {"a": "number", "b": "code", "c": "number"}
    assert verify(Anonymizer(Mondrian(3)).release(table).write(tmp_path / "out")).passed


NAMES = ["*", "^a", "a$", " a", "a\nb", "c0", "class", "a,b", "a;b", '"', "x\t", "é", "[x]", "\0", "value", "who", "__index__"]


@pytest.mark.parametrize("form", ["csv", "parquet", "feather"])
@pytest.mark.parametrize("role", ["quasi", "keep", "identifier", "person"])
def test_odd_column_names(form, role, tmp_path):
    rng = np.random.default_rng(0)
    other = pl.Series("other", rng.integers(0, 50, 20))
    for j, name in enumerate(NAMES):
        frame = pl.DataFrame({name: [f"v{i % 4}" for i in range(20)]}).with_columns(other)
        table = Table(**{**vars(as_table(frame)), "format": form})
        roles = Roles(quasi=["other"], person=name) if role == "person" else Roles(
            **{"quasi": ["other", name]} if role == "quasi" else {"quasi": ["other"], role: [name]}
        )  # fmt: skip
        release = Anonymizer(Mondrian(3), random_state=0).release(table, roles=roles)
        out = release.write(tmp_path / str(j), key=tmp_path / f"{j}.json")
        assert verify(out, key=tmp_path / f"{j}.json").passed, name
        assert (name in release.data.columns) == (role in ("quasi", "keep"))


def test_all_odd_names_at_once(tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({name: rng.integers(0, 9, 30) for name in NAMES})
    release = Anonymizer(Mondrian(3), random_state=0).release(frame, roles=Roles(quasi=NAMES[:6], keep=NAMES[6:]))
    assert verify(release.write(tmp_path / "out")).passed
    assert release.data.columns == NAMES


@pytest.mark.parametrize("name", ["^a$", "^.*$", "^$"])
def test_a_name_that_is_a_pattern(name, tmp_path):
    """Polars takes it for one in nearly every call."""
    frame = pl.DataFrame({name: [1, 2, 3, 4], "b": [1, 2, 3, 4]})
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    for wrong in (lambda: as_table(frame), lambda: read_table(tmp_path / "t.csv"), lambda: read_table(tmp_path / "t.parquet")):
        with pytest.raises(TableError, match=r"the name of column 1 begins with \^ and ends with \$"):
            wrong()
    assert read_table(tmp_path / "t.csv", header=True, names=["a", "b"]).frame.columns == ["a", "b"]


@pytest.mark.parametrize("name", ["", " "])
def test_a_column_without_a_name(name, tmp_path):
    frame = pl.DataFrame({name: [1, 2, 3, 4], "b": [1, 2, 3, 4]})
    with pytest.raises(TableError, match="without a name"):
        Anonymizer(Mondrian(2)).release(frame)
    frame.write_parquet(tmp_path / "t.parquet")
    with pytest.raises(TableError, match="without a name"):
        read_table(tmp_path / "t.parquet")


@pytest.mark.parametrize(
    "empty",
    [
        pl.DataFrame(), pl.DataFrame({"a": []}), pl.DataFrame({"a": []}, schema={"a": pl.Int64}), pd.DataFrame(),
        pd.DataFrame({"a": []}), np.empty((0, 3)), np.empty((3, 0)), np.empty((0, 0)), np.empty(0), np.float64(3.0), [], [[]],
        None, "text", {"a": [1, 2]}, [[1, 2], [3]],
    ],
)  # fmt: skip
def test_empty_data_and_data_of_another_form(empty):
    with pytest.raises(OmokageError):
        Anonymizer(Mondrian(2)).release(empty)
    with pytest.raises(OmokageError):
        Anonymizer(noise=Laplace(1.0)).release(empty)


@pytest.mark.parametrize(
    ("person", "words"),
    [
        ([None] * 6, "6 rows name nobody"),
        ([1, 2, None, 4, 5, 6], "1 rows name nobody"),
        ([1.0, 2.0, float("nan"), 4, 5, 6], "1 rows name nobody"),
        (["a", float("nan"), "b", "c", "d", "e"], "1 rows name nobody"),
        ([1, 2, 3], "one person for each of the 6 rows"),
        (7, "must be a list"),
        ([[1], [2], [3], [4], [5], [6]], "must be a list"),
        ([1, "a", (2,), 4, 5, 6], "must"),
    ],
)
def test_whose_rows_they_are(person, words):
    x = np.arange(12.0).reshape(6, 2)
    with pytest.raises(InputError, match=words):
        Anonymizer(Mondrian(2)).release(x, person=person)


def test_a_frames_person_is_missing():
    frame = pl.DataFrame({"a": range(6), "who": ["x", None, "y", "z", "u", "v"]})
    with pytest.raises(InputError, match="1 rows name nobody"):
        Anonymizer(Mondrian(2)).release(frame, roles=Roles(quasi=["a"], person="who"))
    with pytest.raises(NotEnoughPeople):
        Anonymizer(Mondrian(2)).release(frame.drop_nulls().with_columns(who=pl.lit("x")), roles=Roles(quasi=["a"], person="who"))


@pytest.mark.parametrize("tiny", [1e-300, 1e-304, 1e-310, 5e-324, 1e149])
def test_values_at_the_ends_of_floats_are_not_lost(tiny, tmp_path):
    frame = pl.DataFrame({"x": [tiny] * 4 + [tiny / 2] * 4})
    release = Anonymizer(Mondrian(4), random_state=0).release(frame, digits=6)
    assert release.data["x"].null_count() == 0
    assert np.isfinite(release.data["x"].to_numpy()).all()
    assert np.isclose(release.data["x"].max(), tiny, rtol=1e-5)
    assert verify(release.write(tmp_path / "out")).passed
    assert "" not in (tmp_path / "out" / "data.csv").read_text().splitlines()


@pytest.mark.parametrize("far", [1e151, 1.7e308, -1e300])
def test_numbers_whose_squares_overflow_are_refused(far):
    frame = pl.DataFrame({"x": [far, 1.0, 2.0, 3.0]})
    with pytest.raises(TableError, match=r"column 'x' holds numbers beyond 1e\+150 in 1 rows"):
        Anonymizer(Mondrian(2)).release(frame)
    with pytest.raises(InputError, match=r"numbers beyond 1e\+150"):
        Anonymizer(Mondrian(2)).release(frame.to_numpy())
    kept = Anonymizer(Mondrian(2)).release(frame.with_columns(y=pl.Series(range(4))), roles=Roles(quasi=["y"], keep=["x"]))
    assert sorted(kept.data["x"]) == sorted(frame["x"])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"scale": "banana"}, "scale can be range, std, none, not 'banana'"),
        ({"rare": "banana"}, "rare can be hide, show"),
        ({"unifier": "banana"}, "there is no unifier 'banana'"),
        ({"unifier": 7}, "there is no unifier 7"),
        ({"digits": "banana"}, "digits must be None or a whole number"),
        ({"random_state": "banana"}, "random_state must be"),
        ({"grouper": "banana"}, "grouper must have k and fit_predict"),
        ({"grouper": None, "noise": "banana"}, "noise must be a Laplace"),
        ({"synthesis_map": "banana"}, "synthesis_map must be a transformer"),
    ],
)
def test_wrong_settings_are_refused_before_the_data_are_looked_at(wrong, words):
    about = {name: wrong[name] for name in ("scale", "rare", "digits") if name in wrong}
    anonymizer = Anonymizer(**{"grouper": Mondrian(2), **{name: value for name, value in wrong.items() if name not in about}})
    with pytest.raises(InputError, match=words):
        anonymizer.release(object(), **about)


@pytest.mark.parametrize("wrong", [{"a": "banana"}, {"nobody": "mean"}])
def test_wrong_unifiers_of_columns(wrong):
    with pytest.raises(InputError, match=r"there is no unifier 'banana'|not a quasi-identifier"):
        Anonymizer(Mondrian(2)).release(pl.DataFrame({"a": range(6)}), unify=wrong)


def test_importing_without_a_count_of_usable_cores():
    """macOS and Windows have no sched_getaffinity."""
    code = (
        "import os; del os.sched_getaffinity; import numpy as np; from omokage import Mondrian; "
        "print(Mondrian(2).fit_predict(np.array([[1.0], [1.0], [9.0], [9.0]])).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout in ("[0, 0, 1, 1]\n", "[1, 1, 0, 0]\n")


FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1"]


@pytest.mark.parametrize("separator", [",", "\t"])
def test_formulas_in_released_text_are_noted_and_escaped_on_request(separator, tmp_path):
    cells = [*FORMULAS, "plain", "-5", "+5.5", "-1e3", "a=b", None]
    frame = pl.DataFrame({"age": range(24), "note": cells * 2, "cost": [-5] * 24})
    table = Table(**{**vars(as_table(frame)), "separator": separator})
    roles = Roles(quasi=["age"], keep=["note", "cost"])
    plain = Anonymizer(Mondrian(3), random_state=0).release(table, roles=roles)
    assert [n for n in plain.certificate.notes if n.startswith("Column note: a spreadsheet would run 12 cells as formulas")]
    assert not [n for n in plain.certificate.notes if n.startswith("Column cost")]
    out = Anonymizer(Mondrian(3), random_state=0).release(table, roles=roles, escape_formulas=True)
    assert not [n for n in out.certificate.notes if "spreadsheet" in n]
    assert sorted(v or "" for v in out.data["note"]) == sorted([f"'{c}" if c in FORMULAS else c or "" for c in cells] * 2)
    assert set(out.data["cost"]) == {-5}
    assert verify(out.write(tmp_path / "out")).passed


def test_formulas_from_the_command_line(run, tmp_path):
    rows = "".join(f"{i},{'=cmd|x' if i % 2 else 'b'}\n" for i in range(8))
    (tmp_path / "t.csv").write_text("age,note\n" + rows)
    common = ("table", tmp_path / "t.csv", "--k", 2, "--quasi", "age", "--keep", "note")
    noted = run(*common, "-o", tmp_path / "a")
    assert "a spreadsheet would run 4 cells as formulas" in noted.out
    escaped = run(*common, "-o", tmp_path / "b", "--escape-formulas")
    assert escaped.code == 0, escaped.err
    assert "spreadsheet" not in escaped.out
    assert (tmp_path / "b" / "data.csv").read_text().count(",'=cmd|x") == 4
    assert run("verify", tmp_path / "b").code == 0


def test_a_name_that_is_a_formula_is_noted():
    frame = pl.DataFrame({"=1+1": range(6)})
    notes = Anonymizer(Mondrian(2)).release(frame).certificate.notes
    assert [n for n in notes if n.startswith("A spreadsheet would run 1 column name as formulas")]


# ---------------------------------------------------------------------- files that unpack to more than they may, or say so


def packed(form, frame, packing="zstd"):
    out = io.BytesIO()
    (frame.write_parquet if form == "parquet" else frame.write_ipc)(out, compression=packing)
    return out.getvalue()


@pytest.mark.parametrize("form", ["parquet", "feather"])
def test_a_table_that_unpacks_to_gigabytes_is_refused_before_it_is_unpacked(form, tmp_path):
    constant = pl.select(pl.repeat(1, 40_000_000, dtype=pl.Int64).alias("a"))  # 320 MB in 0.1 MB
    (tmp_path / f"t.{form}").write_bytes(packed(form, constant))
    del constant
    with pytest.raises(TableError, match=r"would unpack to 0\.3 GB: if you trust it, save it again without compression"):
        read_table(tmp_path / f"t.{form}")


def test_a_buffer_that_lies_about_its_size_does_not_end_the_process(tmp_path):
    """Polars asks for as much as the file says, and the system ends a process that asks for exabytes."""
    content = packed("feather", pl.DataFrame({"a": range(5000), "b": ["x" * (i % 50) for i in range(5000)]}), "lz4")
    said = (5000 * 8).to_bytes(8, "little")
    assert content.count(said) == 1
    file = tmp_path / "t.feather"
    for lie in (2**62, 10**12, -7):
        file.write_bytes(content.replace(said, lie.to_bytes(8, "little", signed=True)))
        code = f"from omokage import read_table; read_table({str(file)!r})"
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert result.returncode == 1
        assert "omokage.errors.TableError" in result.stderr.splitlines()[-1]
        assert "panicked" not in result.stderr
    file.write_bytes(content)
    assert read_table(file).frame.height == 5000


@pytest.mark.parametrize("packing", ["zstd", "lz4", "uncompressed"])
def test_sizes_of_feather_files_are_counted(packing):
    frame = pl.DataFrame({"a": range(1000), "c": pl.Series([f"c{i % 7}" for i in range(1000)], dtype=pl.Categorical)})
    size = unpacked_size(packed("feather", frame, packing))
    assert 8000 + 4000 <= size < 8000 + 4000 + 1000
    out = io.BytesIO()
    with pyarrow.ipc.new_file(out, frame.to_arrow().schema, options=pyarrow.ipc.IpcWriteOptions(use_legacy_format=True)) as file:
        file.write_table(frame.to_arrow())
    assert 8000 + 4000 <= unpacked_size(out.getvalue()) < 8000 + 4000 + 1000


def test_a_panic_of_the_reader_is_one_sentence(tmp_path, capfd):
    content = bytearray(packed("parquet", pl.DataFrame({"a": ["x" * (i % 9) for i in range(500)]}), "uncompressed"))
    panics = 0
    rng = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(content)
        for at in rng.integers(0, len(content), 3):
            damaged[at] ^= 1 << int(rng.integers(8))
        (tmp_path / "t.parquet").write_bytes(damaged)
        with suppress(TableError):
            read_table(tmp_path / "t.parquet")
        panics += "panicked" in capfd.readouterr().err
    assert panics == 0


@pytest.mark.parametrize("form", ["parquet", "feather"])
def test_a_column_that_holds_nothing_is_not_read(form, tmp_path, monkeypatch):
    """A damaged page of one made Polars ask for two exabytes."""
    frame = pl.DataFrame({"a": [1, 2, 3], "nothing": [None] * 3, "b": ["x", "y", "z"]})
    (tmp_path / f"t.{form}").write_bytes(packed(form, frame))
    asked = []
    reader = "read_parquet" if form == "parquet" else "read_ipc"
    original = getattr(pl, reader)
    monkeypatch.setattr(pl, reader, lambda content, columns: asked.append(columns) or original(content, columns=columns))
    assert read_table(tmp_path / f"t.{form}").frame.equals(frame)
    assert asked == [[0, 2]]
    (tmp_path / f"t.{form}").write_bytes(packed(form, frame.select("nothing")))
    assert read_table(tmp_path / f"t.{form}").frame.equals(frame.select("nothing"))


def test_dates_that_no_calendar_has(tmp_path):
    frame = pl.DataFrame({"day": pl.Series([-800_000, 5, 3_000_000], dtype=pl.Int32).cast(pl.Date), "n": [1, 2, 3]})
    frame.write_parquet(tmp_path / "t.parquet")
    with pytest.raises(TableError, match="column 'day' holds dates outside of the years 1 to 9999 in 2 rows"):
        read_table(tmp_path / "t.parquet")


# ---------------------------------------------------------------------- by chance


@pytest.mark.parametrize("kind", sorted(hostile.KINDS))
def test_damaged_and_odd_files_are_released_or_refused(kind, tmp_path):
    """A few of the inputs of benchmarks/hostile.py, which makes thousands, each kind in processes of its own."""
    found = {hostile.outcome(kind, number, 1, tmp_path) for number in range(30)}
    assert found <= {"released", "refused"}
    assert len(found) == 2


def test_the_search_for_faults_finds_one(tmp_path, monkeypatch):
    def fails(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr("omokage.tables.read.typed", fails)
    assert [what for n in range(9) if (what := hostile.outcome("csv", n, 1, tmp_path)).startswith("traceback: ")]
