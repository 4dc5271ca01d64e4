"""What the face maps, their trainings, photo files and group photos say of a wrong call: one sentence, with what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("cv2")
pytest.importorskip("dlib")
pytest.importorskip("onnxruntime")

from drawn import DrawnEyes, draw_photo, draw_photos, drawn_portrait  # noqa: E402
from PIL import Image  # noqa: E402
from small_stylegan2 import STYLE, write_nvidia  # noqa: E402
from test_align import face_points  # noqa: E402

from omokage import Anonymizer, Mondrian  # noqa: E402
from omokage.errors import (  # noqa: E402
    InputError,
    MapError,
    ModelError,
    NotEnoughPeople,
    OmokageError,
    OutputError,
    PhotoError,
)
from omokage.faces import group_photo  # noqa: E402
from omokage.faces import image as image_module  # noqa: E402
from omokage.faces.find import Face  # noqa: E402
from omokage.faces.image import decoded, read_photo  # noqa: E402
from omokage.faces.maps import Networks, make_face_map  # noqa: E402
from omokage.faces.maps.attribute import AttributeNet  # noqa: E402
from omokage.faces.maps.encoder import Encoder  # noqa: E402
from omokage.faces.maps.inversion import Inversion, State  # noqa: E402
from omokage.faces.maps.latent import Latent  # noqa: E402
from omokage.faces.maps.morph import Morph  # noqa: E402
from omokage.faces.survey import SurveySettings  # noqa: E402
from omokage.faces.training.attribute_data import Labels, gather  # noqa: E402
from omokage.faces.training.attribute_data import _cutter as cutter  # noqa: E402
from omokage.faces.training.attribute_learning import Recipe, Trainer  # noqa: E402
from omokage.faces.training.attributes import kept_crops, phases, train_attributes  # noqa: E402
from omokage.method.maps import Autoencoder  # noqa: E402
from omokage.networks.mobilestylegan import Generator  # noqa: E402

X = np.random.default_rng(0).normal(size=(40, 3))
LISTED = Labels(("person0.png",), ("Male",), np.ones((1, 1), np.float32))
HEAD = torch.zeros(12, 5)


class Narrow:
    """A map that forgets a column on the way back."""

    def fit(self, x: Any) -> Narrow:
        return self

    def transform(self, x: Any) -> Any:
        return x

    def inverse_transform(self, z: Any) -> Any:
        return z[:, 1:]


def written(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def deep_grey(path: Path) -> Path:
    """Grey of 32 bits, one of them beyond 16."""
    grey = np.zeros((4, 4), np.int32)
    grey[1, 2] = 65536
    Image.fromarray(grey).save(path)
    return path


def small_generator() -> Generator:
    """Of 64 pixels, with four channels."""
    return Generator(4, (4,) * 4)


def latent(**changed: Any) -> Latent:
    """With a small generator, and an encoder for it."""
    generator = small_generator()
    encoder = Encoder(features=6, rank=1, style=4, groups=generator.groups)
    return Latent(**{"size": 32, "generator": generator, "encoder": encoder} | changed)


def latent_of_files(folder: Path, size: int) -> Latent:
    """Of networks that are read only when they are needed: the generator draws 16 pixels."""
    write_nvidia(folder / "faces.pkl")
    Encoder(features=6, rank=1, style=STYLE, groups=(5, 1, 0)).save(folder / "encoder.safetensors")
    return Latent(size, generator=folder / "faces.pkl", encoder=folder / "encoder.safetensors")


def heavy(value: float) -> AttributeNet:
    """A network of which one weight has this value."""
    net = AttributeNet("compact", ("Male",), 32).requires_grad_(False)
    net.head[1].weight[0, 0] = value
    return net


def train(checkpoint: Path, **changed: Any) -> None:
    """One epoch of the head on two faces."""
    net = AttributeNet("compact", ("Male",), 32)
    net.trunk.requires_grad_(False)
    plan = {"epochs": 1, "seed": 0} | changed
    Trainer(net, Recipe(), **plan, checkpoint=checkpoint).run(np.zeros((2, 32, 32, 3), np.uint8), np.ones((2, 1), np.float32))


def train_in(out: Path, table: Path) -> None:
    written(table, "image,Male\nperson0.png,1\n")
    train_attributes(table.parent, table, out, start="random")


def never() -> Any:
    raise AssertionError("the faces are cut out again")


CALLS: list[tuple[type[OmokageError], str, Callable[[Path], Any]]] = [
    # the method
    (MapError, r"the map Narrow\(\) came back with 2 of 3 columns",
     lambda tmp: Anonymizer(Mondrian(5), synthesis_map=Narrow()).release(X)),
    (MapError, "the autoencoder's loss is no longer a number: lower learning_rate",
     lambda tmp: Autoencoder(2, hidden=(3,), learning_rate=1e30, max_epochs=5).fit(X)),
    # photo files
    (PhotoError, r"^it cannot be decoded \(UnidentifiedImageError\)", lambda tmp: decoded(b"no picture")),
    (PhotoError, "its grey values are not of 8 or 16 bits", lambda tmp: read_photo(deep_grey(tmp / "deep.tif"))),
    # face maps by name
    (InputError, r"there is no file \S*none\.pt to take the attributes from", lambda tmp: Networks(attributes=tmp / "none.pt")),
    (MapError, "recognition cannot draw a face from its numbers: choose .*morph, and give recognition as the group map$",
     lambda tmp: make_face_map("recognition")),
    (MapError, "^morph cannot group: choose recognition, [a-z, ]*direct$", lambda tmp: make_face_map("morph", group=True)),
    # MORPH
    (MapError, "MORPH at 64 pixels cannot decode a vector of 7 numbers",
     lambda tmp: Morph(64).fit([drawn_portrait(0)]).decode(np.zeros(7, np.float32))),
    # LATENT
    (MapError, "size=100: LATENT draws 1024 pixels, so the size .* 1024$", lambda tmp: Latent(100)),
    (MapError, "size=128: LATENT draws 64 pixels, so the size .* 64$", lambda tmp: latent(size=128)),
    (MapError, "LATENT cannot decode a vector of 7 numbers: it needs 11 × 4",
     lambda tmp: latent().decode(np.zeros(7, np.float32))),
    (MapError, "the encoder was made for another generator: train one for this",
     lambda tmp: latent(encoder=Encoder(features=6, rank=1, style=4, groups=(1, 2, 3))).fit([])),
    (MapError, "size=32: .* draws 16 pixels: give a divisor of it", lambda tmp: latent_of_files(tmp, 32).fit([])),
    # inversion
    *((MapError, f"{wrong}.*: the rate has to be above 0, the weights 0 or more, the numbers of steps 1 or more",
       lambda tmp, wrong=wrong: Inversion(small_generator(), None, HEAD, **{wrong.split("=")[0]: float(wrong.split("=")[1])}))
      for wrong in ("rate=0.0", "perceptual=-1.0", "keep=-1.0", "refresh=0.0", "patience=0.0")),
    (MapError, "1 portraits, but 2 styles to start from", lambda tmp: Inversion(small_generator(), None, HEAD, exit=16).run(
        [drawn_portrait(0, 64)], State.at(torch.zeros(2, 11, 4)), 0)),
    # ATTRIBUTE
    (InputError, "there is no backbone 'vgg': they are resnet50, compact", lambda tmp: AttributeNet("vgg")),
    (InputError, "there is no backbone 'vgg': they are resnet50, compact", lambda tmp: phases("vgg", "random", 1)),
    *((ModelError, r"the weights cannot be kept: head\.1\.weight holds numbers .* in half precision",
       lambda tmp, value=value: heavy(value).save(tmp / "net.safetensors")) for value in (1e6, np.nan)),
    # its faces
    (InputError, "there is no folder nothing of images", lambda tmp: gather(tmp / "nothing", LISTED, "whole")),
    (InputError, "framing must be 'find' or 'whole', but it is 'half'",
     lambda tmp: gather(draw_photo(tmp / "person0.png", 0).parent, LISTED, "half")),
    (PhotoError, "it is 5 × 4 pixels, but a crop is square", lambda tmp: cutter("whole")(np.zeros((4, 5, 3), np.uint8))),
    # its training
    (OutputError, "the folder inside cannot be made: [A-Z]",
     lambda tmp: train_in(written(tmp / "file", "") / "inside", tmp / "labels.csv")),
    (InputError, r"crops\.safetensors is damaged \(\w+\): remove it to cut the faces out anew",
     lambda tmp: kept_crops(written(tmp / "crops.safetensors", "broken"), LISTED, never)),
    (InputError, r"checkpoint\.safetensors is damaged \(\w+\): remove it to start anew",
     lambda tmp: train(written(tmp / "checkpoint.safetensors", "broken"))),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "words", "call"), CALLS, ids=lambda v: v[:40] if isinstance(v, str) else "")
def test_wrong_calls(tmp_path, kind, words, call):
    with pytest.raises(kind, match=words):
        call(tmp_path)


def test_what_a_network_of_files_can_draw_is_drawn(tmp_path):
    assert latent_of_files(tmp_path, 16).fit([]).size == 16


def test_a_photo_of_too_many_bytes(tmp_path, monkeypatch):
    photo = draw_photo(tmp_path / "photo.png", 0)
    photo.write_bytes(photo.read_bytes().ljust(2_000_001, b"\0"))
    assert read_photo(photo).shape == (16, 16, 3)
    monkeypatch.setattr(image_module, "MOST_BYTES", 2_000_000)
    with pytest.raises(PhotoError, match="it has 2,000,001 bytes, more than 2 million"):
        read_photo(photo)


def test_weights_that_cannot_be_kept_leave_no_file(tmp_path):
    heavy(60_000.0).save(tmp_path / "fits.safetensors")
    with pytest.raises(ModelError):
        heavy(70_000.0).save(tmp_path / "beyond.safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["fits.safetensors"]


def test_an_image_that_is_not_square_is_left_out_and_counted(tmp_path):
    listed = Labels(("square.png", "wide.png"), ("Male",), np.ones((2, 1), np.float32))
    Image.new("RGB", (16, 16)).save(tmp_path / "square.png")
    Image.new("RGB", (20, 16)).save(tmp_path / "wide.png")
    faces = gather(tmp_path, listed, "whole")
    assert (len(faces.crops), faces.unread) == (1, 1)


@pytest.mark.parametrize("other", [{"seed": 1}, {"epochs": 2}])
def test_a_checkpoint_of_another_training(tmp_path, other):
    checkpoint = tmp_path / "checkpoint.safetensors"
    train(checkpoint)
    before = checkpoint.read_bytes()
    train(checkpoint)  # the same again: there is nothing left to learn
    words = r"is of another training \(other data, epochs, seed or network\): ask for the same again, or write to another folder"
    with pytest.raises(InputError, match=words):
        train(checkpoint, **other)
    assert checkpoint.read_bytes() == before


def test_a_crowd_that_is_too_small_without_the_person(drawn_eyes, tmp_path, monkeypatch):
    """Three people are found in the crowd, but one of them is in the photo."""
    draw_photos(tmp_path, 3)
    person = DrawnEyes(SurveySettings(256)).see(tmp_path / "person1.png").portraits[0]
    face = Face((20.0, 20.0, 100.0, 100.0), 0.9, face_points((60, 50), 30))

    class Same:
        def embed(self, picture: Any, points: Any) -> Any:
            return person.embedding

    class Blank:
        def parse(self, crop: Any) -> Any:
            return np.zeros((*crop.shape[:2], person.parts.shape[2]), np.uint8)

    for name, stand_in in {"ArcFace": Same, "Parser": Blank, "find_faces": lambda photo: [face]}.items():
        monkeypatch.setattr(group_photo, name, stand_in)
    words = "k = 3 needs a crowd of at least 3 others, but it has 2: add photos, or lower k"
    with pytest.raises(NotEnoughPeople, match=words):
        group_photo.anonymize_photo(np.zeros((120, 120, 3), np.uint8), 3, crowd=tmp_path, workers=1)
