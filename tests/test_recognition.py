"""Recognition of released faces: tiny galleries by hand, blocks against one pass, and what a good release looks like."""

from __future__ import annotations

import numpy as np
import pytest

from omokage.errors import InputError
from omokage.evaluate.faces import recognition as module
from omokage.evaluate.faces.recognition import calibrate, link, recognize, within

# Six people on a circle, in degrees; three groups of two.
DEGREES = np.array([0, 20, 90, 110, 200, 230])
GROUPS = np.array([0, 0, 1, 1, 2, 2])
PEOPLE = np.array(["a", "b", "c", "d", "e", "f"])


def circle(degrees, length=1.0):
    turn = np.deg2rad(np.asarray(degrees, float))
    return length * np.stack([np.cos(turn), np.sin(turn)], axis=1)


def test_by_hand():
    # Picture 0 is nearest to a, 1 to d, and 2 lies by c: two of three point into their group, each right for one of two.
    found = recognize(circle([5, 108, 85]), GROUPS, PEOPLE, circle(DEGREES))
    assert found.rate == pytest.approx(2 / 6)
    assert found.bound == pytest.approx(3 / 6)
    assert found.chance == pytest.approx(1 / 6)
    assert found.interval[0] < found.rate < found.interval[1]
    assert found.in_group.rate == pytest.approx(2 / 3)
    assert found.in_group.baseline == pytest.approx(2 / 6)
    cosines = np.cos(np.deg2rad(np.subtract.outer([5, 108, 85], DEGREES)))
    member = np.zeros((3, 6), bool)
    member[GROUPS, np.arange(6)] = True
    assert found.member_cosine == pytest.approx(cosines[member].mean(), abs=1e-6)
    assert found.other_cosine == pytest.approx(cosines[~member].mean(), abs=1e-6)
    assert (found.pictures, found.records, found.persons) == (3, 6, 6)


def test_acceptance_by_hand():
    # Of 12 pairs of others the nearest are 5° and 25° apart (picture 2 with c and d), and the next over 70°.
    found = recognize(circle([6, 108, 85]), GROUPS, PEOPLE, circle(DEGREES), fars=(0.5 / 12, 1.5 / 12))
    none, one = found.accepted
    assert none.threshold == pytest.approx(np.cos(np.deg2rad(5)), abs=2e-5)
    assert none.tar == pytest.approx(1 / 6)  # d, at 2°; a, at 6°, is farther than c, who must stay out
    assert one.threshold == pytest.approx(np.cos(np.deg2rad(25)), abs=2e-5)
    assert one.tar == pytest.approx(4 / 6)  # a, b, c and d; e and f stay out
    assert one.interval[0] < one.tar < one.interval[1]


def test_a_gallery_of_other_photos():
    """Two other photos of a, one of d, and a stranger, who is named for picture 2."""
    found = recognize(circle([5, 108, 215]), GROUPS, PEOPLE, circle([8, 350, 112, 216]), np.array(["a", "a", "d", "stranger"]))
    assert found.rate == pytest.approx(2 / 6)
    assert found.chance == pytest.approx(1 / 3)
    assert found.in_group.rate == pytest.approx(2 / 3)
    expected = np.cos(np.deg2rad([3, 15, 4])).mean()
    assert found.member_cosine == pytest.approx(expected, abs=1e-6)


def test_a_person_with_several_photos_in_a_group():
    """Named once, right for both photos: the bound knows it."""
    found = recognize(circle([0, 90]), [0, 0, 0, 1], [7, 7, 8, 9], circle([0, 2, 30, 91]))
    assert found.rate == pytest.approx(3 / 4)
    assert found.bound == pytest.approx(3 / 4)
    assert found.persons == 3


def test_length_does_not_matter_to_the_cosine():
    one = recognize(circle([5, 108, 85]), GROUPS, PEOPLE, circle(DEGREES))
    assert recognize(circle([5, 108, 85], 4.0), GROUPS, PEOPLE, circle(DEGREES, 0.25)) == one


def test_within_a_distance_by_hand():
    originals = np.array([[0.0, 0], [1, 0], [5, 0], [6, 0]])
    found = within(np.array([[0.5, 0], [4.5, 0]]), [0, 0, 1, 1], [1, 2, 3, 4], originals, distance=0.6)
    assert found.rate == pytest.approx(3 / 4)  # 0.5, 0.5, 0.5 and 1.5
    assert found.baseline == 0
    assert within(np.array([[0.5, 0], [1.4, 0]]), [0, 0, 1, 1], [1, 2, 3, 4], originals).baseline == pytest.approx(1 / 4)


def people(persons, photos, noise, seed=0, d=32):
    rng = np.random.default_rng(seed)
    centre = np.repeat(rng.standard_normal((persons, d)), photos, axis=0)
    return centre + noise * rng.standard_normal(centre.shape), np.repeat(np.arange(persons), photos)


