"""The commands as a user types them."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import polars as pl
import pytest

TABLE = ("--k", 2, "--identifier", "id", "--quasi", "zip,age,gender", "--sensitive", "disease")

EXAMPLE = {
    ("012*", "24", "*", "Cancer"),
    ("012*", "24", "*", "Flu"),
    ("012*", "24", "*", "Aids"),
    ("122*", "35", "M", "Cold"),
    ("122*", "35", "M", "Flu"),
}


def test_the_papers_example(run, patients, tmp_path):
    """Tables 1 and 2 of MIKU-2020: these five rows and no others."""
    result = run("table", patients, "-o", tmp_path / "out", *TABLE)
    assert result.code == 0
    lines = (tmp_path / "out" / "data.csv").read_text().splitlines()
    assert lines[0] == "zip,age,gender,disease"
    assert len(lines) == 6
    assert {tuple(line.split(",")) for line in lines[1:]} == EXAMPLE
    shown = result.out.splitlines()
    assert [line.split()[0] for line in shown] == ["released", "found", "look"]
    assert "k = 2 on the written bytes" in shown[1]
    assert run("verify", tmp_path / "out").code == 0


def test_verify_fails_with_1_after_one_edit(run, patients_release, tmp_path):
    assert run("verify", patients_release.release).code == 0
    out = patients_release.copy(tmp_path).release
    file = out / "data.csv"
    file.write_text(file.read_text().replace("122*,35,M,Cold", "1220,35,M,Cold"))
    result = run("verify", out)
    assert result.code == 1
    assert "FAIL k: k = 1 found, 2 promised" in result.out
    assert "does NOT keep its promise" in result.out


def test_every_column_unifies_its_own_way(run, patients, tmp_path):
    ways = ("--unify", "zip=set,age=range", "--unify", "gender=mode")
    run("table", patients, "-o", tmp_path / "out", *TABLE, *ways, "--rare", "show")
    rows = {tuple(r) for r in pl.read_csv(tmp_path / "out" / "data.csv", infer_schema=False).rows()}
    assert ("{0123, 0124, 0125}", "[22, 26]", "M", "Cancer") in rows
    assert ("{1220, 1221}", "[31, 39]", "M", "Cold") in rows
    run("table", patients, "-o", tmp_path / "hidden", *TABLE, *ways)  # by default no value that fewer than two people have
    rows = {tuple(r) for r in pl.read_csv(tmp_path / "hidden" / "data.csv", infer_schema=False).rows()}
    assert ("012*", "[20, 30]", "M", "Cancer") in rows
    assert ("122*", "[30, 40]", "M", "Cold") in rows


def test_constraints_person_and_key(run, tmp_path):
    rows = "\n".join(f"p{i // 2},{20 + i},{'flu' if i % 3 else 'cold'}" for i in range(40))
    (tmp_path / "t.csv").write_text("who,age,ill\n" + rows + "\n")
    result = run(
        "table", tmp_path / "t.csv", "-o", tmp_path / "out", "--k", 4, "--person", "who", "--quasi", "age",
        "--sensitive", "ill",
        "--l-diversity", 2, "--l-entropy", 1.2, "--t-closeness", 0.5, "--key", tmp_path / "key.json", "--seed", 1,
    )  # fmt: skip
    assert result.code == 0, result.err
    assert "asked, in persons" in result.out
    verified = run("verify", tmp_path / "out", "--key", tmp_path / "key.json")
    assert verified.code == 0, verified.out
    assert "t-closeness of ill" in verified.out


@pytest.mark.parametrize("mapping", ["none", "std", "pca:2", "nmf:2", "lpp:2", "ae:2", "log+std+pca:2"])
@pytest.mark.parametrize("grouping", ["mondrian:variance,multiple", "mdav", "cells"])
def test_every_map_with_every_grouping(run, tmp_path, mapping, grouping):
    x = np.random.default_rng(0).gamma(1.0, size=(60, 4))
    np.savez(tmp_path / "t.npz", x=x, y=np.arange(60) % 3)
    result = run(
        "table", tmp_path / "t.npz", "-o", tmp_path / "out", "--k", 5, "--map", mapping, "--grouping", grouping,
        "--quasi", "x_*", "--keep", "y",
    )  # fmt: skip
    assert result.code == 0, result.err
    assert run("verify", tmp_path / "out").code == 0
    with np.load(tmp_path / "out" / "data.npz") as back:
        assert back["x"].shape == (60, 4)
        assert sorted(back["y"]) == sorted(np.arange(60) % 3)


def test_different_spaces_to_group_and_to_average_in(run, tmp_path):
    np.save(tmp_path / "t.npy", np.random.default_rng(0).gamma(1.0, size=(60, 4)))
    for extra in (("--group-map", "log+pca:2"), ("--group-map", "none", "--synthesis-map", "pca:2")):
        result = run("table", tmp_path / "t.npy", "-o", tmp_path / "out", "--k", 5, "--quasi", "*", "--overwrite", *extra)
        assert result.code == 0, result.err
    method = json.loads((tmp_path / "out" / "certificate.json").read_text())["method"]
    assert method["group_map"] == []
    assert method["synthesis_map"] == [{"name": "pca", "options": {"n_components": 2}}]


def test_noise(run, tmp_path):
    np.save(tmp_path / "t.npy", np.random.default_rng(0).gamma(1.0, size=(60, 4)))
    result = run("table", tmp_path / "t.npy", "-o", tmp_path / "out", "--noise", "laplace:3.5", "--map", "pca:2", "--quasi", "*")
    assert result.code == 0, result.err
    assert "no k is promised" in result.out
    assert run("verify", tmp_path / "out").code == 0


WRONG = [
    (("--k", 1), "at least 2, but it is 1"),
    (("--k", 6), "k = 6 needs at least 6 rows, but there are 5"),
    (("--k", 2, "--map", "pca:2"), "needs numbers, but column 'zip' is a code"),
    (("--k", 2, "--map", "umap:2"), "there is no map 'umap'"),
    (("--k", 2, "--grouping", "tree"), "there is no grouping 'tree'"),
    (("--k", 2, "--noise", "laplace:1"), "one of the two"),
    ((), "one of the two"),
    (("--noise", "laplace"), "laplace:SCALE"),
    (("--noise", "gauss:1"), "laplace:SCALE"),
    (("--noise", "laplace:-1"), "must be above 0"),
    (("--k", 2, "--unify", "zip"), "COLUMN=VALUE"),
    (("--k", 2, "--unify", "gender=mean"), "cannot be unified by mean"),
    (("--k", 2, "--unify", "disease=mode"), "not a quasi-identifier"),
    (("--k", 2, "--scale", "log"), "--scale does not take 'log': choose range, std or none"),
    (("--k", 2, "--l-diversity", 9), "cannot be reached"),
    (("--k", 2, "--person", "nobody"), "there is no column 'nobody'"),
]


@pytest.mark.parametrize(("arguments", "words"), WRONG)
def test_wrong_input_is_one_sentence_and_2(run, patients, tmp_path, arguments, words):
    result = run(
        "table", patients, "-o", tmp_path / "out", "--identifier", "id", "--quasi", "zip,age,gender",
        "--sensitive", "disease", *arguments,
    )  # fmt: skip
    assert result.code == 2
    last = result.err.strip().splitlines()[-1]
    assert last.startswith("omokage: ")
    assert words in last
    assert "Traceback" not in result.err
    assert [p.name for p in tmp_path.iterdir()] == ["patients.csv"]  # nothing half-written


def test_wrong_columns_and_files(run, patients, tmp_path):
    result = run("table", patients, "-o", tmp_path / "out", "--k", 2, "--quasi", "zip,agee", "--rest", "drop")
    assert result.code == 2
    assert "there is no column 'agee': did you mean 'age'?" in result.err
    result = run("table", patients, "-o", tmp_path / "out", "--k", 2, "--quasi", "zip,age")
    assert result.code == 2
    assert "no role is named for 'id', 'gender', 'disease'" in result.err
    assert run("table", tmp_path / "no.csv", "-o", tmp_path / "out", "--k", 2, "--quasi", "a").code == 2
    assert run("verify", tmp_path).code == 2
    assert run("table", patients).code == 2
    assert run("--version").out.startswith("omokage 0.")


def test_an_output_that_exists_is_refused_before_any_work(run, patients, tmp_path):
    run("table", patients, "-o", tmp_path / "out", *TABLE)
    before = (tmp_path / "out" / "data.csv").read_bytes()
    result = run("table", patients, "-o", tmp_path / "out", *TABLE)
    assert result.code == 2
    assert "--overwrite" in result.err
    assert "reading" not in result.err
    assert (tmp_path / "out" / "data.csv").read_bytes() == before
    assert run("table", patients, "-o", tmp_path / "out", *TABLE, "--overwrite").code == 0


def test_nan_in_a_csv(run, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\nNaN,3\n4,5\n6,7\n")
    result = run("table", tmp_path / "t.csv", "-o", tmp_path / "out", "--k", 2, "--quasi", "a,b")
    assert result.code == 2
    assert "column 'a' holds NaN or infinity in 1 rows" in result.err


@pytest.mark.data
def test_otto_as_in_the_readme(run, data_folder, tmp_path):
    with zipfile.ZipFile(data_folder / "otto" / "train.csv.zip") as archive:
        (tmp_path / "otto.csv").write_bytes(archive.read(archive.namelist()[0]))
    common = ("--quasi", "feat_*", "--keep", "target")
    result = run("table", tmp_path / "otto.csv", "-o", tmp_path / "out", "--k", 10, "--map", "pca:50", *common)
    assert result.code == 0, result.err
    assert "k = 10 on the written bytes" in result.out
    assert "released  61,878 rows, 94 columns" in result.out
