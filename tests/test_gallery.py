"""Folders of real faces: k people for every picture on the written bytes, nothing of the names, and attacks that must fail."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from omokage import verify
from omokage.errors import InputError, MapError, NotEnoughPeople, OutputError
from omokage.faces import survey as survey_module
from omokage.faces.folder import FaceSettings, anonymize_folder
from omokage.faces.image import decoded
from omokage.faces.listing import list_photos
from omokage.faces.survey import Look, survey
from omokage.release.certificate import Certificate, File
from omokage.release.key import read_key

PHOTOS = 18


@pytest.fixture(scope="module")
def folder(celeba, tmp_path_factory) -> Path:
    """Real photos, one without a face, one that is damaged, one that is no photo, in folders of persons."""
    place = tmp_path_factory.mktemp("photos")
    for number, path in enumerate(celeba[:PHOTOS]):
        person = place / f"person{number // 2}"
        person.mkdir(exist_ok=True)
        shutil.copy(path, person / f"secret-name-{number}.jpg")
    noise = np.random.default_rng(0).integers(0, 255, (200, 200, 3)).astype(np.uint8)
    Image.fromarray(noise).save(place / "person0" / "wall.png")
    (place / "person1" / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 not much of a photo")
    (place / "person1" / "notes.txt").write_text("not a photo")
    return place


@pytest.fixture(scope="module")
def seen(folder, tmp_path_factory) -> Path:
    """A work folder in which all photos were looked at, to begin from."""
    work = tmp_path_factory.mktemp("work")
    survey(list_photos(folder), work, Look(size=128), workers=1)
    return work


def begin(output: Path, seen: Path) -> None:
    """Let a release to ``output`` go on from what was seen before."""
    shutil.copytree(seen, output.parent / f".{output.name}.omokage-faces")


SETTINGS = FaceSettings(3, size=128)


def secret(release: Path, key: Path):
    return read_key(key, Certificate.read(release)[1])


@pytest.fixture
def release(folder, seen, tmp_path):
    out = tmp_path / "out"
    begin(out, seen)
    anonymize_folder(folder, out, SETTINGS, key=tmp_path / "key.json", seed=1, workers=1)
    return out


def test_every_picture_is_shared_by_k_on_the_written_bytes(release, folder, tmp_path):
    pictures = sorted((release / "faces").iterdir())
    contents = [decoded(p.read_bytes()).tobytes() for p in pictures]
    assert len(pictures) == PHOTOS
    assert min(contents.count(c) for c in contents) >= 3
    result = verify(release, key=tmp_path / "key.json")
    assert result.passed
    assert result.found.k >= 3
    assert "photos were left out: " in (release / "CERTIFICATE.md").read_text()
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []  # the work folder is gone


def test_nothing_of_the_names_or_the_order_is_there(release, folder, tmp_path):
    everything = b"".join(p.read_bytes() for p in release.rglob("*") if p.is_file())
    assert b"secret" not in everything
    assert b"person0" not in everything
    key = secret(release, tmp_path / "key.json")
    files = key.faces.files
    order = [files.index(name) for name in sorted(files)]
    assert order != sorted(order)
    names = {p.name for p in (release / "faces").iterdir()}
    assert set(files) == names
    assert all(len(name) == len("0123456789abcdef.png") for name in names)
    picture = decoded((release / "faces" / files[0]).read_bytes())
    same = [i for i, g in enumerate(key.groups) if g == key.groups[0]]
    assert all(np.array_equal(decoded((release / "faces" / files[i]).read_bytes()), picture) for i in same)


def test_an_edited_picture_is_found(release):
    victim = next((release / "faces").iterdir())
    pixels = decoded(victim.read_bytes()).copy()
    pixels[64, 64] ^= 1
    Image.fromarray(pixels).save(victim)
    result = verify(release)
    assert not result.passed
    assert {c.name for c in result.checks if not c.passed} >= {"bytes", "k", "class sizes"}


def test_a_forged_certificate_does_not_help(release):
    """With the hash mended too, the counting still finds the picture that stands alone."""
    victim = next((release / "faces").iterdir())
    pixels = decoded(victim.read_bytes()).copy()
    pixels[64, 64] ^= 1
    Image.fromarray(pixels).save(victim)
    certificate = Certificate.read(release)[0]
    files = tuple(File.of(file.path, (release / file.path).read_bytes()) for file in certificate.files)
    (release / "certificate.json").write_text(replace(certificate, files=files).to_json())
    result = verify(release)
    assert next(c for c in result.checks if c.name == "bytes").passed
    assert not next(c for c in result.checks if c.name == "k").passed


def test_exif_in_a_released_picture_is_found(release):
    victim = next((release / "faces").iterdir())
    exif = Image.Exif()
    exif[0x010E] = "somebody"
    Image.open(victim).save(victim, exif=exif)
    result = verify(release)
    assert not result.passed
    assert any("more than pixels" in c.detail for c in result.checks)


def test_a_missing_or_added_picture_is_found(release):
    first, second = sorted((release / "faces").iterdir())[:2]
    content = first.read_bytes()
    first.unlink()
    assert not verify(release).passed
    first.write_bytes(content)
    assert verify(release).passed
    (release / "faces" / "extra.png").write_bytes(second.read_bytes())
    assert not verify(release).passed


def test_k_counts_people(folder, seen, tmp_path):
    """Two photos of each person: their photos go together, and k = 3 means three people, six photos."""
    out = tmp_path / "out"
    begin(out, seen)
    done = anonymize_folder(folder, out, SETTINGS, person_from="folder", key=tmp_path / "key.json", workers=1)
    key = secret(out, tmp_path / "key.json")
    groups, persons = np.array(key.groups), np.array(key.persons)
    for person in set(persons.tolist()):
        assert len(set(groups[persons == person].tolist())) == 1
    for group in set(groups.tolist()):
        assert len(set(persons[groups == group].tolist())) >= 3
    assert done.certificate.found.k >= 3
    assert done.certificate.counted == "persons"
    assert verify(out, key=tmp_path / "key.json").found.k >= 3
    with pytest.raises(NotEnoughPeople, match="k = 10 needs at least 10 people, but faces of 9 were found"):
        anonymize_folder(folder, tmp_path / "b", FaceSettings(10, size=128), person_from="folder", workers=1)


def test_a_person_with_many_photos_weighs_once(folder, seen, tmp_path):
    """One person's second photo must not make the group's face more theirs than the others'."""
    from omokage.faces import folder as module

    weights = []
    keep = module._unify_one
    out = tmp_path / "out"
    begin(out, seen)
    photos = list_photos(folder)
    table = tmp_path / "persons.csv"
    rows = [{"photo": p.name, "person": "one" if i < 6 else f"p{i}"} for i, p in enumerate(photos)]
    pl.DataFrame(rows).write_csv(table)

    def spy(inside, *rest):
        weights.append([member.share for member in inside])
        return keep(inside, *rest)

    module._unify_one = spy
    try:
        anonymize_folder(folder, out, SETTINGS, person_from="csv", persons=table, key=tmp_path / "key.json", workers=1)
    finally:
        module._unify_one = keep
    assert all(sum(shares) == pytest.approx(1) for shares in weights)
    most = max(weights, key=len)
    assert len({round(share, 6) for share in most}) == 2  # a person's several photos share one person's weight
    assert min(most) < max(most) / 2.5


