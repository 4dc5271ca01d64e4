"""Photos by names that are no text, steer a terminal or look like markup; and what is called a photo but is none."""

from __future__ import annotations

import csv
import json
import os
import shutil
import socket
import string

import pytest
from drawn import draw_photos, release_faces
from hypothesis import given
from hypothesis import strategies as st

from omokage import verify
from omokage.errors import InputError, PhotoError
from omokage.faces import image as image_module
from omokage.faces.image import read_photo
from omokage.faces.listing import escaped, list_photos

HOSTILE = {
    b"caf\xe9.png": "caf\\xe9.png",  # Latin-1
    b"a\nb.png": "a\\x0ab.png",
    b"\x1b]0;owned\x07.png": "\\x1b]0;owned\\x07.png",
    b"[red]x[@click=1].png": "[red]x[@click=1].png",
    b"=cmd|calc.png": "=cmd|calc.png",
    b"back\\slash.png": "back\\\\slash.png",
    "turned\u202egnp.png".encode(): "turned\\u202egnp.png",
    "Müller 面影.png".encode(): "Müller 面影.png",
}
posix = pytest.mark.skipif(os.name == "nt", reason="Windows names are text")


@pytest.fixture
def hostile(tmp_path):
    """Photos with these names, and one of them no photo."""
    made = draw_photos(tmp_path / "made", len(HOSTILE))
    folder = tmp_path / "photos"
    folder.mkdir()
    for path, name in zip(made, HOSTILE, strict=True):
        shutil.copy(path, os.fsencode(folder) + b"/" + name)
    (folder / os.fsdecode(b"no\xff photo\x1b.png")).write_bytes(b"text")
    return folder


@posix
def test_any_name_is_listed_as_printable_text(hostile):
    names = [photo.name for photo in list_photos(hostile)]
    assert set(HOSTILE.values()) < set(names)
    assert all(name.isprintable() for name in names)
    assert all(photo.path.exists() for photo in list_photos(hostile))


@given(st.lists(st.text(st.characters() | st.sampled_from("\\xun0\udc80\udcff\x80\n")), min_size=2, max_size=2, unique=True))
def test_no_two_names_are_escaped_alike(names):
    one, other = (escaped(name) for name in names)
    assert one != other
    assert one.isprintable()
    one.encode()


def test_a_control_character_is_not_the_byte_of_that_number():
    assert escaped("\x85.png") == "\\u0085.png"
    assert escaped(os.fsdecode(b"\x85.png")) == "\\x85.png"


@posix
@pytest.mark.usefixtures("drawn_eyes")
def test_a_latin_1_name_goes_all_the_way(hostile, tmp_path, run):
    """The attack: a traceback. Now key and list hold the escaped name, and the terminal gets no escape code."""
    out, key = tmp_path / "out", tmp_path / "key.json"
    done = run("faces", hostile, "-o", out, "--k", 3, "--size", 64, "--workers", 1, "--key", key)
    assert done.code == 0, done.err
    assert verify(out, key=key).passed
    assert json.loads(key.read_text(encoding="utf-8"))["key"]["faces"]["photos"] == sorted(HOSTILE.values())
    with (tmp_path / "out.left-out.csv").open(encoding="utf-8", newline="") as file:
        assert [row["photo"] for row in csv.DictReader(file)] == ["no\\xff photo\\x1b.png"]
    assert "\x1b" not in done.out + done.err
    assert "no\\xff photo\\x1b.png: it is not a JPEG" in done.err


@posix
@pytest.mark.usefixtures("drawn_eyes")
def test_persons_by_names_that_are_no_text(hostile, tmp_path):
    """A folder named in Latin-1 is a person; a table names photos as they are listed."""
    person = os.fsencode(tmp_path) + b"/people/Ren\xe9e"
    os.makedirs(person)
    shutil.copy(next(hostile.iterdir()), person + b"/a.png")
    assert [photo.person for photo in list_photos(tmp_path / "people", "folder")] == ["Ren\\xe9e"]
    table = tmp_path / "persons.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [("photo", "person"), *((photo.name, f"p{i % 4}") for i, photo in enumerate(list_photos(hostile)))]
        )
    release_faces(hostile, tmp_path / "out", k=2, person_from="csv", persons=table)
    assert verify(tmp_path / "out").found.k >= 2


