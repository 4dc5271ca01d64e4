"""Folders of faces: k people for every picture on the written bytes, nothing of the names, and attacks that must fail.

The people are drawn, so this is tested everywhere; at the end the same with networks, on people who do not exist, and on photos.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from drawn import SIZE, DrawnEyes, at, draw_photo, draw_photos, drawn_portrait, interrupt, release_faces
from PIL import Image

from omokage import verify
from omokage.base import files as files_module
from omokage.errors import InputError, MapError, NotEnoughPeople, OutputError
from omokage.faces.image import decoded
from omokage.faces.listing import list_photos
from omokage.faces.maps.direct import Direct
from omokage.faces.maps.morph import Morph
from omokage.faces.portrait import Portrait
from omokage.faces.work_folder import work_of
from omokage.release.certificate import Certificate, File
from omokage.release.key import read_key

PHOTOS = 24  # of the album that show somebody

pytestmark = pytest.mark.usefixtures("drawn_eyes")


def secret(release: Path, key: Path):
    return read_key(key, Certificate.read(release)[1])


@pytest.fixture
def release(face_release, tmp_path) -> Path:
    """A release to be damaged."""
    return face_release.copy(tmp_path).release


def pixels_of(release: Path) -> list[np.ndarray]:
    return [decoded(path.read_bytes()) for path in sorted((release / "faces").iterdir())]


def test_every_picture_is_shared_by_k_on_the_written_bytes(face_release):
    contents = [pixels.tobytes() for pixels in pixels_of(face_release.release)]
    assert len(contents) == PHOTOS
    assert 3 <= min(contents.count(c) for c in contents) < PHOTOS
    result = verify(face_release.release, key=face_release.key)
    assert result.passed
    assert result.found.k >= 3
    assert "2 photos were left out: " in (face_release.release / "CERTIFICATE.md").read_text()
    assert [p.name for p in face_release.release.parent.iterdir() if p.name.startswith(".")] == []  # the work folder is gone


def test_nothing_of_the_names_or_the_order_is_there(face_release):
    release = face_release.release
    everything = b"".join(p.read_bytes() for p in release.rglob("*") if p.is_file())
    assert b"secret" not in everything
    assert b"person0" not in everything
    key = secret(release, face_release.key)
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
    pixels[SIZE // 2, SIZE // 2] ^= 1
    Image.fromarray(pixels).save(victim)
    result = verify(release)
    assert not result.passed
    assert {c.name for c in result.checks if not c.passed} >= {"bytes", "k", "class sizes"}


def test_a_forged_certificate_does_not_help(release):
    """With the hash mended too, the counting still finds the picture that stands alone."""
    victim = next((release / "faces").iterdir())
    pixels = decoded(victim.read_bytes()).copy()
    pixels[SIZE // 2, SIZE // 2] ^= 1
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


def test_k_counts_people(album, tmp_path):
    """Two photos of each person: their photos go together, and k = 3 means three people, six photos."""
    out = tmp_path / "out"
    done = release_faces(album, out, k=3, person_from="folder", key=tmp_path / "key.json")
    key = secret(out, tmp_path / "key.json")
    groups, persons = np.array(key.groups), np.array(key.persons)
    for person in set(persons.tolist()):
        assert len(set(groups[persons == person].tolist())) == 1
    for group in set(groups.tolist()):
        assert len(set(persons[groups == group].tolist())) >= 3
    assert done.certificate.found.k >= 3
    assert done.certificate.counted == "persons"
    assert verify(out, key=tmp_path / "key.json").found.k >= 3
    with pytest.raises(NotEnoughPeople, match="k = 13 needs at least 13 people, but faces of 12 were found"):
        release_faces(album, tmp_path / "b", k=13, person_from="folder")


def test_a_person_with_many_photos_weighs_once(tmp_path):
    """One person's further photos must not make the group's face more theirs than the others'."""
    people = [0, 0, 0, 1, 2]  # whom each photo shows
    for number in range(len(people)):
        draw_photo(tmp_path / "photos" / f"{number}.png", number)
    rows = [{"photo": f"{number}.png", "person": f"p{person}"} for number, person in enumerate(people)]
    pl.DataFrame(rows).write_csv(tmp_path / "persons.csv")
    release_faces(
        tmp_path / "photos", tmp_path / "out", k=3, synthesis_map="direct", person_from="csv", persons=tmp_path / "persons.csv"
    )
    direct = Direct(SIZE)
    kept = [Portrait.of_arrays(drawn_portrait(number, SIZE).arrays()) for number in range(len(people))]
    vectors = np.stack([direct.encode(portrait) for portrait in kept])
    shares = np.array([1 / people.count(person) for person in people]) / 3
    fair, unfair = (direct.decode(np.average(vectors, axis=0, weights=w).astype(np.float32)) for w in (shares, None))
    for picture in pixels_of(tmp_path / "out"):
        assert np.abs(picture.astype(int) - fair).max() <= 1
        assert np.abs(picture.astype(int) - unfair).max() > 10


