"""Attacks around the values of a release, each by its name: every one succeeded once, and must not again."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import os
import tarfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from omokage import Anonymizer, Cells, Mondrian, Roles, read_table, verify
from omokage.base.parts import Part
from omokage.base.search import Strings
from omokage.errors import InputError, VerificationError
from omokage.faces.leaks import inspect_pictures
from omokage.release import leaks
from omokage.release.certificate import Around, Certificate, KAnonymity, Source
from omokage.release.counting import count
from omokage.release.key import fingerprint_of, read_key
from omokage.release.methods import FaceMethod
from omokage.release.text import readable
from omokage.tables.leaks import inspect_table

SIZE = 24


def inspected(file: Path, *arguments: object) -> Around:
    return inspect_table(file.name, file.read_bytes(), *arguments)


def people(n: int = 40, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "name": [f"Person Number {i:04d}" for i in range(n)],
            "age": rng.integers(20, 80, n),
            "height": rng.integers(150, 200, n),
            "ill": rng.choice(["flu", "cold", "gout"], n),
        }
    )


ROLES = Roles(identifier=["name"], quasi=["age", "height"], sensitive=["ill"])


def written(tmp_path: Path, frame: pl.DataFrame, *, key: bool, k: int = 5) -> Path:
    frame.write_csv(tmp_path / "in.csv")
    release = Anonymizer(Mondrian(k), random_state=3).release(read_table(tmp_path / "in.csv"), roles=ROLES)
    return release.write(tmp_path / "out", key=tmp_path / "key.json" if key else None)


# ---------------------------------------------------------------------- the hash of the input, and the seed


def test_the_certificate_is_no_oracle_for_the_input(tmp_path):
    """Whoever holds the register and the release could try every order of a class's sensitive values against a hash."""
    frame = people(10)
    out = written(tmp_path, frame, key=True)
    told = (out / "certificate.json").read_bytes() + (out / "CERTIFICATE.md").read_bytes()
    content = (tmp_path / "in.csv").read_bytes()
    plain_hashes = [hashlib.new(kind, content).hexdigest() for kind in ("md5", "sha1", "sha256", "sha512", "blake2b")]
    plain_hashes.append(hmac.new(b"", hashlib.sha256(content).digest(), "sha256").hexdigest())
    assert not [each for each in plain_hashes if each.encode() in told]
    fingerprint = Certificate.read(out)[0].source.fingerprint
    tries = {hashlib.sha256(f"{ills}".encode()).hexdigest() for ills in itertools.permutations(frame["ill"].to_list()[:6])}
    assert fingerprint not in tries
    secret = read_key(tmp_path / "key.json", Certificate.read(out)[1])
    assert secret.fits(hashlib.sha256(content).hexdigest(), fingerprint)
    assert not secret.fits(hashlib.sha256(content + b" ").hexdigest(), fingerprint)


def test_without_a_key_there_is_no_fingerprint_and_with_one_it_never_repeats(tmp_path):
    for place in ("a", "b", "c"):
        (tmp_path / place).mkdir()
    assert Certificate.read(written(tmp_path / "a", people(), key=False))[0].source.fingerprint is None
    b, c = (Certificate.read(written(tmp_path / place, people(), key=True))[0].source.fingerprint for place in ("b", "c"))
    assert b != c


def test_the_seed_is_in_the_key_alone(tmp_path):
    people().write_csv(tmp_path / "in.csv")
    seed = 918273645546372819
    release = Anonymizer(Cells(5), random_state=seed).release(read_table(tmp_path / "in.csv"), roles=ROLES)
    out = release.write(tmp_path / "out", key=tmp_path / "key.json")
    everything = b"".join(path.read_bytes() for path in out.iterdir())
    assert str(seed).encode() not in everything
    assert b"seed" not in everything
    assert read_key(tmp_path / "key.json", Certificate.read(out)[1]).seed == seed
    assert fingerprint_of("00" * 32, "11" * 32) != fingerprint_of("01" * 32, "11" * 32)


# ---------------------------------------------------------------------- faces: names, inodes, times


