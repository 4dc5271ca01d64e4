"""ATTRIBUTE: the conversion of ResNet-50, the list of labels, training that learns and goes on, and the shipped network."""

from __future__ import annotations

import csv
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
cv2 = pytest.importorskip("cv2")

from omokage import networks  # noqa: E402
from omokage.errors import InputError, MapError, ModelError  # noqa: E402
from omokage.faces.maps import attribute  # noqa: E402
from omokage.faces.maps.attribute import GROUP_LABELS, LABELS, Attribute, AttributeNet  # noqa: E402
from omokage.faces.portrait import PARTS, Portrait  # noqa: E402
from omokage.faces.training import attribute_data, attribute_learning  # noqa: E402
from omokage.faces.training import attributes as attribute_training  # noqa: E402
from omokage.faces.training.attribute_data import CACHED, gather, read_labels, varied  # noqa: E402
from omokage.faces.training.attribute_learning import Progress, Trainer, mean_loss  # noqa: E402
from omokage.faces.training.attributes import COMPACT, PAPER, build, kept_crops, train_attributes  # noqa: E402
from omokage.networks.resnet import EPSILON, MEAN, ResNet, from_tfjs  # noqa: E402
from omokage.networks.weights import trained  # noqa: E402

TOY = ("Red", "Bright")


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# ---------------------------------------------------------------------- conversion

WIDTH = 2


def keras_arrays(rng):
    """A ResNet of one stage with one block, two channels wide, as Keras names and lays out its arrays."""
    convs = {"conv1": (7, 3, WIDTH), "res2a_branch2a": (1, WIDTH, WIDTH), "res2a_branch2b": (3, WIDTH, WIDTH),
             "res2a_branch2c": (1, WIDTH, 4 * WIDTH), "res2a_branch1": (1, WIDTH, 4 * WIDTH)}  # fmt: skip
    arrays = {}
    for name, (side, into, out) in convs.items():
        norm = "bn_conv1" if name == "conv1" else name.replace("res", "bn")
        arrays[f"{name}/kernel"] = rng.normal(size=(side, side, into, out)) / side
        arrays[f"{name}/bias"] = rng.normal(size=out)
        arrays[f"{norm}/gamma"], arrays[f"{norm}/beta"] = rng.normal(size=out), rng.normal(size=out)
        arrays[f"{norm}/moving_mean"], arrays[f"{norm}/moving_variance"] = rng.normal(size=out), rng.uniform(0.5, 2, out)
    arrays["fc1000/kernel"], arrays["fc1000/bias"] = rng.normal(size=(4 * WIDTH, 5)), rng.normal(size=5)
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def write_tfjs(folder, arrays, epsilon=EPSILON):
    raw = b"".join(array.tobytes() for array in arrays.values())
    cut = len(raw) // 2 + 1  # in the middle of an array, and of a number
    shards = {"shard1.bin": raw[:cut], "shard2.bin": raw[cut:]}
    specs = [{"name": name, "shape": list(array.shape), "dtype": "float32"} for name, array in arrays.items()]
    layer = {"class_name": "BatchNormalization", "name": "bn_conv1", "config": {"epsilon": epsilon}}
    model = {
        "modelTopology": {"model_config": {"config": {"layers": [layer]}}},
        "weightsManifest": [{"paths": list(shards), "weights": specs}],
    }
    (folder / "model.json").write_text(json.dumps(model))
    for name, content in shards.items():
        (folder / name).write_bytes(content)
    return {name: folder / name for name in ("model.json", *shards)}


