"""``verify`` cannot be talked round: forged, damaged and hostile certificates, keys and folders."""

from __future__ import annotations

import json
import os
import random
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from omokage import Anonymizer, LDiversity, Mondrian, Roles, read_table, verify
from omokage.errors import InputError, OmokageError, OutputError, VerificationError
from omokage.release.certificate import Certificate, Column, File, Found, KAnonymity, Rule
from omokage.release.key import read_key
from omokage.release.signing import keygen
from omokage.release.text import readable

ROLES = Roles(identifier=["name"], quasi=["age", "town"], sensitive=["ill"])


def originals(n: int = 60) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "name": [f"Person Number {i:04d}" for i in range(n)],
            "age": rng.integers(20, 80, n),
            "town": rng.choice(["Oslo", "Rome", "Bern"], n),
            "ill": rng.choice(["flu", "cold"], n),
        }
    )


@pytest.fixture(scope="module")
def pristine(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("pristine")
    originals().write_csv(place / "in.csv")
    release = Anonymizer(Mondrian(4), constraints=[LDiversity(2)], random_state=0).release(
        read_table(place / "in.csv"), roles=ROLES
    )
    release.write(place / "out", key=place / "key.json")
    return place


@pytest.fixture
def place(pristine, tmp_path) -> Path:
    shutil.copytree(pristine, tmp_path / "p")
    return tmp_path / "p"


def forge(place: Path, certificate: Certificate) -> Path:
    """A forger mends everything that can be mended: the hashes and the page to show."""
    out = place / "out"
    files = tuple(File.of(file.path, (out / file.path).read_bytes()) for file in certificate.files)
    certificate = replace(certificate, files=files)
    (out / "certificate.json").write_text(certificate.to_json())
    (out / "CERTIFICATE.md").write_text(readable(certificate))
    return out


# ---------------------------------------------------------------------- raw originals under a good certificate


def test_one_letter_of_the_promise(place, run):
    """Any kind but the two known ones was passed over, so raw originals were blessed."""
    out = place / "out"
    shutil.copy(place / "in.csv", out / "data.csv")
    certificate = Certificate.read(out)[0]
    text = replace(certificate, files=(File.of("data.csv", (out / "data.csv").read_bytes()),)).to_json()
    (out / "certificate.json").write_text(text.replace('"k-anonymity"', '"k-Anonymity"'))
    result = run("verify", out)
    assert result.code == 2
    assert "damaged" in result.err


def test_raw_originals_under_a_mended_certificate(place, run):
    out = place / "out"
    read_table(place / "in.csv").frame.drop("name").write_csv(out / "data.csv")
    forge(place, Certificate.read(out)[0])
    assert run("verify", out).code == 1
    columns = tuple(replace(c, role="keep", unify=None) if c.name == "age" else c for c in Certificate.read(out)[0].columns)
    forge(place, replace(Certificate.read(out)[0], columns=columns))
    result = verify(out)
    assert not result.passed  # the class sizes are not those certified; with them forged too, the certificate says what is kept
    assert result.exit_code == 1


@pytest.mark.parametrize("what", ["in.csv", "key.json"])
def test_originals_and_the_key_laid_into_the_folder_are_seen(place, run, what):
    shutil.copy(place / what, place / "out" / what)
    result = run("verify", place / "out")
    assert result.code == 1
    assert "does not list" in result.out


def test_hidden_files_links_and_folders_are_seen(place):
    out = place / "out"
    for make in (
        lambda path: path.write_bytes(b""),
        lambda path: path.mkdir(),
        lambda path: path.symlink_to(place / "in.csv"),
        lambda path: os.mkfifo(path),
    ):
        make(out / ".hidden")
        assert verify(out).exit_code == 1
        path = out / ".hidden"
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    assert verify(out).exit_code == 0


def test_a_link_in_place_of_the_data_is_not_followed(place):
    out = place / "out"
    (place / "moved.csv").write_bytes((out / "data.csv").read_bytes())
    (out / "data.csv").unlink()
    (out / "data.csv").symlink_to(place / "moved.csv")
    assert verify(out).exit_code == 1


@pytest.mark.parametrize("name", ["certificate.json", "data.csv", "CERTIFICATE.md", "certificate.sig"])
def test_a_pipe_does_not_hang_it(place, run, name):
    path = place / "out" / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    assert run("verify", place / "out").code == (2 if name == "certificate.json" else 1)
    key = place / "pipe"
    os.mkfifo(key)
    assert run("verify", place / "out", "--key", key).code == 2
    assert run("verify", place / "out", "--signer", key).code == 2


# ---------------------------------------------------------------------- certificates damaged by hand

HAND = [
    ("promise.k", 1), ("promise.k", 2.5), ("promise.k", "4"), ("promise.k", True), ("promise.k", None), ("promise.k", 10**30),
    ("promise.counted", "people"), ("promise.kind", "noise"), ("promise", {}), ("promise", None), ("promise.extra", 1),
    ("found.class_sizes", [[4]]), ("found.class_sizes", {"4": 15}), ("found.k", -1), ("found.constraints", [{}]),
    ("found.rows", 1e400), ("method.medium", "faces"), ("method.scale", "banana"), ("method.digits", float("nan")),
    ("method.group_map", [{"name": "pca"}]), ("method.seed", 1), ("columns", []), ("columns", [{"name": "age"}]),
    ("source.sha256", "0" * 64), ("files", []), ("files", [{"path": "../in.csv", "bytes": 1, "sha256": "0" * 64}]),
    ("files", [{"path": "/etc/passwd", "bytes": 1, "sha256": "0" * 64}]), ("notes", ["x" * 5000]), ("notes", "text"),
    ("versions", {"python": 3}), ("format", "omokage-certificate/1"), ("around", {"hidden_values": 0}),
]  # fmt: skip


@pytest.mark.parametrize(("where", "value"), HAND)
def test_a_certificate_damaged_by_hand_is_refused_in_one_sentence(place, run, where, value):
    path = place / "out" / "certificate.json"
    raw = json.loads(path.read_text())
    *outer, last = where.split(".")
    inner = raw
    for name in outer:
        inner = inner[name]
    inner[last] = value
    path.write_text(json.dumps(raw, indent=1, ensure_ascii=False) + "\n")
    result = run("verify", place / "out")
    assert result.code in (1, 2)
    assert "Traceback" not in result.err + result.out
    assert len(result.err.strip().splitlines()) <= 1


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"format": "omokage-certificate/2"}', b"1e999", b"\x00" * 100],
)
def test_what_is_no_certificate_at_all(place, run, content):
    (place / "out" / "certificate.json").write_bytes(content)
    assert run("verify", place / "out").code == 2
    (place / "key.json").write_bytes(content)
    assert run("verify", place / "out", "--key", place / "key.json").code == 2


