"""What a user does wrong is answered by one sentence: a call for each message that no other test asks for."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from omokage import Anonymizer, Cells, Mondrian, Roles, read_table, verify
from omokage.base.persons import person_codes
from omokage.base.reading import read_regular
from omokage.errors import InputError, OmokageError, TableError, VerificationError
from omokage.evaluate import reidentify
from omokage.evaluate.assignment.transport import certify, solve_transport
from omokage.evaluate.faces.fid import fid, fid_floor, kid
from omokage.evaluate.faces.labels import read_labels
from omokage.evaluate.faces.published import PublishedMaps
from omokage.evaluate.faces.recognition import calibrate
from omokage.evaluate.linked import link
from omokage.evaluate.utility import utility
from omokage.learn import DPSGD, AnonymizedLearning, AnonymizingFirst, Categorical, Numeric, Schema, attack, audit, load_schema
from omokage.learn.noise import NoiseSource, bit_biases
from omokage.learn.privacy import Privacy
from omokage.learn.settings import check_clip, check_delta, check_descent, check_hidden, check_positive, check_range
from omokage.method.grouping import parse_grouper
from omokage.method.maps import LPP, PCA, parse_map
from omokage.method.noise import Laplace, parse_noise
from omokage.release.certificate import Certificate
from omokage.release.rules import LDiversity, TCloseness
from omokage.release.signing import load_public, load_signer
from omokage.tables import arrays, columnar, read
from omokage.tables.containers import raw_parts

X = np.random.default_rng(0).normal(size=(40, 3))
Y = (X[:, 0] > 0).astype(int)
BOUNDS = {"bounds": [(-9, 9)] * 3, "classes": [0, 1]}
SMALL = Schema((Numeric("age", 0, 100), Categorical("job", ("a", "b"))), "rich", ("no", "yes"))
FRAME = pl.DataFrame({"age": [1.0, 2.0], "job": ["a", "b"]})

LEARN: list[tuple[str, Callable[[], Any]]] = [
    ("delta is 1.0: give a number from 0 to below 1", lambda: check_delta(1.0)),
    ("rate is 0: give a finite number above 0", lambda: check_positive("rate", 0)),
    ("clip is 0.0: give a number from", lambda: check_clip(0.0)),
    ("give two finite numbers, low < high", lambda: check_range("r", (2, 1))),
    ("give a range wider than", lambda: check_range("r", (0.0, 1e-101))),
    ("list layer widths from 1 to", lambda: check_hidden([0])),
    ("momentum is 1: give a number from 0 to below", lambda: check_descent(momentum=1)),
    ("decay is -1: give a finite number from 0", lambda: check_descent(decay=-1)),
    (r"the noise scale is .* grid steps: choose settings that give one above 0, at most 2\*\*50", lambda: bit_biases(0.0)),
    (r"sigma is .* grid steps: choose settings that give one above 0, below 2\*\*50", lambda: NoiseSource(0).gaussian(1, 0.0)),
    ("the privacy statement has other fields than these", lambda: Privacy.from_json({})),
    ("do not rise: give finite numbers with low < cuts < high", lambda: Numeric("age", 2, 1)),
    ("is not a category: name one of its categories", lambda: Categorical("job", ("a",), other="b")),
    ("'age' is declared numeric but holds something else", lambda: SMALL.encode(with_column("age", ["x", "y"]))),
    ("'job' is in the schema but not in the table: add it", lambda: SMALL.encode(FRAME.drop("job"))),
    ("'job' has 1 missing value: drop or fill such rows", lambda: SMALL.encode(with_column("job", ["a", None]))),
    ("give a table with named columns, because the learner has a schema", lambda: DPSGD(schema=SMALL).fit(X, ["no"] * 40)),
    ("there is no sensitivity 'all': choose", lambda: AnonymizedLearning(sensitivity="all", **BOUNDS).fit(X, Y)),
    ("there are no marginals 'all': choose", lambda: AnonymizingFirst(marginals="all", **BOUNDS).fit(X, Y)),
    ("an attacker cannot see 'all': choose model or bias", lambda: attack(DPSGD(schema=SMALL), visible="all")),
    ("a whole table and no bias: choose model as visible", lambda: attack(AnonymizingFirst(schema=SMALL), visible="bias")),
    ("40 rows but 39 labels", lambda: DPSGD(**BOUNDS).fit(X, Y[1:])),
    ("the table has no rows: give at least one to learn from", lambda: DPSGD(schema=SMALL).fit(FRAME[:0], [])),
    ("give a sentence that says how the settings were chosen", lambda: DPSGD(tuned=3, **BOUNDS).fit(X, Y)),
    ("the learner does not know its columns: give it a schema, or fit it first", lambda: audit(DPSGD(**BOUNDS))),
    ("X has 2 columns: give the 3 that the learner was fitted on", lambda: DPSGD(epochs=1, **BOUNDS).fit(X, Y).predict(X[:, :2])),
    ("X is not a matrix of numbers: give one, or a table with a schema", lambda: DPSGD(**BOUNDS).fit([["a"]], [0])),
    (": give a matrix with rows and columns", lambda: DPSGD(**BOUNDS).fit(X[0], Y)),
    ("give a Schema, for example from load_schema", lambda: DPSGD(schema={}).fit(X, Y)),
    ("one such pair for each column, or 'data'", lambda: DPSGD(bounds="banana", classes=[0, 1]).fit(X, Y)),
]  # fmt: skip


def with_column(name: str, values: list[Any]) -> pl.DataFrame:
    return FRAME.with_columns(pl.Series(name, values))


def released(**how: Any) -> Any:
    return Anonymizer(**how, random_state=0).release(X)


def linked(**how: Any) -> Any:
    return link(X, released(**(how or {"grouper": Mondrian(5)})))


EVALUATE: list[tuple[str, Callable[[], Any]]] = [
    ("price must hold 1 finite numbers, one per centre", lambda: certify([[0.0]], [[0.0]], [1], [0], [np.nan])),
    ("rows must hold finite numbers only: fill or drop", lambda: solve_transport([[np.nan]], [[0.0]], [1])),
    ("a floor needs 1 to 40 distinct pictures and a repeat", lambda: fid_floor(X, 41)),
    ("both sets need the same features: 3 and 2 columns", lambda: fid(X, X[:, :2])),
    ("both sets need the same features: 3 and 2 columns", lambda: kid(X, X[:, :2])),
    ("KID needs 4 pictures a set, 2 subsets", lambda: kid(X[:3], X)),
    ("calibration needs people with two photos or more", lambda: calibrate(X, range(40))),
    ("persons are a list of names or numbers, not of shape", lambda: calibrate(X, 7)),
    ("embeddings are finite numbers in a matrix, a row for each face", lambda: calibrate(X[0], range(3))),
    ("there is no attack 'thumb'", lambda: reidentify(linked(), attack="thumb")),
    ("noise instead of groups: only groups can be repeated", lambda: reidentify(linked(noise=Laplace(1.0)), attack="repeated")),
    ("likelihood", lambda: reidentify(linked(), attack="likelihood")),
    ("the certificate is not one of faces: omokage evaluate judges", lambda: PublishedMaps.of(linked().certificate)),
    ("there is no model 'oracle'", lambda: utility(linked(), target=Y, model="oracle")),
    ("39", lambda: utility(linked(), target=Y[1:])),
    ("splits is 0: give a whole number from 1", lambda: utility(linked(), target=Y, splits=0)),
]  # fmt: skip

METHOD: list[tuple[str, Callable[[], Any]]] = [
    ("the grouping mdav does not take 'variance': write mdav", lambda: parse_grouper("mdav:variance", 3)),
    ("cell_size must be at least 2 k = 6, but it is 5", lambda: Cells(3, cell_size=5).fit(X)),
    ("sweeps must be a whole number of at least 0, but it is -1", lambda: Cells(3, sweeps=-1).fit(X)),
    ("spread must be one of range, variance, but it is 'wide'", lambda: Mondrian(3, spread="wide").fit(X)),
    ("grouping needs a matrix of rows × columns, but the data have shape", lambda: Mondrian(3).fit(X[0])),
    ("l-diversity is distinct or entropy, not 'most'", lambda: LDiversity(2, kind="most")),
    ("t must be at least 0 and below 1, but it is 1", lambda: TCloseness(1.0)),
    ("there is no map 'zodiac': choose none", lambda: parse_map("zodiac")),
    ("needs a matrix of rows × columns, but the data have shape", lambda: PCA(2).fit(X[0])),
    ("noise is given as laplace:SCALE, for example laplace:3.5", lambda: parse_noise("gauss:1")),
    ("LPP needs more than n_neighbors = 40 rows", lambda: LPP(2, n_neighbors=40).fit(X)),
    ("person must name persons by numbers or by text, not by both", lambda: person_codes(np.array([1, "a"], dtype=object))),
]

TABLES: list[tuple[str, Callable[[], Any]]] = [
    ("the frame has no rows: there is nothing to anonymize", lambda: Anonymizer(Mondrian(2)).release(FRAME[:0])),
    ("'l' is of type List.*which cannot be anonymized", lambda: Anonymizer(Mondrian(2)).release(pl.DataFrame({"l": [[1], [2]]}))),
    ("the rest of the columns can be .*, not 'burn'",
     lambda: Anonymizer(Mondrian(2)).release(FRAME, roles=Roles(quasi=["age"], rest="burn"))),
    ("cannot use missing values, but column 'age' has 1: fill them in",
     lambda: Anonymizer(Mondrian(2), synthesis_map=PCA(1)).release(pl.DataFrame({"age": [1.0, None, 2.0], "b": [1, 2, 5]}))),
]  # fmt: skip


@pytest.mark.parametrize(("words", "call"), LEARN + EVALUATE + METHOD + TABLES, ids=lambda v: v if isinstance(v, str) else "")
def test_wrong_calls(words, call):
    with pytest.raises(InputError, match=words):
        call()


# ---------------------------------------------------------------------- files


def npy(array: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def npz(**arrays: Any) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def parquet(columns: int) -> bytes:
    out = io.BytesIO()
    pl.DataFrame({f"c{j}": [1] for j in range(columns)}).write_parquet(out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"", r"t\.csv is empty"),
        ("t.csv", b"a,b\n", r"t\.csv has no rows"),
        ("t.npy", npy(np.zeros((0, 2))), r"t\.npy has no rows"),
        ("t.npz", npz(a=np.zeros(2), b=np.zeros(3)), "its arrays have different numbers of rows"),
        ("t.csv", b"a" + b",a" * 51 + b"\n", "it has more than .* columns: is it transposed"),
        ("t.npy", npy(np.zeros((1, 51), np.int8)), "it has more than .* columns: is it transposed"),
        ("t.parquet", parquet(51), "it has more than .* columns: is it transposed"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_tables_that_cannot_be_used(tmp_path, monkeypatch, name, content, words):
    for module in (arrays, columnar, read):
        monkeypatch.setattr(module, "MOST_COLUMNS", 50)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=words):
        read_table(tmp_path / name)


def test_a_folder_and_a_kind_that_there_is_not(tmp_path):
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(TableError, match="is a folder, but a file is needed"):
        read_table(tmp_path / "t.csv")
    (tmp_path / "u.csv").write_text("a\n1\n")
    with pytest.raises(TableError, match=r"a column can be a .*, not 'colour'"):
        read_table(tmp_path / "u.csv", kinds={"a": "colour"})


def test_damaged_containers(tmp_path):
    content = bytearray(npz(a=np.arange(50)))
    content[60] ^= 255
    (tmp_path / "t.npz").write_bytes(content)
    with pytest.raises(TableError, match="is damaged: a member cannot be unpacked"):
        list(raw_parts("t.npz", (tmp_path / "t.npz").read_bytes()))
    (tmp_path / "t.parquet").write_bytes(parquet(2)[:-30] + b"x" * 22 + parquet(2)[-8:])
    with pytest.raises(TableError, match="is damaged: its columns cannot be unpacked"):
        list(raw_parts("t.parquet", (tmp_path / "t.parquet").read_bytes()))


def test_a_file_that_is_too_large(tmp_path):
    (tmp_path / "f").write_bytes(b"12345")
    with pytest.raises(InputError, match="has 5 bytes, but at most 4 are read: is it the right file"):
        read_regular(tmp_path / "f", 4)


def test_labels_without_names(tmp_path):
    (tmp_path / "l.csv").write_text("picture,Male\na.jpg,1\n")
    with pytest.raises(InputError, match="has no column of photos"):
        read_labels(tmp_path / "l.csv", ["a.jpg"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("columns = [", "is not TOML"),
        ("[columns]\nage = 3\n", "is not a table: write keys and values"),
        ("[columns.age]\nlow = 0\nhigh = 1\nmiddle = 2\n", "has wrong keys"),
        ("[columns.age]\nlow = 0\nhigh = 1\ncuts = 2\n", r"schema .*: \[columns.age\] cuts is not a list: write it as one"),
    ],
)
def test_schemas_that_cannot_be_used(tmp_path, text, words):
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(InputError, match=words):
        load_schema(tmp_path / "s.toml")


# ---------------------------------------------------------------------- networks and photos


def test_networks_that_are_not_there(tmp_path, monkeypatch):
    import torch

    from omokage.faces.recognize import recognizer
    from omokage.networks.generator import load_generator
    from omokage.networks.mobilestylegan_ir import from_openvino
    from omokage.networks.resnet import ResNet
    from omokage.networks.stylegan2 import StyleGAN2
    from omokage.networks.vgg import VGG, read_arrays

    (tmp_path / "not.pkl").write_bytes(b"no pickle")
    (tmp_path / "run.pkl").write_bytes(pickle.dumps(print))
    for words, call in (
        ("there is no recognizer 'nose': choose", lambda: recognizer("nose")),
        (r"there is no generator '.*none': give .*, or the file of a StyleGAN2", lambda: load_generator(tmp_path / "none")),
        ("MobileStyleGAN is four files; missing here: MappingNetwork.xml", lambda: from_openvino({})),
        ("the weights do not hold a ResNet-50", lambda: ResNet().take({})),
        ("it draws at 0 sizes, and a StyleGAN2 of", lambda: StyleGAN2.from_weights({})),
        ("VGG-16 has no layer 'conv9': its layers are", lambda: VGG()(torch.zeros(1, 3, 8, 8), ["conv9"])),
        ("is not a whole pickle of arrays", lambda: read_arrays(tmp_path / "not.pkl")),
        ("is not read: its pickle holds the instruction", lambda: read_arrays(tmp_path / "run.pkl")),
    ):
        with pytest.raises(OmokageError, match=words):
            call()


def test_photos_that_cannot_be_used(tmp_path):
    from PIL import Image

    from omokage.faces.image import encode_picture, read_photo
    from omokage.faces.listing import list_photos
    from omokage.faces.portrait import Portrait

    Image.fromarray(np.zeros((4, 4), np.float32)).save(tmp_path / "float.tif")
    (tmp_path / "persons.csv").write_text("photo,person\nfloat.tif,\n")
    grey = np.zeros((2, 2, 3), np.uint8)
    for words, call in (
        ("its values are floating-point numbers: there is no telling", lambda: read_photo(tmp_path / "float.tif")),
        (
            r"pictures are written as \.png, \.jpg, \.webp or \.tif, not as",
            lambda: encode_picture(grey, ".gif"),
        ),
        ("persons are taken from 'folder' or 'csv', not from 'name'", lambda: list_photos(tmp_path, "name")),
        ("has empty cells in the column person", lambda: list_photos(tmp_path, "csv", tmp_path / "persons.csv")),
        ("a stored portrait is damaged", lambda: Portrait.of_arrays({})),
    ):
        with pytest.raises(InputError, match=words):
            call()


# ---------------------------------------------------------------------- releases


def test_certificates_that_contradict_themselves(patients_release, tmp_path):
    certificate, _ = Certificate.read(patients_release.release)
    with pytest.raises(VerificationError, match="its parts contradict each other"):
        Certificate.from_json(replace(certificate, files=certificate.files * 2).to_json())
    with pytest.raises(VerificationError, match="it is not written the way Omokage writes it"):
        Certificate.from_json(certificate.to_json() + " ")
    with pytest.raises(VerificationError, match=r"the certificate has .* bytes, but at most"):
        Certificate.from_json(b" " * 100_000_000)


def test_a_release_with_a_row_less(patients_release, tmp_path):
    written = patients_release.copy(tmp_path)
    file = written.release / "data.csv"
    file.write_text("\n".join(file.read_text().splitlines()[:-1]) + "\n")
    told = [check.detail for check in verify(written.release).checks]
    assert any("4 rows and 4 columns were found, but 5 rows and 4 columns were certified" in detail for detail in told)


def test_keys_that_are_none(tmp_path):
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    other, pem = X25519PrivateKey.generate(), serialization.Encoding.PEM
    (tmp_path / "k").write_bytes(other.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    (tmp_path / "k.pub").write_bytes(other.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    (tmp_path / "text.pub").write_text("nothing")
    with pytest.raises(InputError, match="is not an Ed25519 key: omokage keygen makes one"):
        load_signer(tmp_path / "k")
    with pytest.raises(InputError, match=r"is not an Ed25519 key: give the \.pub file"):
        load_public(tmp_path / "k.pub")
    with pytest.raises(InputError, match=r"is not a public key: give the \.pub file"):
        load_public(tmp_path / "text.pub")


# ---------------------------------------------------------------------- the command line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("table", "{t}", "-o", "{o}", "--quasi", "age"), "give --k for groups, or --noise for noise, one of the two"),
        (("table", "{t}", "-o", "{o}", "--k", 2, "--quasi", "age", "--map", "pca:1", "--synthesis-map", "pca:1"),
         "give --map for both spaces, or --group-map and --synthesis-map"),
        (("table", "{t}", "-o", "{o}", "--k", 2, "--quasi", "age", "--rest", "drop", "--unify", "age"),
         "--unify takes COLUMN=VALUE, but one entry is not of that form"),
        (("compare", "{t}", "--target", "disease", "--k", "x", "--html", "{o}"), "--k takes whole numbers, separated by commas"),
        (("learn", "{t}", "-o", "{o}", "--approach", "magic", "--schema", "{t}"), "--approach does not take 'magic'"),
        (("learn", "{t}", "-o", "{o}", "--approach", "dp-sgd", "--schema", "{t}", "--synthetic", "{o}.csv"),
         "--synthetic needs --approach anonymizing-first: the others make no table"),
        (("audit", "{t}", "--visible", "all"), "--visible does not take 'all': choose steps, model or bias"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)  # fmt: skip
def test_commands(run, patients, tmp_path, arguments, words):
    given = [str(a).format(t=patients, o=tmp_path / "o") for a in arguments]
    result = run(*given)
    assert result.code == 2
    assert words in result.err
    assert not (tmp_path / "o").exists()
