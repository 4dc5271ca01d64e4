"""A certificate to show: what was promised and found, how it was made, and what is not covered, as Markdown."""

from __future__ import annotations

from ..base.plain import LONGEST, plain
from .certificate import Certificate, Noisy

_SHOWN_COLUMNS, _SHOWN_FILES = 200, 20
_EVERY = (
    "Several releases of the same people can be intersected; each certificate speaks of one release.",
    "The hashes show that the files are the ones certified. Who certified them is shown only by a signature "
    "(omokage verify --signer).",
)
DIFFERENCING = (
    "Whoever knows all members of a group but one can compute the last one's values from a mean, up to the released digits. "
    "This is inherent in averaging; a larger k, the median, or fewer digits (--digits) make it harder."
)
NOT_COVERED = (
    "k counts rows alike in the quasi-identifiers. Omokage does not protect columns released unchanged (sensitive, keep): "
    "whoever knows their values may find a row by them.",
    "Within a group, sensitive values that are all the same are given away, unless l-diversity or t-closeness was asked.",
    DIFFERENCING,
    *_EVERY,
)
FACES_NOT_COVERED = (
    "k counts released faces that are the same picture. What the receiver knows besides (who was photographed, when, by whom) "
    "is not hidden by it.",
    "What the people of one group have in common (age, sex, a beard, glasses) can be seen in their picture, as it must be.",
    "Whoever has the photos of all members of a group but one can subtract them from the mean and see much of the last one's "
    "face. This is inherent in averaging; a larger k makes it harder.",
    *_EVERY,
)
NOISE_NOT_COVERED = (
    "Noise hides records in the mapped space but promises no k, and no differential privacy: measure what an attacker "
    "can still do.",
    *_EVERY,
)


def not_covered(certificate: Certificate) -> tuple[str, ...]:
    """What the promise of this certificate does not cover."""
    if isinstance(certificate.promise, Noisy):
        return NOISE_NOT_COVERED
    return FACES_NOT_COVERED if certificate.medium == "faces" else NOT_COVERED


def readable(certificate: Certificate) -> str:
    """The certificate as Markdown; it says the same as the JSON."""
    found, unit = certificate.found, certificate.counted
    where = "the written bytes" if certificate.files else "the release in memory"
    sizes = [(str(size), str(number)) for size, number in found.class_sizes]
    shown = sizes if len(sizes) <= 12 else [*sizes[:10], ("…", "…"), sizes[-1]]
    lines = [
        "# Certificate of an anonymized release", "",
        f"**Promised:** {_inline(certificate.promised())}.", "",
        f"**Found on {where}:** {_counted(certificate)}, the smallest of {found.k} {unit}"
        + (f"; {found.persons} persons" if found.persons is not None else "") + ".",
    ]  # fmt: skip
    lines += [f"- {c.name} of `{_inline(c.column)}`: asked {c.asked:g}, found {c.found:.4g}" for c in found.constraints]
    lines += _around(certificate)
    lines += ["", f"| class size in {unit} | classes |", "|---|---|", *(f"| {size} | {number} |" for size, number in shown)]
    lines += _columns(certificate)
    lines += ["", "## How it was made", "", *(f"- {_inline(line)}" for line in certificate.method.lines())]
    lines += _source(certificate) + _files(certificate)
    lines += [f"- {_inline(name)} {_inline(number)}" for name, number in certificate.versions.items()]
    if certificate.notes:
        lines += ["", "## Notes", "", *(f"- {_inline(note)}" for note in certificate.notes)]
    lines += ["", "## What is not covered", "", *(f"- {gap}" for gap in not_covered(certificate))]
    lines += ["", "Check it: `omokage verify` on this folder.", ""]
    return "\n".join(lines)


def _counted(certificate: Certificate) -> str:
    found = certificate.found
    if certificate.medium == "faces":
        return f"{found.rows} faces, of which {found.groups} are different pictures"
    return f"{found.rows} rows in {found.groups} classes of equal quasi-identifiers"


def _around(certificate: Certificate) -> list[str]:
    around = certificate.around
    if around is None:
        return []
    searched = f"{around.hidden_values} values" if around.hidden_values else "there are no values of six bytes or more"
    lines = [
        f"- around the values: {searched} that fewer than k people have and that are not released"
        + (f"; none of them is in the {around.searched_bytes} bytes searched" if around.hidden_values else "")
    ]
    if around.orders:
        lines.append(f"- the input's order was compared with that of {', '.join(around.orders)}: it does not show")
    return ["", *lines]


def _columns(certificate: Certificate) -> list[str]:
    columns = certificate.columns
    if not columns:
        return []
    lines = ["", "## Columns", "", "| column | role | kind | unified by |", "|---|---|---|---|"]
    lines += [f"| `{_inline(c.name)}` | {c.role} | {c.kind} | {_inline(c.unify or '')} |" for c in columns[:_SHOWN_COLUMNS]]
    if len(columns) > _SHOWN_COLUMNS:
        lines.append(f"| … {len(columns) - _SHOWN_COLUMNS} more | | | |")
    return lines


def _source(certificate: Certificate) -> list[str]:
    source = certificate.source
    what = "photos" if certificate.medium == "faces" else "rows"
    keyed = "" if source.fingerprint is None else f", keyed fingerprint {source.fingerprint} (only the key can check it)"
    return [f"- input: {source.records} {what}{keyed}"]


def _files(certificate: Certificate) -> list[str]:
    lines = [f"- file: {file.path}, {file.bytes} bytes, sha256 {file.sha256}" for file in certificate.files[:_SHOWN_FILES]]
    if len(certificate.files) > _SHOWN_FILES:
        lines.append(f"- … {len(certificate.files) - _SHOWN_FILES} more files, each with its hash in certificate.json")
    return lines


def _inline(text: str) -> str:
    """Outside text within a line or a cell of Markdown."""
    return plain(text, LONGEST).replace("|", "\\|").replace("`", "'").replace("<", "‹").replace(">", "›")