def test_only_the_bytes_that_omokage_writes_are_read(place):
    path = place / "out" / "certificate.json"
    text = path.read_text()
    for other in (
        text.replace('"promise": {', '"promise": {\n  "k": 2,', 1),  # a key twice, where the last one wins
        text.replace("\n", "\r\n"),
        text + "\n",
        " " + text,
        json.dumps(json.loads(text)),
        text.replace("omokage", "\\u006fmokage", 1),
    ):
        with pytest.raises(VerificationError, match="damaged"):
            Certificate.from_json(other)
    assert Certificate.from_json(text).to_json() == text


def test_a_certificate_that_contradicts_itself_fails(place):
    certificate = Certificate.read(place / "out")[0]
    found = certificate.found
    for forged in (
        replace(certificate, promise=KAnonymity(50, "rows")),
        replace(certificate, found=replace(found, k=found.k + 1)),
        replace(certificate, found=replace(found, class_sizes=((60, 1),), groups=1, k=60)),
        replace(certificate, found=replace(found, constraints=(Rule("distinct l-diversity", "ill", 2.0, 9.0),))),
        replace(certificate, found=replace(found, constraints=(Rule("distinct l-diversity", "age", 2.0, 2.0),))),
        replace(certificate, columns=tuple(Column(c.name, "quasi", c.kind, c.unify) for c in certificate.columns)),
    ):
        out = forge(place, forged)
        assert verify(out).exit_code == 1, forged