def keras_says(arrays, picture):
    """The slow, obvious oracle: the published network on an RGB picture (h, w, 3), layer by layer."""

    def conv(x, name, stride=1):
        kernel = arrays[f"{name}/kernel"].astype(np.float64)
        pad = kernel.shape[0] // 2
        x = np.pad(x, ((pad, pad), (pad, pad), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(x, kernel.shape[:2], (0, 1))[::stride, ::stride]
        out = np.einsum("hwcij,ijco->hwo", windows, kernel) + arrays[f"{name}/bias"]
        norm = "bn_conv1" if name == "conv1" else name.replace("res", "bn")
        scale = arrays[f"{norm}/gamma"] / np.sqrt(arrays[f"{norm}/moving_variance"] + EPSILON)
        return (out - arrays[f"{norm}/moving_mean"]) * scale + arrays[f"{norm}/beta"]

    x = picture[..., ::-1] - np.array(MEAN)[::-1]  # BGR
    x = np.maximum(conv(x, "conv1", 2), 0)
    x = np.pad(x, ((1, 1), (1, 1), (0, 0)))
    x = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (0, 1))[::2, ::2].max((-1, -2))
    inner = np.maximum(conv(np.maximum(conv(x, "res2a_branch2a"), 0), "res2a_branch2b"), 0)
    x = np.maximum(conv(inner, "res2a_branch2c") + conv(x, "res2a_branch1"), 0)
    return x.mean((0, 1)) @ arrays["fc1000/kernel"] + arrays["fc1000/bias"]


def test_converted_weights_say_what_keras_says(tmp_path):
    rng = np.random.default_rng(3)
    arrays = keras_arrays(rng)
    converted = from_tfjs(write_tfjs(tmp_path, arrays))
    net = ResNet((1,), classes=5, width=WIDTH).eval()
    net.take({name: torch.tensor(array) for name, array in converted.items()})
    picture = rng.uniform(0, 255, (20, 24, 3))
    with torch.inference_mode():
        ours = net(torch.tensor(picture, dtype=torch.float32).permute(2, 0, 1)[None])[0].numpy()
    expected = keras_says(arrays, picture)
    assert np.allclose(ours, expected, rtol=1e-4, atol=1e-3 * np.abs(expected).max())


def test_the_stride_is_in_the_first_convolution_of_a_stage():
    net = ResNet()
    block = net.stages[1][0]
    assert (block.first.conv.stride, block.second.conv.stride, block.short.conv.stride) == ((2, 2), (1, 1), (2, 2))
    assert sum(p.numel() for p in net.parameters()) == 23_508_032  # ResNet-50 without its classes, without biases
    assert net.channels == 2048


def test_other_files_are_refused(tmp_path):
    arrays = keras_arrays(np.random.default_rng(0))
    with pytest.raises(ModelError, match="ResNet-50"):
        from_tfjs(write_tfjs(tmp_path, arrays, epsilon=1e-5))
    files = write_tfjs(tmp_path, arrays)
    (tmp_path / "shard2.bin").write_bytes(b"short")
    with pytest.raises(ModelError, match="ResNet-50"):
        from_tfjs(files)
    with pytest.raises(ModelError, match="missing"):
        ResNet((1, 1), width=WIDTH).take({})


# ---------------------------------------------------------------------- labels


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_both_layouts_say_the_same(tmp_path):
    ours = read_labels(write(tmp_path / "a.csv", "image,identity,Male,Young\n1.jpg,7,-1,1\n2.jpg,9,1,1\n"))
    celeba = read_labels(write(tmp_path / "b.txt", "2\nMale Young \n1.jpg -1  1\n2.jpg  1  1\n"))
    zeros = read_labels(write(tmp_path / "c.csv", "Male,Young,image_id\n0,1,1.jpg\n1,1,2.jpg\n"))
    for labels in (ours, celeba, zeros):
        assert labels.images == ("1.jpg", "2.jpg")
        assert labels.names == ("Male", "Young")
        assert labels.values.tolist() == [[0, 1], [1, 1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column of photos"),
        ("picture,Male\n1.jpg,1\n", "no column of photos"),
        ("image,Male,Male\n1.jpg,1,1\n", "names a column twice: give each another name"),
        ("image,identity\n1.jpg,3\n", "no column of labels"),
        ("image,Male\n", "lists no photo"),
        ("image,Male,Male\n1.jpg,1,1\n", "twice"),
        ("image,Male\n1.jpg,1\n1.jpg,1\n", "more than once"),
        ("image,Male\n1.jpg,1\n2.jpg\n", "1 fields in line 3"),
        ("image,Male\n1.jpg,1\n2.jpg,yes\n", "'Male' of labels.csv is neither −1 nor 0 nor 1 for photo 2"),
        ("3\nMale\n1.jpg 1\n", "says that it lists 3 images, but it lists 1"),
    ],
)
def test_wrong_lists_are_refused(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_labels(write(tmp_path / "labels.csv", text))


def test_a_list_that_is_not_there_or_names_other_images(tmp_path):
    with pytest.raises(InputError, match=r"none\.csv cannot be read"):
        read_labels(tmp_path / "none.csv")
    labels = read_labels(write(tmp_path / "labels.csv", "image,Male\nother.jpg,1\n"))
    with pytest.raises(InputError, match="none of the 1 images"):
        gather(tmp_path, labels, "whole")
    with pytest.raises(InputError, match="no folder"):
        gather(tmp_path / "nothing", labels)


# ---------------------------------------------------------------------- the network and its training


@pytest.mark.parametrize(("backbone", "features"), [("resnet50", 2048), ("compact", 48 * 5 * 5)])
def test_head_is_the_papers(backbone, features):
    net = AttributeNet(backbone)
    shapes = [tuple(part.weight.shape) for part in net.head if isinstance(part, torch.nn.Linear)]
    assert shapes == [(1024, features), (1024, 1024), (40, 1024)]
    with torch.inference_mode():
        assert net.eval()(torch.zeros(2, 3, net.size, net.size)).shape == (2, 40)
    assert (PAPER.optimiser, PAPER.rate, PAPER.momentum) == ("momentum", 0.01, 0.9)


def squares(number, seed=0):
    """Coloured squares, and whether they are red rather than blue, and bright rather than dark."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, (number, 2)).astype(np.float32)
    crops = rng.integers(0, 40, (number, CACHED, CACHED, 3), dtype=np.uint8)
    for crop, (red, bright) in zip(crops, labels, strict=True):
        crop[20:70, 20:70, 0 if red else 2] += np.uint8(200 if bright else 70)
    return crops, labels


@pytest.fixture
def small(monkeypatch):
    """Pictures of 32 pixels, so that a training takes a second."""
    monkeypatch.setattr(attribute, "SIZES", {"resnet50": 32, "compact": 32})


QUICK = replace(COMPACT, batch=8, dropout=0.0)


def test_training_lowers_the_loss(small):
    crops, labels = squares(64)
    net = build("compact", "random", TOY)
    before = mean_loss(net, *squares(32, seed=1))
    history = Trainer(net, QUICK, epochs=4, seed=0).run(crops, labels, held=squares(32, seed=1))
    assert len(history.loss) == 4 * 8
    assert [step for step, _ in history.held] == [8, 16, 24, 32]
    assert history.held[-1][1] < 0.5 * before
    right = (net.probabilities(squares(32, seed=1)[0]) > 0.5) == (squares(32, seed=1)[1] > 0.5)
    assert right.mean() > 0.9


@pytest.mark.parametrize("room", [1 << 30, 0])
def test_frozen_convolutions_stay_and_the_head_learns(small, monkeypatch, room):
    """Whether the trunk's features are remembered, or there is no room for that."""
    monkeypatch.setattr(attribute_learning, "_ROOM", room)
    imagenet = {name: tensor for name, tensor in ResNet((3, 4)).state_dict().items() if "num_batches" not in name}
    monkeypatch.setattr(networks, "get", lambda name: name)
    monkeypatch.setattr(attribute_training, "load_file", lambda name: imagenet)
    net = build("compact", "frozen", TOY)
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    Trainer(net, QUICK, epochs=1, seed=0).run(*squares(16))
    for name, tensor in net.state_dict().items():
        if name.startswith("trunk."):
            assert torch.equal(tensor, before[name]), name
    assert not torch.equal(net.head[1].weight, before["head.1.weight"])
    assert torch.equal(net.trunk.stem.conv.weight, imagenet["stem.conv.weight"])


@pytest.mark.parametrize("recipe", [QUICK, replace(PAPER, batch=8)])
def test_going_on_gives_what_going_through_gives(small, tmp_path, recipe):
    crops, labels = squares(24)

    def trainer(file):
        return Trainer(build("compact", "random", TOY), recipe, epochs=3, seed=5, checkpoint=tmp_path / file)

    through = trainer("a")
    whole = through.run(crops, labels)

    class Stopped(Exception):
        pass

    def stop(stage: str, done: int = 0, total: int = 0, /) -> None:
        if done == 8:  # in the last of three epochs of three steps
            raise Stopped

    with pytest.raises(Stopped):
        trainer("b").run(crops, labels, progress=stop)
    again = trainer("b")
    seen = []
    history = again.run(crops, labels, progress=lambda stage, done, total: seen.append(done))
    assert seen == [7, 8, 9]
    assert history.loss == whole.loss
    for name, tensor in through.net.state_dict().items():
        assert torch.equal(tensor, again.net.state_dict()[name]), name
    with pytest.raises(InputError, match="another training"):
        trainer("b").run(crops[:8], labels[:8])
    (tmp_path / "b").write_bytes(b"damaged")
    with pytest.raises(InputError, match="damaged"):
        trainer("b").run(crops, labels)


def test_the_whole_way_from_a_folder(small, tmp_path):
    crops, labels = squares(20)
    images = tmp_path / "images"
    images.mkdir()
    for number, crop in enumerate(crops):
        cv2.imwrite(str(images / f"{number}.png"), crop[..., ::-1])
    (images / "20.png").write_bytes(b"no picture")
    lines = ["image,Red,Bright", *(f"{i}.png,{int(2 * r - 1)},{int(2 * b - 1)}" for i, (r, b) in enumerate(labels))]
    listed = write(tmp_path / "labels.csv", "\n".join([*lines, "20.png,1,1", "21.png,1,1"]))
    out = tmp_path / "out"
    seen: list[Progress] = []
    path = train_attributes(images, listed, out, start="random", epochs=2, progress=lambda *at: seen.append(at), framing="whole")
    assert {p.name for p in out.iterdir()} == {"attributes.safetensors", "training.json"}
    told = json.loads((out / "training.json").read_text())
    assert (told["images"], told["held out"], told["absent"], told["unread"]) == (19, 1, 1, 1)
    assert {stage for stage, _, _ in seen} == {"cutting out faces", "training"}
    own = Attribute(path, labels=("Bright",))
    assert own.all_labels == TOY
    assert own.many(crops).shape == (20, 2)
    with pytest.raises(MapError, match="not trained to tell 'Bald'"):
        Attribute(path).fit([])
    with pytest.raises(InputError, match="start must be one of"):
        train_attributes(images, listed, out, start="warm")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no backbone"):
        train_attributes(images, listed, out, backbone="vgg")  # type: ignore[arg-type]


def test_crops_of_another_list_are_not_taken(tmp_path):
    crops, labels = squares(2)
    listed = attribute_data.Labels(("1.jpg", "2.jpg"), TOY, labels)
    faces = attribute_data.Faces(crops, labels, TOY, faceless=3)
    path = tmp_path / "crops.safetensors"
    kept_crops(path, listed, lambda: faces)
    again = kept_crops(path, listed, lambda: pytest.fail("the crops were there"))
    assert np.array_equal(again.crops, crops)
    assert (again.names, again.faceless) == (TOY, 3)
    with pytest.raises(InputError, match="another list"):
        kept_crops(path, replace(listed, values=1 - labels), lambda: faces)
    path.write_bytes(b"damaged")
    with pytest.raises(InputError, match="damaged"):
        kept_crops(path, listed, lambda: faces)


def test_varied_views_stay_near_the_face():
    face = squares(1)[0][0]
    views = [varied(face, 80, np.random.default_rng(seed)) for seed in range(8)]
    assert all(view.shape == (80, 80, 3) and view.dtype == np.uint8 for view in views)
    assert len({view.tobytes() for view in views}) == 8
    assert np.array_equal(views[0], varied(face, 80, np.random.default_rng(0)))
    still = cv2.resize(face, (80, 80), interpolation=cv2.INTER_AREA).mean((0, 1))
    assert np.abs(np.mean(views, axis=(0, 1, 2)) - still).max() < 25


# ---------------------------------------------------------------------- the shipped network


def portrait(crop):
    return Portrait(crop, np.zeros((68, 2)), np.zeros((*crop.shape[:2], len(PARTS)), np.uint8))


def test_shipped_network_is_small_and_groups_by_14_labels():
    weights = trained("attributes")
    assert weights.stat().st_size <= 10_000_000
    assert weights.with_suffix(".md").exists()
    assert all(torch.isfinite(tensor).all() for tensor in AttributeNet.load(weights).state_dict().values())
    attributes = Attribute()
    crop = np.random.default_rng(0).integers(0, 256, (256, 256, 3), dtype=np.uint8)
    vector = attributes.fit([]).encode(portrait(crop))
    whole = attributes.all(portrait(crop))
    assert attributes.labels == GROUP_LABELS
    assert attributes.all_labels == LABELS
    assert (vector.shape, vector.dtype, vector.ndim, whole.shape) == ((14,), np.float32, 1, (40,))
    assert vector[GROUP_LABELS.index("Male")] == whole[LABELS.index("Male")]
    assert ((whole >= 0) & (whole <= 1)).all()
    assert not hasattr(attributes, "decode")


def test_kept_weights_say_what_the_network_said(small, tmp_path):
    """Also with a variance beyond the largest half, as ImageNet's stem has one; and nothing that is not finite is kept."""
    net = build("compact", "random", TOY)
    net.trunk.stem.norm.running_var.fill_(83_614.0)
    net.save(tmp_path / "kept.safetensors")
    again = AttributeNet.load(tmp_path / "kept.safetensors")
    assert torch.equal(again.trunk.stem.norm.running_var, net.trunk.stem.norm.running_var)
    assert np.allclose(again.probabilities(squares(4)[0]), net.probabilities(squares(4)[0]), atol=2e-3)
    net.head[1].weight.data[0, 0] = 1e6
    with pytest.raises(ModelError, match=r"head\.1\.weight"):
        net.save(tmp_path / "beyond.safetensors")


def test_missing_or_damaged_weights_are_named(tmp_path):
    with pytest.raises(ModelError, match="no weights"):
        Attribute(tmp_path / "none.safetensors").fit([])
    (tmp_path / "bad.safetensors").write_bytes(b"damaged")
    with pytest.raises(ModelError, match=r"bad\.safetensors does not hold"):
        Attribute(tmp_path / "bad.safetensors").fit([])


@pytest.mark.data
@pytest.mark.skipif(
    not os.environ.get("OMOKAGE_DATA") or networks.cached("scrfd") is None or networks.cached("dlib-68") is None,
    reason="needs the test faces and the models that find faces",
)
def test_shipped_network_beats_the_majority_on_real_faces(data_folder, tmp_path):
    """40 faces of CelebA's test people, half of each sex, of the smiling and of those with glasses."""
    source = data_folder / "celeba_test200"
    with (source / "labels_derived.csv").open() as file:
        rows = list(csv.DictReader(file))
    chosen: list[dict[str, str]] = []
    for label in ("Eyeglasses", "Male", "Smiling"):
        for value in ("1", "-1"):
            chosen += [row for row in rows if row[label] == value and row not in chosen][:7]
    text = "\n".join([",".join(rows[0]), *(",".join(row.values()) for row in chosen)])
    faces = gather(source / "images", read_labels(write(tmp_path / "labels.csv", text)))
    told = Attribute().many(faces.crops) > 0.5
    for label in ("Eyeglasses", "Male", "Smiling"):
        truth = faces.labels[:, faces.names.index(label)] > 0.5
        right = (told[:, LABELS.index(label)] == truth).mean()
        assert right > max(truth.mean(), 1 - truth.mean()) + 0.05, label
