"""Maps: one contract for all, and each map's own promise."""

from __future__ import annotations

import json

import numpy as np
import pytest
from registered import classes_in
from scipy import linalg
from sklearn.base import clone

from omokage.base.parts import Part, part_of
from omokage.errors import MapError
from omokage.method import maps
from omokage.method.grouping import GROUPERS, Cells
from omokage.method.maps import LPP, MAPS, NMF, PCA, Autoencoder, parse_map
from omokage.method.maps.parts import parts_of, rebuild_map

N, D = 120, 8
WITH_COMPONENTS = [entry.name for entry in MAPS.entries if entry.argument == "n_components"]


@pytest.fixture(scope="module")
def x():
    """Non-negative, of rank 3 with a little noise."""
    rng = np.random.default_rng(0)
    return rng.gamma(1.0, size=(N, 3)) @ rng.gamma(1.0, size=(3, D)) + 0.01 * rng.random((N, D))


def make(name):
    if name == "ae":
        return Autoencoder(3, max_epochs=60, batch_size=32, learning_rate=1e-2)
    return MAPS[name](3) if name in WITH_COMPONENTS else MAPS[name]()


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_contract(name, dtype, x):
    given = x.astype(dtype)
    before = given.copy()
    mapping = make(name)
    parameters = mapping.get_params()
    assert mapping.fit(given) is mapping
    assert mapping.get_params() == parameters  # fit assigns no parameter
    z = mapping.transform(given)
    back = mapping.inverse_transform(z)
    assert z.shape == (N, 3 if name in WITH_COMPONENTS else D)
    assert back.shape == given.shape
    assert z.dtype == back.dtype == dtype
    assert (given == before).all()
    assert np.isfinite(back).all()
    if name != "lpp":  # which keeps neighbours, not variance
        assert ((back - x) ** 2).sum() < 0.2 * ((x - x.mean(axis=0)) ** 2).sum()  # there and back loses little
    again = clone(mapping).fit(given).transform(given)
    np.testing.assert_allclose(again, z, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MAPS)
def test_bad_data_are_refused(name, x):
    broken = x.copy()
    broken[3, 2] = np.nan
    with pytest.raises(MapError, match="NaN or infinity, found in 1 rows"):
        make(name).fit(broken)
    with pytest.raises(MapError, match="numbers"):
        make(name).fit(np.array([["a", "b"]]))


@pytest.mark.parametrize("name", WITH_COMPONENTS)
def test_too_many_components(name, x):
    with pytest.raises(MapError, match=r"1 to 8 components.*but 9 were asked for"):
        MAPS[name](9).fit(x)


def test_exact_ways_back(x):
    for mapping in (parse_map("std"), parse_map("log"), parse_map("none"), PCA(D), LPP(D), parse_map("log+std")):
        np.testing.assert_allclose(mapping.inverse_transform(mapping.fit_transform(x)), x, atol=1e-9)


def test_nmf_refuses_negative_data():
    with pytest.raises(MapError, match=r"1 of 2 columns hold negative values"):
        NMF(1).fit(np.array([[1.0, -2.0], [3.0, 4.0]]))