def test_a_killed_run_goes_on_where_it_was(album, tmp_path, monkeypatch):
    """Eight photos were looked at when it was stopped: the second run looks at the others only."""
    out, work = tmp_path / "out", work_of(tmp_path / "out")
    with pytest.raises(KeyboardInterrupt):
        release_faces(album, out, k=3, progress=at("finding faces", 8, interrupt))
    assert not out.exists()
    assert work.stat().st_mode & 0o077 == 0
    records = list((work / "records").glob("*.npz"))
    assert len(records) == 8
    records[0].write_bytes(b"cut short")
    again: list[Path] = []
    see = DrawnEyes.see
    monkeypatch.setattr(DrawnEyes, "see", lambda self, path: (again.append(path), see(self, path))[1])
    release_faces(album, out, k=3)
    assert len(again) == PHOTOS + 2 - 8 + 1  # and the record that was cut short
    assert verify(out).passed
    assert not work.exists()


def test_a_run_killed_for_good_leaves_no_release(album, tmp_path):
    """SIGKILL while the faces are made: no output, and the next run ends well."""
    out = tmp_path / "out"
    code = (
        "import sys, time; from pathlib import Path; sys.path[:0] = [sys.argv[3]]\n"
        "import pytest; from drawn import at, release_faces, use_drawn_eyes\n"
        "use_drawn_eyes(pytest.MonkeyPatch())\n"
        "def wait(): print('one', flush=True); time.sleep(60)\n"
        "release_faces(Path(sys.argv[1]), Path(sys.argv[2]), k=3, progress=at('making faces', 1, wait))\n"
    )
    command = [sys.executable, "-c", code, str(album), str(out), str(Path(__file__).parent)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "one\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not out.exists()
    (first,) = (work_of(out) / "pictures").iterdir()
    made, kept = first.stat().st_mtime_ns, []
    release_faces(album, out, k=3, progress=at("making faces", 2, lambda: kept.append(first.stat().st_mtime_ns)))
    assert kept == [made]  # the picture that was done is not made again
    assert verify(out).passed


def test_two_processes_give_the_same_as_one(tmp_path, monkeypatch):
    """Only the random names differ."""
    draw_photos(tmp_path / "photos", 44)  # fewer than sixteen groups would be made here
    sums = []
    for workers in (1, 2):
        out = tmp_path / f"out{workers}"
        with pytest.raises(KeyboardInterrupt):  # photos are looked at here
            release_faces(tmp_path / "photos", out, k=2, seed=5, progress=at("making faces", 0, interrupt))
        if workers == 2:  # and faces are made in the processes
            monkeypatch.setattr(Morph, "decode", lambda *arguments: pytest.fail("a face was made here"))
        release_faces(tmp_path / "photos", out, k=2, seed=5, workers=workers)
        sums.append(sorted(pixels.sum() for pixels in pixels_of(out)))
    assert sums[0] == sums[1]
    assert len(set(sums[0])) >= 16


def test_commands(album, tmp_path, run):
    out = tmp_path / "out"
    done = run("faces", album, "-o", out, "--k", 3, "--size", SIZE, "--synthesis-map", "morph", "--group-map", "recognition",
               "--workers", 1)  # fmt: skip
    assert done.code == 0, done.err
    assert "found     k = " in done.out
    assert "left out" in done.out
    listed = pl.read_csv(tmp_path / "out.left-out.csv")
    assert sorted(listed["photo"].to_list()) == ["person0/wall.png", "person1/broken.jpg"]
    assert "no face was found" in listed["reason"].to_list()
    assert run("verify", out).code == 0
    again = run("faces", album, "-o", out, "--k", 3)
    assert again.code == 2
    assert "holds an earlier release" in again.err


def test_a_generator_of_ones_own(album, tmp_path, run):
    pytest.importorskip("torch")
    from small_stylegan2 import STYLE, write_nvidia

    from omokage.base.parts import digest_of
    from omokage.evaluate.faces.published import PublishedMaps
    from omokage.faces.maps import Networks
    from omokage.faces.maps.encoder import Encoder
    from omokage.networks.checkpoints import read_generator

    drawn, out = tmp_path / "own.pkl", tmp_path / "out"
    write_nvidia(drawn, channels={4 << level: 3 for level in range(5)})  # 64 px
    encoder = Encoder(rank=2, style=STYLE, groups=read_generator(drawn).groups)
    encoder.into.weight.normal_(0, 0.02)
    encoder.out.weight.normal_()
    encoder.save(tmp_path / "encoder.safetensors")
    arguments = ("faces", album, "-o", out, "--k", 3, "--size", SIZE, "--group-map", "latent", "--synthesis-map", "latent")
    without = run(*arguments, "--workers", 1, "--generator", drawn)
    assert without.code == 2
    assert "train-encoder" in without.err
    done = run(*arguments, "--workers", 1, "--generator", drawn, "--encoder", tmp_path)
    assert done.code == 0, done.err
    assert verify(out).passed
    networks = Networks(drawn, tmp_path)
    certificate = Certificate.read(out)[0]
    assert certificate.method.synthesis_map[0].options["generator"] == digest_of(drawn)
    made = PublishedMaps.of(certificate, networks).make("synthesis")
    assert (made.generator, made.encoder) == (drawn, tmp_path / "encoder.safetensors")
    with pytest.raises(MapError, match="another network; give it by --generator"):
        PublishedMaps.of(certificate).make("synthesis")


def test_wrong_input_is_one_sentence(album, tmp_path, run):
    for arguments, message in (
        ((tmp_path / "nowhere", "-o", tmp_path / "o", "--k", 3), "is not a folder"),
        ((tmp_path, "-o", tmp_path / "o", "--k", 3), "holds no photos"),
        ((album, "-o", album / "out", "--k", 3), "must not lie in the folder of the photos"),
        ((album, "-o", tmp_path / "o", "--k", 0), "k must be"),
        ((album, "-o", tmp_path / "o", "--k", 3, "--group-map", "zodiac"), "there is no face map 'zodiac'"),
        ((album, "-o", tmp_path / "o", "--k", 3, "--synthesis-map", "recognition"), "cannot draw a face from its numbers"),
        ((album, "-o", tmp_path / "o", "--k", 3, "--size", 100), "multiple of 32"),
        ((album, "-o", tmp_path / "o", "--k", 3, "--format", "gif"), "png, jpg or webp"),
        ((album, "-o", tmp_path / "o", "--k", 3, "--person-from", "csv"), "needs the table"),
        ((album, "-o", tmp_path / "o", "--k", 3, "--person-from", "folder", "--every-face"), "leave out --every-face"),
    ):
        result = run("faces", *arguments)
        assert result.code == 2, arguments
        assert message in result.err
        assert len(result.err.strip().splitlines()) == 1
        assert not (tmp_path / "o").exists()


def test_persons_must_be_known(album, tmp_path):
    table = tmp_path / "persons.csv"
    table.write_text("photo,person\nperson0/secret-name-00.png,a\n")
    with pytest.raises(InputError, match=r"does not say whom 25 of 26 photos show"):
        list_photos(album, "csv", table)
    table.write_text("photo,person\na.jpg,a\na.jpg,b\n")
    with pytest.raises(InputError, match="more than once"):
        list_photos(album, "csv", table)
    table.write_text("picture,who\na.jpg,a\n")
    with pytest.raises(InputError, match="has no column of photos: call it photo"):
        list_photos(album, "csv", table)
    (tmp_path / "flat").mkdir()
    shutil.copy(next(album.rglob("*.jpg")), tmp_path / "flat" / "a.jpg")
    with pytest.raises(InputError, match="1 photos lie in no person's folder"):
        list_photos(tmp_path / "flat", "folder")


def test_a_full_disk_is_an_output_error(album, tmp_path, monkeypatch):
    def fill_the_disk() -> None:
        def full(*arguments: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(files_module.os, "fsync", full)

    with pytest.raises(OutputError, match="No space left"):
        release_faces(album, tmp_path / "out", k=3, progress=at("making faces", 2, fill_the_disk))
    assert not (tmp_path / "out").exists()