def test_persons_that_cannot_be_counted_are_not_taken_for_counted(tmp_path, run):
    frame = pl.DataFrame({"who": [f"p{i // 3}" for i in range(30)], "v": np.arange(30) // 3})
    release = Anonymizer(Mondrian(2), random_state=0).release(frame, roles=Roles(quasi=["v"], person="who"))
    out = release.write(tmp_path / "out", key=tmp_path / "key.json")
    without = run("verify", out)
    assert without.code == 2
    assert "could NOT be fully checked" in without.out
    assert run("verify", out, "--key", tmp_path / "key.json").code == 0
    raw = json.loads((tmp_path / "key.json").read_text())
    raw["key"]["persons"] = [0] * 30
    (tmp_path / "key.json").write_text(json.dumps(raw))
    assert run("verify", out, "--key", tmp_path / "key.json").code == 1


# ---------------------------------------------------------------------- mutations


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Bytes flipped, cut, doubled, or a value exchanged for a strange one."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data))
        match rng.randrange(6):
            case 0:
                data[at] = rng.randrange(256)
            case 1:
                del data[at : at + rng.randint(1, 40)]
            case 2:
                data[at:at] = data[at : at + rng.randint(1, 40)]
            case 3:
                data[at:at] = rng.choice([b"null", b"-1", b"1e999", b"\\ud800", b'"', b"{", b"]", b"\x00", b"9" * 50])
            case 4:
                data = data[: at + 1]
            case 5:
                number = rng.choice([b"0", b"1", b"-5", b"2.5", b"true", b"[]", b'"x"'])
                text = bytes(data)
                digit = next((i for i in range(at, len(text)) if text[i : i + 1].isdigit()), at)
                data[digit : digit + 1] = number
        if not data:
            data = bytearray(b"0")
    return bytes(data)


def test_mutated_certificates_and_keys_are_refused_without_a_traceback(place):
    """1,500 in a second or two; benchmarks/hostile.py does many more."""
    rng = random.Random(11)
    certificate, key = (place / "out" / "certificate.json").read_bytes(), (place / "key.json").read_bytes()
    digest = Certificate.read(place / "out")[1]
    refused = 0
    for _ in range(1000):
        content = mutated(certificate, rng)
        try:
            assert Certificate.from_json(content).to_json().encode() == content
        except VerificationError:
            refused += 1
    for _ in range(500):
        (place / "mutated.json").write_bytes(mutated(key, rng))
        try:
            read_key(place / "mutated.json", digest)
        except InputError:
            refused += 1
    assert refused > 750  # what is left changed a number, a name or a note: verify counts those on the bytes


# ---------------------------------------------------------------------- signatures


def test_signed_releases(place, run):
    keys = [keygen(place / name) for name in ("steward", "somebody")]
    (private, public), (_, other) = keys
    assert private.stat().st_mode & 0o077 == 0
    with pytest.raises(OutputError):
        keygen(place / "steward")
    out = place / "signed"
    made = run("table", place / "in.csv", "-o", out, "--k", 4, "--identifier", "name", "--quasi", "age,town", "--sensitive",
               "ill", "--sign", private)  # fmt: skip
    assert made.code == 0, made.err
    assert run("verify", out).code == 0
    assert run("verify", out, "--signer", public).code == 0
    assert run("verify", out, "--signer", other).code == 1
    assert run("verify", out, "--signer", private).code == 2
    assert run("verify", place / "out", "--signer", public).code == 1  # not signed
    assert run("verify", out, "--signer", place / "in.csv").code == 2
    signature = (out / "certificate.sig").read_bytes()
    assert len(signature) == 64
    certificate = Certificate.read(out)[0]
    forged = replace(certificate, notes=("all is well",))
    (out / "certificate.json").write_text(forged.to_json())
    (out / "CERTIFICATE.md").write_text(readable(forged))
    assert run("verify", out).code == 0  # consistent, and by nobody knows whom
    assert run("verify", out, "--signer", public).code == 1
    for damaged in (b"", signature[:-1], signature + b"0", bytes(64)):
        (out / "certificate.json").write_text(certificate.to_json())
        (out / "certificate.sig").write_bytes(damaged)
        assert run("verify", out, "--signer", public).code == 1
    bad = run("table", place / "in.csv", "-o", place / "o", "--k", 4, "--quasi", "age", "--rest", "drop", "--sign", public)
    assert bad.code == 2
    assert not (place / "o").exists()


def test_keygen_command(tmp_path, run):
    done = run("keygen", "-o", tmp_path / "steward.key")
    assert done.code == 0
    assert (tmp_path / "steward.key.pub").read_text().startswith("-----BEGIN PUBLIC KEY-----")
    assert run("keygen", "-o", tmp_path / "steward.key").code == 2
    (tmp_path / "half.pub").write_text("mine")
    assert run("keygen", "-o", tmp_path / "half").code == 2
    assert not (tmp_path / "half").exists()
    assert (tmp_path / "half.pub").read_text() == "mine"


# ---------------------------------------------------------------------- what reaches the terminal

EVIL = "job\x1b[31m\x1b]0;owned\x07[/red]\u202e[link=x]"


def test_names_from_outside_neither_steer_the_terminal_nor_crash(tmp_path, run):
    frame = originals().rename({"ill": EVIL})
    frame.write_csv(tmp_path / "in.csv")
    done = run("table", tmp_path / "in.csv", "-o", tmp_path / "out", "--k", 4, "--quasi", "age,town", "--identifier", "name",
               "--rest", "sensitive", "--l-diversity", 2)  # fmt: skip
    assert done.code == 0, done.err
    shown = run("verify", tmp_path / "out")
    assert shown.code == 0
    failing = run("table", tmp_path / "in.csv", "-o", tmp_path / "o", "--k", 4, "--quasi", "age", "--keep", EVIL)
    assert failing.code == 2
    for text in (done.out, done.err, shown.out, failing.err):
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "[/red]" in shown.out
    assert "\x1b" not in (tmp_path / "out" / "CERTIFICATE.md").read_text()


def test_brackets_are_not_lost(capsys):
    from omokage.cli.console import note, out
    from omokage.errors import MissingExtra

    out.print(str(MissingExtra("photo support", "faces")))
    note("see [docs] and omokage[faces] :smile:")
    shown = capsys.readouterr().out
    assert "pip install 'omokage[faces]'" in shown
    assert "see [docs] and omokage[faces] :smile:" in shown


def test_a_found_that_is_no_found():
    with pytest.raises(OmokageError):
        Certificate.from_json(json.dumps({"found": Found(1, 1, 1, ()).k}))


def test_a_certificate_of_another_version_is_named():
    with pytest.raises(VerificationError, match="has version 2, but this Omokage reads version 3: use the one that wrote it"):
        Certificate.from_json('{\n "format": "omokage-certificate/2",\n "promise": {}}')
    with pytest.raises(VerificationError, match="is damaged"):
        Certificate.from_json('{\n "format": "omokage-certificate/3",\n "promise": {}}')


def test_one_file_does_not_pass_for_two_where_case_does_not_count(face_release):
    certificate = Certificate.read(face_release.release)[0]
    first = certificate.files[0]
    twice = replace(first, path=first.path.upper().replace("FACES/", "faces/"))
    with pytest.raises(VerificationError, match="contradict each other"):
        Certificate.from_json(replace(certificate, files=(*certificate.files, twice)).to_json())