@pytest.mark.parametrize("weights", ["heat", "binary"])
def test_lpp_solves_the_generalized_eigenproblem(weights, x):
    """Against dense matrices written down from the definition."""
    lpp = LPP(4, n_neighbors=3, weights=weights, ridge=0.0).fit(x)
    square = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    near = np.argsort(square + np.diag(np.full(N, np.inf)), axis=1)[:, :3]
    joined = np.zeros((N, N), dtype=bool)
    joined[np.arange(N)[:, None], near] = True
    joined |= joined.T
    temperature = np.take_along_axis(square, near, axis=1).mean()
    w = np.where(joined, np.exp(-square / temperature) if weights == "heat" else 1.0, 0.0)
    z = x - x.mean(axis=0)
    d = np.diag(w.sum(axis=1))
    _, vectors = linalg.eigh(z.T @ (d - w) @ z, z.T @ d @ z, subset_by_index=[0, 3])
    np.testing.assert_allclose(np.abs(lpp.components_), np.abs(vectors), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(lpp.components_.T @ z.T @ d @ z @ lpp.components_, np.eye(4), atol=1e-8)


def test_lpp_checks_its_parameters(x):
    with pytest.raises(MapError, match="n_neighbors"):
        LPP(2, n_neighbors=N).fit(x)
    with pytest.raises(MapError, match="one of heat, binary"):
        LPP(2, weights="cosine").fit(x)


def test_autoencoder_nonlinear_stops_early_and_leaves_torch_alone(x):
    import torch

    before = torch.random.get_rng_state()
    ae = Autoencoder(3, hidden=(16,), max_epochs=400, patience=3, learning_rate=0.02, batch_size=32).fit(x)
    assert len(ae.losses_) < 400
    assert (torch.random.get_rng_state() == before).all()
    with pytest.raises(MapError, match="at least 2 rows"):
        Autoencoder(1).fit(x[:1])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("umap:3", "there is no map 'umap'"),
        ("pca", "needs a number: write pca:N"),
        ("pca:x", "does not take 'x': write pca:N, where N is a whole number"),
        ("pca:²", "does not take '²'"),
        ("pca:" + "9" * 5000, "does not take"),
        ("pca:3,5", "one option twice"),
        ("log:3", "does not take '3': write log"),
        ("log+", "there is no map ''"),
        ("", "there is no map ''"),
    ],
)
def test_wrong_map_names(text, words):
    with pytest.raises(MapError, match=words):
        parse_map(text)


def test_a_chain_may_hold_one_map_twice(x):
    """Chains name their steps, and no two alike."""
    mapping = parse_map("pca:5+log+pca:3")
    assert [name for name, _ in mapping.steps] == ["pca-1", "log", "pca-3"]
    assert parse_map("std+std").fit_transform(x).shape == x.shape


def test_every_public_map_is_listed():
    assert classes_in(maps, "inverse_transform") == set(MAPS.values())
    assert {name for name in maps.__all__ if isinstance(getattr(maps, name), type)} == {c.__name__ for c in MAPS.values()}


# ---------------------------------------------------------------------- maps as structure


@pytest.mark.parametrize(
    "mapping",
    [
        parse_map("log+pca:50"),
        parse_map("std+log+nmf:3"),
        parse_map("lpp:7"),
        LPP(4, weights="binary", temperature=2.5),
        Autoencoder(3, hidden=(64, 32), learning_rate=0.01),
    ],
)
def test_a_map_comes_back_from_its_parts(mapping):
    parts = parts_of(mapping)
    assert json.loads(json.dumps([[p.name, p.options] for p in parts])) == [[p.name, p.options] for p in parts]
    again = rebuild_map(parts)
    assert parts_of(again) == parts
    steps = [step for _, step in getattr(mapping, "steps", [("", mapping)])]
    rebuilt = [step for _, step in getattr(again, "steps", [("", again)])]
    assert [repr(step) for step in rebuilt] == [repr(step) for step in steps]


def test_parts_hold_no_seed_and_no_data():
    from sklearn.decomposition import NMF as Theirs

    assert parts_of(PCA(3, random_state=12345)) == (Part("pca", {"n_components": 3}),)
    assert parts_of(LPP(3, n_jobs=2)) == (Part("lpp", {"n_components": 3}),)
    assert parts_of(None) == parts_of(parse_map("none")) == ()
    foreign = parts_of(Theirs(2, l1_ratio=np.float64(0.5), max_iter=np.array([7])))[0]
    assert foreign.name == "sklearn.decomposition._nmf:NMF"
    assert foreign.options == {"n_components": 2, "l1_ratio": 0.5, "max_iter": "ndarray"}
    assert part_of(Cells(5), GROUPERS) == Part("cells", {"k": 5})


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([Part("omokage.method.maps.factorization:PCA", {"n_components": 3})], "not built in"),
        ([Part("umap", {})], "not built in"),
        ([Part("pca", {})], "does not fit the options"),
        ([Part("pca", {"n_components": 3, "shape": 1})], "does not fit the options"),
        ([Part("log", {"base": 2})], "takes no options"),
        ([Part("pca", {"n_components": "3"})], "wrong type"),
        ([Part("pca", {"n_components": True})], "wrong type"),
        ([Part("ae", {"n_components": 3, "hidden": "4,x"})], "wrong type"),
    ],
)
def test_parts_that_make_no_map_are_refused(parts, words):
    with pytest.raises(MapError, match=words):
        rebuild_map(parts)