# ---------------------------------------------------------------------- called a photo, but none


@posix
@pytest.mark.usefixtures("drawn_eyes")
def test_pipes_devices_and_links(tmp_path):
    """A pipe does not make it wait; a link to a photo is that photo; everything else is left out and named."""
    folder = tmp_path / "photos"
    first = draw_photos(folder, 4)[0]
    os.mkfifo(folder / "pipe.png")
    (folder / "link.png").symlink_to(first)
    (folder / "nowhere.png").symlink_to(tmp_path / "nothing")
    (folder / "zero.png").symlink_to("/dev/zero")
    (folder / "to-pipe.png").symlink_to("pipe.png")
    (folder / "loop.png").symlink_to("loop.png")
    (folder / "around").symlink_to(folder)
    (folder / "folder.png").mkdir()
    server = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(folder)  # the address of a socket must be short
    server.bind("socket.png")
    os.chdir(here)
    names = {photo.name for photo in list_photos(folder)}
    assert {"link.png", "pipe.png", "socket.png"} < names
    assert not {name for name in names if "/" in name}
    done = release_faces(folder, tmp_path / "out", k=2)
    server.close()
    left = {each.photo: each.reason for each in done.left_out}
    assert left.keys() == {"pipe.png", "nowhere.png", "zero.png", "to-pipe.png", "loop.png", "socket.png"}
    assert left["pipe.png"] == left["to-pipe.png"] == left["zero.png"] == "it is not a regular file"
    assert left["nowhere.png"] == "it is not there"
    assert done.certificate.found.rows == 5


@posix
def test_a_pipe_for_a_group_photo(tmp_path, run):
    os.mkfifo(tmp_path / "party.jpg")
    told = run("photo", tmp_path / "party.jpg", "-o", tmp_path / "out.png")
    assert told.code == 2
    assert "party.jpg cannot be used: it is not a regular file" in told.err


def test_what_may_not_be_read_is_said(tmp_path, monkeypatch):
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    draw_photos(tmp_path, 1)
    monkeypatch.setattr(image_module.os, "open", refuse)
    with pytest.raises(PhotoError, match="you may not read it"):
        read_photo(tmp_path / "person0.png")


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_cannot_be_read_is_an_error(tmp_path):
    draw_photos(tmp_path / "closed", 2)
    (tmp_path / "closed").chmod(0)
    with pytest.raises(InputError, match="a folder of the photos cannot be read"):
        list_photos(tmp_path)


def test_a_file_too_large_is_refused_unread(tmp_path):
    with (tmp_path / "huge.png").open("wb") as file:
        file.truncate(2_000_000_000)  # of holes
    with pytest.raises(PhotoError, match="more than 1,000 million"):
        read_photo(tmp_path / "huge.png")


def tiff(width: int, height: int) -> bytes:
    """A TIFF's head: one strip, eight bits of grey."""
    tags = [(256, width), (257, height), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1), (278, height), (279, 16)]
    entries = b"".join(tag.to_bytes(2, "little") + b"\4\0\1\0\0\0" + value.to_bytes(4, "little") for tag, value in tags)
    return b"II*\0\x08\0\0\0" + len(tags).to_bytes(2, "little") + entries + b"\0\0\0\0"


@pytest.mark.parametrize("side", [30_000, 65_535, 2**31 - 1])
def test_a_huge_tiff_is_refused_before_it_is_decoded(tmp_path, side):
    (tmp_path / "bomb.tif").write_bytes(tiff(side, side))
    with pytest.raises(PhotoError, match=r"decompression bomb|damaged"):
        read_photo(tmp_path / "bomb.tif")


def test_markup_in_names_of_photos_is_printed_as_it_is(tmp_path, run):
    name = "[bold]x[" + string.punctuation.replace("/", "") + "].jpg"
    (tmp_path / name).write_bytes(b"text")
    told = run("photo", tmp_path / name, "-o", tmp_path / "out.png")
    assert told.code == 2
    assert f"{name} cannot be used: it is not a JPEG" in told.err
