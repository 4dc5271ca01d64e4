"""What the parts of the method, the media, the evaluators and the learners say of a wrong call: one sentence, with what to do."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from drawn import draw_photos

from omokage import Anonymizer, Cells, Laplace, Mondrian, Roles
from omokage.errors import InputError, MapError, OmokageError
from omokage.evaluate import attack_all, link, reidentify
from omokage.evaluate import rulers as rulers_module
from omokage.evaluate.faces.published import PublishedMaps
from omokage.faces import FaceFolder
from omokage.faces.maps.direct import Direct
from omokage.faces.maps.morph import Morph
from omokage.learn import DPSGD, Categorical, Numeric, Schema, attack, load_schema
from omokage.learn.descent import norm_grid
from omokage.learn.network import check_finite
from omokage.method.fitting import finite
from omokage.method.maps import PCA
from omokage.release.methods import FaceMethod

X = np.random.default_rng(0).normal(size=(40, 3))
FRAME = pl.DataFrame({"age": [20.0, 30.0, 40.0, 50.0], "sex": ["f", "m", "f", "m"]})
SMALL = Schema((Numeric("age", 0, 100), Categorical("job", ("a", "b"))), "rich", ("no", "yes"))


def fails(view: Any) -> Any:
    raise ZeroDivisionError


def linked(**how: Any) -> Any:
    return link(X, Anonymizer(**(how or {"grouper": Mondrian(5)}), random_state=0).release(X))


CALLS: list[tuple[str, Callable[[], Any]]] = [
    # the method and the media
    ("person is for arrays: for a frame, name the person's column", lambda: Anonymizer(2).release(FRAME, person=[1, 2, 3, 4])),
    ("all quasi-identifiers are treated alike: leave out the columns' unifiers",
     lambda: Anonymizer(2, synthesis_map=PCA(1)).release(FRAME, roles=Roles(quasi=["age"], rest="drop"), unify={"age": "range"})),
    ("the data hold numbers beyond 1e\\+150: scale them", lambda: Anonymizer(2).release(np.full((4, 2), 1e200))),
    ("must give rows of numbers: it gave", lambda: finite(np.array(["a"]), PCA(1))),
    ("is expecting 3 features as input: give the columns that were fitted", lambda: PCA(2).fit(X).transform(X[:, :2])),
    ("noise is for tables: faces are released in groups, so give a grouper",
     lambda: Anonymizer(noise=Laplace(1.0), group_map=Direct(32), synthesis_map=Morph(64)).release(FaceFolder("."))),
    ("l-diversity and t-closeness need a table", lambda: faces_with(constraints=(1,))),
    # evaluation
    ("the attack fails fails with ZeroDivisionError: correct it, or leave it out", lambda: reidentify(linked(), attack=fails)),
    ("no attack can be tried on this release .*: name another one", lambda: attack_all(linked(), attacks=["likelihood"])),
    ("the release has no Laplace noise, so there is no likelihood", lambda: reidentify(linked(), attack="likelihood")),
    ("the originals have no column 'pay': check its spelling", lambda: linked().column("pay")),
    ("does not name one map of faces for each space", lambda: PublishedMaps(
        FaceMethod(None, (), (), "mean", 64, "png", False, False)).name("group")),
    # learning
    ("canary is 9: give the number of a row, from 0 to 7", lambda: attack(DPSGD(schema=SMALL), rows=8, canary=9)),
    ("classes is 'some': give a list of labels, or 'data'", lambda: DPSGD(bounds=(0, 1), classes="some").fit(X, X[:, 0] > 0)),
    ("are too many to add up exactly at once: choose a smaller batch_size", lambda: norm_grid(1.0, 10, norm=1, rows=10**12)),
    ("training diverged, a parameter is not finite after epoch 3: choose", lambda: check_finite(np.array([np.inf]), "epoch 3")),
    ("a category of column 'job' is listed twice: list each once", lambda: Categorical("job", ("a", "a"))),
    ("are too far apart for whole numbers: stay within", lambda: Numeric("n", 0, 2.0**60, whole=True)),
    ("two classes are spelled alike: list different labels", lambda: Schema((Numeric("a", 0, 1),), "y", ("1", 1))),
]  # fmt: skip


def faces_with(**changed: Any) -> None:
    plan = {"noise": None, "constraints": (), "synthesis_map": Morph(64), "group_map": Direct(32)} | changed
    FaceFolder(".")._check_plan(SimpleNamespace(**plan))


@pytest.mark.parametrize(("words", "call"), CALLS, ids=lambda v: v[:40] if isinstance(v, str) else "")
def test_wrong_calls(words, call):
    with pytest.raises(OmokageError, match=words):
        call()


def test_a_likelihood_in_too_many_coordinates(monkeypatch):
    monkeypatch.setattr(rulers_module, "MOST_COORDINATES", 5)
    with pytest.raises(MapError, match="the likelihood is measured in at most 4,096 coordinates, but the codes have 3"):
        reidentify(linked(noise=Laplace(1.0)), attack="likelihood")


def test_keys_that_a_schema_does_not_have(tmp_path):
    (tmp_path / "s.toml").write_text('target = "y"\nclasses = ["a", "b"]\n[columns.age]\nlow = 0\nhigh = 1\nmiddle = 2\n')
    with pytest.raises(InputError, match=r"has wrong keys \(unknown \['classes'\], missing \[\]\): use"):
        load_schema(tmp_path / "s.toml")


def test_a_folder_of_one_face_is_too_few(drawn_eyes, tmp_path):
    draw_photos(tmp_path, 2)
    with pytest.raises(OmokageError, match="k = 3 needs at least 3 people, but faces of 2 were found: lower k or add photos"):
        Anonymizer(Cells(3), group_map=Direct(32), synthesis_map=Morph(64)).release(FaceFolder(tmp_path, workers=1))


def test_two_random_names_alike(drawn_eyes, tmp_path, monkeypatch):
    draw_photos(tmp_path, 3)
    monkeypatch.setattr("secrets.token_hex", lambda length: "0" * 2 * length)
    with pytest.raises(OmokageError, match="two random names were the same: try again"):
        Anonymizer(Cells(3), group_map=Direct(32), synthesis_map=Morph(64)).release(
            FaceFolder(tmp_path, work=_private(tmp_path / "work"), workers=1)
        )


def _private(folder: Any) -> Any:
    folder.mkdir(mode=0o700)
    return folder