def test_times_and_inodes_of_faces_do_not_give_the_order(face_release, tmp_path):
    out = face_release.release
    files = read_key(face_release.key, Certificate.read(out)[1]).faces.files
    assert len(files) == SIZE
    states = {name: (out / "faces" / name).stat() for name in files}
    assert len({state.st_mtime_ns for state in states.values()}) == 1
    assert len({path.stat().st_mtime_ns for path in [out, *out.rglob("*")]}) == 1
    for order in (lambda name: states[name].st_ino, lambda name: states[name].st_ctime_ns):
        assert min(leaks.chances(leaks.ranks([order(name) for name in files]))) > 1e-9
    with tarfile.open(tmp_path / "out.tar", "w") as archive:
        archive.add(out, "out")
    with tarfile.open(tmp_path / "out.tar") as archive:
        assert len({member.mtime for member in archive.getmembers()}) == 1
    assert verify(face_release.copy(tmp_path).release).passed


def test_files_written_in_the_photos_order_are_refused(tmp_path, monkeypatch):
    """The gate notices what the writer used to do."""
    folder = tmp_path / "faces"
    folder.mkdir()
    names = [f"{number:016x}.png" for number in np.random.default_rng(0).permutation(10**6)[:SIZE]]
    for name in names:
        (folder / name).write_bytes(b"picture")
    states = sorted(os.stat(folder / name).st_ino for name in names)
    if states != [os.stat(folder / name).st_ino for name in names]:
        monkeypatch.setattr(os, "lstat", lambda path: os.stat_result((0, names.index(Path(path).name), *[0] * 8)))
    with pytest.raises(VerificationError, match="follows that of the input"):
        inspect_pictures(folder, names, [], 0, [])


def test_a_name_in_a_pictures_bytes_is_refused(tmp_path):
    (tmp_path / "a.png").write_bytes(b"\x89PNG tEXt Comment secret-name-07.png")
    with pytest.raises(VerificationError, match="a picture's bytes"):
        inspect_pictures(tmp_path, ["a.png"], [(tmp_path / "a.png").read_bytes()], 1, ["secret-name-07.png"])


# ---------------------------------------------------------------------- the gate


def test_an_identifier_in_a_kept_text_is_refused(tmp_path):
    frame = people().with_columns(note=pl.concat_str(pl.lit("called "), "name", pl.lit(" back")))
    roles = Roles(identifier=["name"], quasi=["age", "height"], sensitive=["ill"], keep=["note"])
    release = Anonymizer(Mondrian(5)).release(frame, roles=roles)
    with pytest.raises(VerificationError, match=r"column 'note' holds, in 40 rows, the row's own value of 'name'") as error:
        release.write(tmp_path / "out")
    assert "Person" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["csv", "parquet", "feather"])
def test_a_hidden_cell_in_any_byte_is_refused(tmp_path, form, monkeypatch):
    """Whatever a container drags along: here a writer that leaves a dropped column in the metadata, or as a comment."""
    frame = people()
    release = Anonymizer(Mondrian(5), random_state=0).release(frame, roles=ROLES)
    file = tmp_path / f"data.{form}"
    shown = release.writer.table.frame
    secret = "Person Number 0007"
    if form == "csv":
        shown.write_csv(file)
        file.write_bytes(file.read_bytes() + f"# {secret}\n".encode())
    elif form == "parquet":
        import pyarrow.parquet

        pyarrow.parquet.write_table(shown.to_arrow().replace_schema_metadata({"index": secret}), file, compression="zstd")
    else:
        import pyarrow.feather

        pyarrow.feather.write_feather(shown.to_arrow().replace_schema_metadata({"index": secret}), str(file), compression="lz4")
    with pytest.raises(VerificationError, match="fewer than k people have and that is not released"):
        inspected(file, shown, release.certificate.columns, release.writer.hidden, release.key.rows, 5, ())


def test_input_order_in_the_rows_is_refused(tmp_path):
    frame = people(60)
    release = Anonymizer(Mondrian(5), random_state=0).release(frame, roles=ROLES)
    shown = release.writer.table.frame
    shown.write_csv(tmp_path / "data.csv")
    columns, hidden = release.certificate.columns, release.writer.hidden
    inspected(tmp_path / "data.csv", shown, columns, hidden, release.key.rows, 5, ())
    rotated = np.roll(np.arange(60), 17)
    for order in (np.arange(60), np.arange(60)[::-1].copy(), rotated):
        with pytest.raises(VerificationError, match="the order of rows follows"):
            inspected(tmp_path / "data.csv", shown, columns, hidden, order, 5, ())


