"""A result in sentences: what was promised, and what was measured. Pages and the command line show the same ones."""

from __future__ import annotations

from ..base.words import counted
from ..evaluate.evaluation import Evaluation
from ..evaluate.faces.figures import FaceEvaluation
from ..faces.recognize import RECOGNIZERS
from ..release.certificate import Certificate
from ..release.methods import FaceMethod


def verdict(result: Evaluation) -> list[str]:
    """What was promised of a table and what was measured."""
    found, attack = result.certificate.found, result.strongest
    out = [f"Promised: {result.certificate.promised()}."]
    if result.certificate.k is not None:
        unit = result.certificate.counted.removesuffix("s")
        where = f"the smallest of {counted(found.groups, 'class')}" if found.groups > 1 else "the only class"
        out.append(f"Kept: {where} in the written file has {counted(found.k, unit)}.")
    people = "people" if not attack.sampled else f"people in a sample of {attack.rows:,}"
    bound = "" if attack.bound is None else f"; the promise allows {attack.bound:.2%}"
    out.append(
        f"An attacker who holds all originals, the whole release and its certificate links {attack.rate:.2%} of the {people} to "
        f"their own record; by chance it would be {attack.baseline:.4%}{bound}."
    )
    proved = ""
    if attack.matching == "assignment":
        proved = ", proved optimal" if attack.exact else f", within {attack.gap:.1e} of the least cost"
    strongest = f"That is the strongest of {counted(len(result.attacks), 'attack')}: {attack.name}{proved}."
    if len(result.attacks) > 1:
        weakest = min(result.attacks.values(), key=lambda each: each.rate)
        strongest += f" The weakest, {weakest.name}, links {weakest.rate:.2%}."
    out.append(strongest)
    out += [f"Not tried: {name}: {reason}." for name, reason in result.missing.items()]
    for s in result.disclosure.sensitive:
        out.append(
            f"Guessing {s.column} from the release is right for {s.inference.rate:.1%} of the people, and for "
            f"{s.inference.baseline:.1%} without it; {s.given_away:.1%} are in classes where everybody has the same value."
        )
    for u in result.utilities:
        main = "accuracy" if u.task == "classification" else "r2"
        out.append(
            f"A {u.model} model learned from the release reaches {main} {u.released[main].mean:.3f} on held-out originals; one "
            f"learned from the originals reaches {u.original[main].mean:.3f}."
        )
    out.append(f"The release loses {result.drift.loss:.1%} of the records' variance (SSE/SST).")
    return out


def attacker_name(name: str, certificate: Certificate) -> str:
    """How an attacker on a release of faces is named in words."""
    if name in RECOGNIZERS:
        return RECOGNIZERS.entry(name).title
    which, _, ruler = name.partition(", ")
    if not ruler or not isinstance(certificate.method, FaceMethod):
        return name
    own = certificate.method.group_map if which == "group map" else certificate.method.synthesis_map
    return f"{ruler} in {' + '.join(part.name for part in own).upper()}, its {which}"


def face_verdict(result: FaceEvaluation) -> list[str]:
    """What was promised of faces and what was measured."""
    found, r, alone = result.found, result.released, result.unaveraged
    (name, attack), *others = r.attackers.items()
    whom = ("person", "people") if result.certificate.counted == "persons" else ("photo", "photos")
    out = [
        f"Promised: {result.certificate.promised()}.",
        f"{'Kept' if found.k >= result.k else 'Broken'}: the release has {counted(found.groups, 'different picture')}; the one "
        f"that stands for fewest stands for {counted(found.k, *whom)}.",
        f"An attacker who holds all {result.faces:,} photos and names the nearest is right for {attack.rate:.1%} of them "
        f"({attack.interval[0]:.1%} to {attack.interval[1]:.1%}) by the strongest of {counted(len(others) + 1, 'attack')}, "
        f"{attacker_name(name, result.certificate)}; 1/k is {1 / result.k:.1%}, the most that any attacker can reach here is "
        f"{attack.bound:.1%}, and by chance it is {attack.chance:.1%}.",
        "The others: " + ", ".join(f"{attacker_name(each, result.certificate)} {a.rate:.1%}" for each, a in others) + ".",
        f"The group can be told: the nearest photo shows a member for {attack.in_group.rate:.1%} of the pictures "
        f"({attack.in_group.baseline:.1%} by chance). Which member it is cannot be told.",
    ]
    if alone is not None:
        out.append(
            f"Without averaging, each face sent through the synthesis map alone, {alone.strongest.rate:.1%} of "
            f"{counted(alone.pictures, 'face')} are named right: only what is hidden beyond that is hidden by averaging."
        )
    out.append(
        f"FID to the originals before {result.before} is {r.fid.value:.1f}; as many different real faces, drawn at random, "
        f"would have {r.floor.value:.1f}."
    )
    out.append(f"A face is found in {r.detected:.1%} of the {counted(r.pictures, 'different released picture')}.")
    shown = {each.label: each for each in result.agreement}
    if shown:
        apart = ", ".join(f"{label} {shown[label].share:.0%}" for label in ("Male", "Young", "Smiling") if label in shown)
        out.append(
            f"A released face shows {shown['All'].share:.0%} of the labels as its original does ({shown['All'].chance:.0%} if "
            f"faces were dealt out at random){'; ' + apart if apart else ''}."
        )
    return out