def test_a_killed_run_goes_on_where_it_was(folder, tmp_path, monkeypatch):
    """Half of the photos were looked at when it was stopped: the second run looks at the others only."""
    out = tmp_path / "out"
    looked: list[Path] = []
    see = survey_module._Eyes.see

    def spy(self, path):
        if len(looked) == 8:
            raise KeyboardInterrupt
        looked.append(path)
        return see(self, path)

    monkeypatch.setattr(survey_module._Eyes, "see", spy)
    with pytest.raises(KeyboardInterrupt):
        anonymize_folder(folder, out, SETTINGS, workers=1)
    assert not out.exists()
    work = tmp_path / ".out.omokage-faces"
    assert work.stat().st_mode & 0o077 == 0
    assert len(list((work / "records").glob("*.npz"))) == 8
    (work / "records" / next((work / "records").iterdir()).name).write_bytes(b"cut short")
    again: list[Path] = []
    monkeypatch.setattr(survey_module._Eyes, "see", lambda self, path: (again.append(path), see(self, path))[1])
    anonymize_folder(folder, out, SETTINGS, workers=1)
    assert len(again) == PHOTOS + 2 - 8 + 1  # and the record that was cut short
    assert verify(out).passed
    assert not work.exists()


def test_a_run_killed_for_good_leaves_no_release(folder, seen, tmp_path):
    """SIGKILL while the faces are made: no output, and the next run ends well."""
    out = tmp_path / "out"
    begin(out, seen)
    code = (
        "import sys, time; from pathlib import Path; from omokage.faces import folder as f; FaceSettings = f.FaceSettings\n"
        "keep = f._unify_one\n"
        "def slow(*a):\n    keep(*a); print('one', flush=True); time.sleep(60)\n"
        "f._unify_one = slow\n"
        f"f.anonymize_folder(Path({str(folder)!r}), Path({str(out)!r}), FaceSettings(3, size=128), workers=1)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "one\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert not out.exists()
    pictures = tmp_path / ".out.omokage-faces" / "pictures"
    first = {p.name: p.stat().st_mtime_ns for p in pictures.iterdir()}
    assert len(first) == 1
    time.sleep(0.01)
    anonymize_folder(folder, out, SETTINGS, workers=1)
    assert verify(out).passed


def test_two_processes_give_the_same_as_one(folder, seen, tmp_path):
    """Only the random names differ."""
    sums = []
    for number, workers in enumerate((1, 2)):
        out = tmp_path / f"out{number}"
        begin(out, seen)
        anonymize_folder(folder, out, FaceSettings(2, size=128), seed=5, workers=workers)
        sums.append(sorted(decoded(p.read_bytes()).sum() for p in (out / "faces").iterdir()))
    assert sums[0] == sums[1]


def test_commands(folder, seen, tmp_path, run):
    out = tmp_path / "out"
    done = run("faces", folder, "-o", out, "--k", 3, "--size", 128, "--synthesis-map", "morph", "--group-map", "recognition",
               "--workers", 1)  # fmt: skip
    assert done.code == 0, done.err
    assert "found     k = " in done.out
    assert "left out" in done.out
    listed = pl.read_csv(tmp_path / "out.left-out.csv")
    assert sorted(listed["photo"].to_list()) == ["person0/wall.png", "person1/broken.jpg"]
    assert "no face was found" in listed["reason"].to_list()
    assert run("verify", out).code == 0
    again = run("faces", folder, "-o", out, "--k", 3)
    assert again.code == 2
    assert "holds an earlier release" in again.err


def test_a_generator_of_ones_own(folder, seen, tmp_path, run):
    pytest.importorskip("torch")
    from small_stylegan2 import STYLE, write_nvidia

    from omokage.evaluate.faces.way import Way
    from omokage.faces.maps import Networks
    from omokage.faces.maps.encoder import Encoder
    from omokage.networks.checkpoints import read_generator

    drawn, out = tmp_path / "own.pkl", tmp_path / "out"
    write_nvidia(drawn, channels={4 << level: 3 for level in range(6)})  # 128 px
    encoder = Encoder(rank=2, style=STYLE, groups=read_generator(drawn).groups)
    encoder.into.weight.normal_(0, 0.02)
    encoder.out.weight.normal_()
    encoder.save(tmp_path / "encoder.safetensors")
    arguments = ("faces", folder, "-o", out, "--k", 3, "--size", 128, "--group-map", "latent", "--synthesis-map", "latent")
    begin(out, seen)
    without = run(*arguments, "--workers", 1, "--generator", drawn)
    assert without.code == 2
    assert "train-encoder" in without.err
    done = run(*arguments, "--workers", 1, "--generator", drawn, "--encoder", tmp_path)
    assert done.code == 0, done.err
    assert verify(out).passed
    networks = Networks(drawn, tmp_path)
    certificate = Certificate.read(out)[0]
    assert certificate.method.networks["generator"] == networks.digests["generator"]
    assert Way.of(certificate, networks).same
    with pytest.raises(MapError, match="other networks"):
        Way.of(certificate).synthesis_map()


def test_wrong_input_is_one_sentence(folder, tmp_path, run):
    for arguments, message in (
        ((tmp_path / "nowhere", "-o", tmp_path / "o", "--k", 3), "is not a folder"),
        ((tmp_path, "-o", tmp_path / "o", "--k", 3), "holds no photos"),
        ((folder, "-o", folder / "out", "--k", 3), "must not lie in the folder of the photos"),
        ((folder, "-o", tmp_path / "o", "--k", 0), "k must be"),
        ((folder, "-o", tmp_path / "o", "--k", 3, "--group-map", "zodiac"), "there is no group map 'zodiac'"),
        ((folder, "-o", tmp_path / "o", "--k", 3, "--synthesis-map", "recognition"), "can group but not synthesize"),
        ((folder, "-o", tmp_path / "o", "--k", 3, "--size", 100), "multiple of 32"),
        ((folder, "-o", tmp_path / "o", "--k", 3, "--format", "gif"), "png, jpg or webp"),
        ((folder, "-o", tmp_path / "o", "--k", 3, "--person-from", "csv"), "needs the table"),
        ((folder, "-o", tmp_path / "o", "--k", 3, "--person-from", "folder", "--every-face"), "leave out --every-face"),
    ):
        result = run("faces", *arguments)
        assert result.code == 2, arguments
        assert message in result.err
        assert len(result.err.strip().splitlines()) == 1
        assert not (tmp_path / "o").exists()


def test_persons_must_be_known(folder, tmp_path):
    table = tmp_path / "persons.csv"
    table.write_text("photo,person\nperson0/secret-name-0.jpg,a\n")
    with pytest.raises(InputError, match=r"does not say whom 19 of 20 photos show"):
        list_photos(folder, "csv", table)
    table.write_text("photo,person\na.jpg,a\na.jpg,b\n")
    with pytest.raises(InputError, match="more than once"):
        list_photos(folder, "csv", table)
    table.write_text("picture,who\na.jpg,a\n")
    with pytest.raises(InputError, match="needs the columns photo"):
        list_photos(folder, "csv", table)
    (tmp_path / "flat").mkdir()
    shutil.copy(next(folder.rglob("*.jpg")), tmp_path / "flat" / "a.jpg")
    with pytest.raises(InputError, match="1 photos lie in no person's folder"):
        list_photos(tmp_path / "flat", "folder")


def test_a_full_disk_is_an_output_error(folder, seen, tmp_path, monkeypatch):
    from omokage.faces import folder as module

    out = tmp_path / "out"
    begin(out, seen)

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "classes_of_pictures", full)
    with pytest.raises(OutputError, match="No space left"):
        anonymize_folder(folder, out, SETTINGS, workers=1)
    assert not out.exists()
