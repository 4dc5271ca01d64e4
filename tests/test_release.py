"""The promise, attacked: every group in the written file, edited bytes, a killed process, a full disk, an old release."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from omokage import Anonymizer, Cells, Laplace, LDiversity, Mondrian, Roles, TCloseness, read_table, verify
from omokage.errors import InputError, MapError, VerificationError
from omokage.method.grouping import GROUPERS
from omokage.method.maps import NMF, PCA, Identity
from omokage.release.certificate import Certificate, File, Noisy
from omokage.release.text import readable
from omokage.tables.rounding import rounded

CELLS = st.one_of(st.none(), st.sampled_from(["a", "b", "<script>", "x,y", '"', "é", "*"]))


@st.composite
def mixed_frames(draw):
    n = draw(st.integers(4, 40))
    return pl.DataFrame(
        {
            "number": draw(st.lists(st.none() | st.integers(-9, 9), min_size=n, max_size=n)),
            "real": draw(st.lists(st.none() | st.floats(-1e6, 1e6, width=32), min_size=n, max_size=n)),
            "word": draw(st.lists(CELLS, min_size=n, max_size=n)),
            "code": [f"0{draw(st.integers(0, 50)):03d}" for _ in range(n)],
            "flag": draw(st.lists(st.booleans(), min_size=n, max_size=n)),
            "kept": draw(st.lists(CELLS, min_size=n, max_size=n)),
        },
        schema={
            "number": pl.Int64,
            "real": pl.Float64,
            "word": pl.String,
            "code": pl.String,
            "flag": pl.Boolean,
            "kept": pl.String,
        },
    )


@given(mixed_frames(), st.integers(2, 4), st.sampled_from(sorted(GROUPERS)), st.sampled_from(["csv", "parquet", "feather"]))
def test_every_written_row_has_k_alike(tmp_path_factory, frame, k, grouper, form):
    folder = tmp_path_factory.mktemp("r")
    source = folder / f"in.{form}"
    {"csv": frame.write_csv, "parquet": frame.write_parquet, "feather": frame.write_ipc}[form](source)
    quasi = ["number", "real", "word", "code", "flag"]
    table = read_table(source)
    release = Anonymizer(GROUPERS[grouper](k, n_jobs=1)).release(table, roles=Roles(quasi=quasi, keep=["kept"]), digits=6)
    out = release.write(folder / "out")
    file = next(out.glob("data.*"))
    if form == "csv":
        rows = [tuple(r) for r in pl.read_csv(file, infer_schema=False).select(quasi).rows()]
    else:
        rows = read_table(file).frame.select(quasi).rows()
    assert len(rows) == len(frame)
    assert min(Counter(rows).values()) >= k
    kept = pl.read_csv(file, infer_schema=False) if form == "csv" else read_table(file).frame
    assert Counter(v or None for v in kept["kept"].to_list()) == Counter(v or None for v in frame["kept"].to_list())
    assert verify(out).passed


@given(
    hnp.arrays(np.float64, st.tuples(st.integers(6, 30), st.integers(2, 4)), elements=st.floats(-1e6, 1e6)),
    st.integers(2, 3),
    st.sampled_from([None, PCA(1), PCA(2), Identity()]),
)
def test_every_released_array_row_has_k_alike(x, k, mapping):
    release = Anonymizer(Cells(k, n_jobs=1), synthesis_map=mapping, random_state=0).release(x)
    assert release.data.shape == x.shape
    assert min(Counter(map(bytes, release.data)).values()) >= k
    assert release.certificate.found.k >= k


def sample(n=200, d=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.gamma(1.0, size=(n, d))


def frame_of(n=60):
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "name": [f"Person-{i:04d}" for i in range(n)],
            "age": rng.integers(18, 90, n),
            "town": rng.choice(["x", "y", "z"], n),
        }
    ).with_columns(ill=pl.Series(rng.choice(["flu", "cold", "none"], n)))


ROLES = Roles(["name"], ["age", "town"], ["ill"])


def test_the_readmes_lines():
    x = sample()
    release = Anonymizer(Mondrian(k=10), synthesis_map=PCA(5), random_state=0).release(x)
    assert release.certificate.found.k >= 10
    assert release.data.shape == x.shape


def test_one_map_serves_both_spaces_or_two_do():
    x = sample()
    one = Anonymizer(Mondrian(5), synthesis_map=PCA(2), random_state=0).release(x)
    same = Anonymizer(Mondrian(5), group_map=PCA(2), synthesis_map=PCA(2), random_state=0).release(x)
    assert (one.data == same.data).all()
    raw = Anonymizer(Mondrian(5), group_map=PCA(2), random_state=0).release(x)  # grouped in PCA, the raw rows averaged
    assert (raw.key.groups == one.key.groups).all()
    means = np.stack([x[raw.key.groups == g].mean(axis=0) for g in range(raw.key.groups.max() + 1)])
    np.testing.assert_allclose(raw.data[raw.key.rows], means[raw.key.groups])


def test_mean_in_the_map_is_the_papers_formula():
    x = sample()
    release = Anonymizer(Mondrian(5), synthesis_map=PCA(3), random_state=0).release(x)
    pca = PCA(3).fit(x)
    z = pca.transform(x)
    g = release.key.groups
    expected = pca.inverse_transform(np.stack([z[g == i].mean(axis=0) for i in range(g.max() + 1)]))[g]
    np.testing.assert_allclose(release.data[release.key.rows], expected, atol=1e-9)


def test_same_seed_same_bytes_and_no_trace_of_the_order(tmp_path):
    frame = frame_of()
    a = Anonymizer(Cells(4), random_state=3).release(frame, roles=ROLES).write(tmp_path / "a")
    b = Anonymizer(Cells(4), random_state=3).release(frame, roles=ROLES).write(tmp_path / "b")
    assert (a / "data.csv").read_bytes() == (b / "data.csv").read_bytes()
    assert (a / "certificate.json").read_bytes() == (b / "certificate.json").read_bytes()
    # the same people in another order: the same file, so that the file cannot tell the order, seed known or not
    frame = frame.with_columns(age=pl.Series(np.random.default_rng(1).permutation(60) + 18))  # no ties between rows
    roles = Roles(["name"], ["age"], ["ill"], ["town"])
    turned = Anonymizer(Mondrian(4), random_state=3).release(frame.reverse(), roles=roles).write(tmp_path / "c")
    straight = Anonymizer(Mondrian(4), random_state=3).release(frame, roles=roles).write(tmp_path / "d")
    assert (turned / "data.csv").read_bytes() == (straight / "data.csv").read_bytes()


def test_groups_released_alike_are_not_told_apart_by_the_order():
    """Every word is unique, so all groups become ``*``: the file must not show which rows were a group."""
    frame = pl.DataFrame({"word": [f"w{i}" for i in range(12)], "kept": [f"v{i}" for i in range(12)]})
    roles = Roles(quasi=["word"], keep=["kept"])
    turned = frame.with_columns(word=frame["word"].reverse())  # other rows are neighbours, the released cells are the same
    one, other = (Anonymizer(Mondrian(2), random_state=3).release(f, roles=roles) for f in (frame, turned[::-1]))
    mixed = frame.with_columns(word=frame["word"].gather([0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11]))
    third = Anonymizer(Mondrian(2), random_state=3).release(mixed, roles=roles)
    assert one.data.rows() == other.data.rows() == third.data.rows()


def test_rows_are_shuffled_and_the_key_finds_them():
    x = sample()
    release = Anonymizer(Mondrian(2), random_state=0).release(x)
    assert (np.sort(release.key.rows) == np.arange(len(x))).all()
    assert (np.diff(release.key.groups[np.argsort(release.key.rows)]) != 0).mean() > 0.5


def test_no_input_value_leaves_but_by_its_role(tmp_path):
    frame = frame_of()
    out = Anonymizer(Mondrian(4)).release(frame, roles=ROLES).write(tmp_path / "out")
    everything = "".join(p.read_text() for p in out.iterdir())
    assert "Person-" not in everything
    certificate = (out / "certificate.json").read_text() + (out / "CERTIFICATE.md").read_text()
    for value in ("flu", "cold"):
        assert value not in certificate
    assert {p.name for p in out.iterdir()} == {"data.csv", "certificate.json", "CERTIFICATE.md"}


@pytest.mark.parametrize("column", ["age", "town"])
def test_verify_catches_one_edited_row(tmp_path, column):
    out = Anonymizer(Mondrian(4)).release(frame_of(), roles=ROLES).write(tmp_path / "out")
    assert verify(out).passed
    file = out / "data.csv"
    edited = pl.read_csv(file, infer_schema=False)
    changed = edited[column].to_list()
    changed[7] = "99.5" if column == "age" else "q"
    edited.with_columns(pl.Series(column, changed)).write_csv(file)
    result = verify(out)
    assert not result.passed
    assert {check.name for check in result.checks if not check.passed} >= {"bytes", "k"}
    assert result.found is not None
    assert result.found.k == 1


def test_verify_counts_even_if_the_hash_was_made_to_fit(tmp_path):
    import hashlib

    out = Anonymizer(Mondrian(4)).release(frame_of(), roles=ROLES).write(tmp_path / "out")
    lines = (out / "data.csv").read_text().splitlines()
    (out / "data.csv").write_text("\n".join([*lines[:-1], "1.5,x,flu"]) + "\n")
    content = (out / "data.csv").read_bytes()
    certificate = Certificate.read(out)[0]
    forged = replace(certificate, files=(File("data.csv", len(content), hashlib.sha256(content).hexdigest()),))
    (out / "certificate.json").write_text(forged.to_json())
    failed = {check.name for check in verify(out).checks if not check.passed}
    assert "k" in failed
    assert "bytes" not in failed


def test_verify_catches_a_sensitive_value_taken_away(tmp_path):
    frame = frame_of().with_columns(ill=pl.Series(["flu", "cold"] * 30))
    anonymizer = Anonymizer(Mondrian(4), constraints=[LDiversity(2), TCloseness(0.4)], random_state=0)
    out = anonymizer.release(frame, roles=ROLES).write(tmp_path / "out")
    result = verify(out)
    assert result.passed
    assert [c.name for c in result.certificate.found.constraints] == ["distinct l-diversity", "t-closeness"]
    written = pl.read_csv(out / "data.csv", infer_schema=False)
    first = written.row(0)
    same = (written["age"] == first[0]) & (written["town"] == first[1])
    written.with_columns(ill=pl.when(same).then(pl.lit("flu")).otherwise(pl.col("ill"))).write_csv(out / "data.csv")
    failed = {check.name for check in verify(out).checks if not check.passed}
    assert "distinct l-diversity of ill" in failed


@pytest.mark.parametrize("what", ["certificate.json", "data.csv", "CERTIFICATE.md"])
def test_verify_a_damaged_folder(tmp_path, what):
    out = Anonymizer(Mondrian(4)).release(frame_of(), roles=ROLES).write(tmp_path / "out")
    (out / what).write_text("{}" if what.endswith("json") else "nothing")
    if what == "certificate.json":
        with pytest.raises(VerificationError, match="damaged"):
            verify(out)
    else:
        assert not verify(out).passed
    (out / what).unlink()
    if what == "certificate.json":
        with pytest.raises(VerificationError, match="holds no certificate"):
            verify(out)
    else:
        assert not verify(out).passed


def test_a_decoder_that_tells_members_apart_is_not_certified(tmp_path):
    """The count is made on the rows that leave, not on the groups that were meant."""
    release = Anonymizer(Mondrian(4), random_state=0).release(frame_of(), roles=ROLES)
    frame = release.writer.table.frame
    broken = frame.with_columns(age=pl.Series([*frame["age"].cast(pl.Float64)[:-1], 0.123]))
    object.__setattr__(release.writer.table, "frame", broken)
    with pytest.raises(VerificationError, match=r"k = 4 was promised, but a class of 1 was found"):
        release.write(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_noise_is_secure_by_default_and_promises_no_k(tmp_path):
    x = sample()
    a, b = (Anonymizer(noise=Laplace(0.5), synthesis_map=PCA(3), random_state=0).release(x) for _ in range(2))
    assert (a.data[a.key.rows] != b.data[b.key.rows]).all()
    assert a.certificate.promise == Noisy("Laplace", 0.5)
    assert "no k is promised" in readable(a.certificate)
    assert "fixed seed" not in readable(a.certificate)
    fixed = Anonymizer(noise=Laplace(0.5, random_state=1)).release(x)
    assert "whoever knows it can take the noise off" in readable(fixed.certificate)
    assert verify(a.write(tmp_path / "out")).passed


def test_noise_has_variance_two_phi_squared_in_the_map():
    x = sample(4000, 4)
    release = Anonymizer(noise=Laplace(3.0, random_state=0), synthesis_map=PCA(4)).release(x)
    pca = PCA(4).fit(x)
    gap = pca.transform(release.data[release.key.rows]) - pca.transform(x)
    assert np.var(gap) == pytest.approx(2 * 3.0**2, rel=0.05)


def test_wrong_combinations():
    x = sample()
    for anonymizer, error, words in (
        (Anonymizer(), InputError, "a grouper or noise"),
        (Anonymizer(Mondrian(2), noise=Laplace(1.0)), InputError, "one of the two"),
        (Anonymizer(Mondrian(2), unifier="mode"), InputError, "there is no unifier 'mode': choose mean, median, spread"),
        (Anonymizer(Mondrian(2), synthesis_map=NMF(2)), MapError, "negative"),
        (Anonymizer(Mondrian(2), constraints=[LDiversity(2)]), InputError, "sensitive column"),
    ):
        with pytest.raises(error, match=words):
            anonymizer.release(x - 5)
    with pytest.raises(InputError, match="digits"):
        Anonymizer(Mondrian(2)).release(x, digits=0)
    with pytest.raises(InputError, match="an array has no named columns"):
        Anonymizer(Mondrian(2)).release(x, roles=ROLES)
    with pytest.raises(InputError, match="array of numbers"):
        Anonymizer(Mondrian(2)).release(np.array([["a"], ["b"]]))


def test_a_map_without_a_way_back_can_only_group():
    class OneWay:
        def fit(self, x):
            return self

        def transform(self, x):
            return x

    with pytest.raises(MapError, match=r"no way back .* give it as group_map"):
        Anonymizer(Mondrian(2), synthesis_map=OneWay()).release(sample())


def test_frames_come_back_as_they_came():
    frame = frame_of()
    assert isinstance(Anonymizer(Mondrian(3)).release(frame, roles=ROLES).data, pl.DataFrame)
    back = Anonymizer(Mondrian(3)).release(frame.to_pandas(), roles=ROLES).data
    assert isinstance(back, pd.DataFrame)
    assert list(back.columns) == ["age", "town", "ill"]


def test_telling_columns_are_noted():
    release = Anonymizer(Mondrian(3)).release(frame_of(), roles=Roles(quasi=["age", "town"], keep=["name", "ill"]))
    assert release.certificate.notes == (
        "Column name is released unchanged and differs in 100% of the rows: it may identify people.",
    )


def test_significant_digits():
    short = rounded(np.array([123456.0, -0.00123456, 0.0, 9.999, -0.0]), 3)
    assert short.tolist() == [123000.0, -0.00123, 0.0, 10.0, 0.0]
    assert str(short[-1]) == "0.0"


def test_certificate_survives_json():
    certificate = Anonymizer(Mondrian(3)).release(frame_of(), roles=ROLES).certificate
    assert Certificate.from_json(certificate.to_json()) == certificate