def test_blocks_change_nothing(monkeypatch):
    x, who = people(90, 2, 0.3)
    groups = np.random.default_rng(1).permutation(np.arange(len(x)) // 4)
    pictures = np.stack([x[groups == g].mean(axis=0) for g in range(groups.max() + 1)])
    one = recognize(pictures, groups, who, x)
    near = within(pictures, groups, who, x, distance=6.0)
    monkeypatch.setattr(module, "_ROWS", 7)
    monkeypatch.setattr(module, "_COLUMNS", 11)
    blocks = recognize(pictures, groups, who, x)
    assert blocks.rate == one.rate
    assert blocks.in_group == one.in_group
    assert blocks.other_cosine == pytest.approx(one.other_cosine, abs=1e-6)
    assert [a.tar for a in blocks.accepted] == pytest.approx([a.tar for a in one.accepted], abs=0.01)
    assert within(pictures, groups, who, x, distance=6.0).rate == pytest.approx(near.rate, abs=0.01)
    assert 0 < near.rate < 1
    assert near.baseline < near.rate


def test_acceptance_is_that_of_sorted_scores():
    x, who = people(60, 1, 0.0, d=8)
    groups = np.arange(60) // 3
    pictures = np.stack([x[groups == g].mean(axis=0) for g in range(20)])
    found = recognize(pictures, groups, who, x)

    def unit(a):
        return a / np.linalg.norm(a, axis=1, keepdims=True)

    cosine, member = unit(pictures) @ unit(x).T, groups == np.arange(20)[:, None]
    others = np.sort(cosine[~member])[::-1]
    for accepted in found.accepted:
        threshold = others[int(accepted.far * len(others))]  # the first who must stay out
        assert accepted.threshold == pytest.approx(threshold, abs=2e-5)
        assert accepted.tar == pytest.approx((cosine[member] > threshold).mean(), abs=1 / 60)


def test_averages_of_k_stay_below_the_bound_and_above_chance():
    x, who = people(200, 1, 0.0)
    for k in (2, 5):
        groups = np.arange(200) // k
        found = recognize(np.stack([x[groups == g].mean(axis=0) for g in range(200 // k)]), groups, who, x)
        assert found.chance < found.rate <= found.bound == pytest.approx(1 / k)
        assert found.in_group.rate == pytest.approx(found.rate * k)


def test_calibration_is_rank_one_of_second_photos():
    x, who = people(50, 3, 0.2)
    x, who = x[: 3 * 40 + 1], who[: 3 * 40 + 1]  # the 41st has one photo
    order = np.random.default_rng(0).permutation(len(x))
    found = calibrate(x[order], who[order])
    assert (found.pictures, found.bound) == (40, 1.0)
    assert found.chance == pytest.approx(1 / 41)
    assert found.rate == 1
    assert found.accepted[0].tar == 1
    hopeless = calibrate(*people(300, 2, 30.0))
    assert hopeless.rate < 0.05
    by_hand = calibrate(circle([0, 40, 90, 30, 200]), ["a", "b", "c", "a", "b"])  # a's second, at 30°, is nearer to b's first
    assert (by_hand.rate, by_hand.pictures) == (0, 2)


def test_one_group_has_no_others():
    found = recognize(circle([5]), np.zeros(6, int), PEOPLE, circle(DEGREES))
    assert found.rate == pytest.approx(1 / 6)
    assert found.in_group.rate == found.in_group.baseline == 1
    assert np.isnan(found.other_cosine)
    assert found.accepted == ()


def test_bad_input_is_refused():
    pictures, gallery = circle([5, 108, 85]), circle(DEGREES)
    for groups in (GROUPS + 1, np.zeros(6, int), GROUPS.astype(float), GROUPS - 1):
        with pytest.raises(InputError, match="groups are rows"):
            recognize(pictures, groups, PEOPLE, gallery)
    for persons, held in ((PEOPLE[:5], PEOPLE), (PEOPLE, PEOPLE[:5]), (PEOPLE[:5], None)):
        with pytest.raises(InputError, match="one person is needed"):
            recognize(pictures, GROUPS, persons, gallery, held)
    with pytest.raises(InputError, match="row of zeros"):
        recognize(pictures * [[0], [1], [1]], GROUPS, PEOPLE, gallery)
    with pytest.raises(InputError, match="gallery are finite"):
        recognize(pictures, GROUPS, PEOPLE, gallery * np.nan)
    with pytest.raises(InputError, match="as many numbers"):
        recognize(pictures, GROUPS, PEOPLE, np.ones((6, 3)))
    with pytest.raises(InputError, match="nobody"):
        recognize(pictures, GROUPS, PEOPLE, gallery, np.array(list("uvwxyz")))
    with pytest.raises(InputError, match="two photos"):
        calibrate(gallery, PEOPLE)
    with pytest.raises(InputError, match="one person is needed"):
        calibrate(gallery, PEOPLE[:4])


# ---------------------------------------------------------------------- in the codes of any map


@pytest.mark.parametrize("ruler", ["distance", "direction"])
def test_linking_by_codes_equals_the_slow_way(ruler, monkeypatch):
    """Also where the blocks are smaller than the tables."""
    rng = np.random.default_rng(3)
    gallery, groups = rng.normal(7, 2, (30, 5)), np.repeat(np.arange(10), 3)
    pictures = np.stack([gallery[groups == g].mean(0) for g in range(10)]) + rng.normal(0, 0.3, (10, 5))
    monkeypatch.setattr(module, "_ROWS", 4)
    monkeypatch.setattr(module, "_COLUMNS", 7)
    found = link(pictures, groups, np.arange(30), gallery, ruler=ruler)
    right = 0
    for g, picture in enumerate(pictures):
        x, y = picture - gallery.mean(0), gallery - gallery.mean(0)
        if ruler == "direction":
            x, y = x / np.linalg.norm(x), y / np.linalg.norm(y, axis=1, keepdims=True)
        right += groups[np.argmin(np.linalg.norm(y - x, axis=1))] == g
    assert found.in_group.rate == right / 10
    assert found.rate == pytest.approx(right / 30)
    assert found.bound == pytest.approx(1 / 3)
    assert found.chance == pytest.approx(1 / 30)


def test_codes_far_from_zero_are_compared_exactly():
    """Pixels of 255 in a million places: the difference of two squares would lose the difference of two faces."""
    rng = np.random.default_rng(0)
    gallery = (1e6 + rng.normal(0, 0.5, (20, 50))).astype(np.float32)
    assert link(gallery, np.arange(20), np.arange(20), gallery).rate == 1.0