def test_input_order_in_the_buffers_is_refused(tmp_path):
    """What Feather did: rows shuffled, the text behind them in the input's order."""
    frame = pl.DataFrame({"v": np.arange(60) // 6, "note": [f"a long remark, number {i:03d}" for i in range(60)]})
    release = Anonymizer(Mondrian(5), random_state=0).release(frame, roles=Roles(quasi=["v"], keep=["note"]))
    views = frame["note"].gather(np.argsort(release.key.rows))  # moves the views, not the text
    shown = release.writer.table.frame
    shown.with_columns(views).write_ipc(tmp_path / "data.feather")
    with pytest.raises(VerificationError, match="the order of the text in the file"):
        inspected(tmp_path / "data.feather", shown, release.certificate.columns, release.writer.hidden, release.key.rows, 5, ())


def test_a_dictionary_that_keeps_what_was_unified_is_refused(tmp_path):
    """What a categorical column drags along: every value that it ever had, used or not."""
    import pyarrow
    import pyarrow.feather

    jobs = ["teacher"] * 30 + ["astronaut of 1969"]
    frame = pl.DataFrame({"job": jobs, "age": [30] * 31})
    release = Anonymizer(Mondrian(5), random_state=0).release(frame, roles=Roles(quasi=["job", "age"]))
    shown = release.writer.table.frame
    column = pyarrow.DictionaryArray.from_arrays(np.zeros(31, np.int32), ["*", "astronaut of 1969"])
    table = pyarrow.table({"job": column, "age": shown["age"].to_arrow()})
    pyarrow.feather.write_feather(table, str(tmp_path / "data.feather"), compression="zstd")
    with pytest.raises(VerificationError, match="fewer than k people have"):
        inspected(tmp_path / "data.feather", shown, release.certificate.columns, release.writer.hidden, release.key.rows, 5, ())


def test_the_gate_counts_in_the_certificate(tmp_path):
    around = Certificate.read(written(tmp_path, people(), key=False))[0].around
    assert around.hidden_values == 40
    assert around.searched_bytes > 100
    assert around.orders == ("rows",)


def test_values_that_k_people_have_are_not_taken_for_secrets(tmp_path):
    frame = people().with_columns(town=pl.lit("Springfield"), place=pl.lit("in Springfield"))
    roles = Roles(identifier=["name", "town"], quasi=["age", "height"], sensitive=["ill"], keep=["place"])
    assert verify(Anonymizer(Mondrian(5)).release(frame, roles=roles).write(tmp_path / "out")).passed


def test_many_strings_are_found_where_they_are():
    rng = np.random.default_rng(0)
    strings = [rng.bytes(rng.integers(6, 30)) for _ in range(500)]
    content = rng.bytes(5_000_000)
    at = np.sort(rng.choice(4_900_000 // 64, 200, replace=False)) * 64
    for place, string in zip(at, strings, strict=False):
        content = content[:place] + string + content[place + len(string) :]
    expected = {(int(place), string) for place, string in zip(at, strings, strict=False)}
    assert expected <= set(Strings(strings).found_in(content))
    assert not list(Strings([b"absent-string"]).found_in(content))


# ---------------------------------------------------------------------- what averaging gives away


def test_differencing_is_said_where_people_look(tmp_path):
    """Whoever knows k − 1 members of a group knows the last one from the mean: inherent, so it is said."""
    x = np.random.default_rng(0).normal(size=(20, 2))
    release = Anonymizer(Mondrian(5), random_state=0).release(x)
    group = np.flatnonzero(release.key.groups == 0)
    mean = release.data[release.key.rows[group[0]]]
    np.testing.assert_allclose(len(group) * mean - x[group[:-1]].sum(axis=0), x[group[-1]])
    assert "Whoever knows all members of a group but one can compute the last one" in readable(release.certificate)
    faces = Certificate(
        KAnonymity(2, "photos"), count(np.zeros(4, np.int64)), FaceMethod(
            release.certificate.method.grouping, (Part("recognition"),), (Part("morph"),), "mean", 64, "png", False, False
        ), (), Source(4, 0),
    )  # fmt: skip
    assert "photos of all members of a group but one" in readable(faces)


def test_a_key_of_another_release_is_refused(tmp_path):
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        written(tmp_path / place, people(), key=True)
    with pytest.raises(InputError, match="is not the key of this release"):
        verify(tmp_path / "a" / "out", key=tmp_path / "b" / "key.json")
    told = json.loads((tmp_path / "a" / "key.json").read_text())
    assert told["complete"] is True
    assert told["earlier"] is None
