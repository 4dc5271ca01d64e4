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
_NOISE = (
    "Noise hides records in the mapped space but promises no k, and no differential privacy: measure what an attacker "
    "can still do.",
    *_EVERY,
)


def not_covered(certificate: Certificate) -> tuple[str, ...]:
    """What the promise of this certificate does not cover."""
    if isinstance(certificate.promise, Noisy):
        return _NOISE
    return (*certificate.method.gaps, *_EVERY)


def readable(certificate: Certificate) -> str:
    """The certificate as Markdown; it says the same as the JSON."""
    found, unit = certificate.found, certificate.counted
    where = "the written bytes" if certificate.files else "the release in memory"
    sizes = [(str(size), str(number)) for size, number in found.class_sizes]
    shown = sizes if len(sizes) <= 12 else [*sizes[:10], ("…", "…"), sizes[-1]]
    lines = [
        "# Certificate of an anonymized release", "",
        f"**Promised:** {_inline(certificate.promised())}.", "",
        f"**Found on {where}:** {certificate.method.count(found.rows, found.groups)}, the smallest of {found.k} {unit}"
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
    keyed = "" if source.fingerprint is None else f", keyed fingerprint {source.fingerprint} (only the key can check it)"
    return [f"- input: {source.records} {certificate.method.records}{keyed}"]


def _files(certificate: Certificate) -> list[str]:
    lines = [f"- file: {file.path}, {file.bytes} bytes, sha256 {file.sha256}" for file in certificate.files[:_SHOWN_FILES]]
    if len(certificate.files) > _SHOWN_FILES:
        lines.append(f"- … {len(certificate.files) - _SHOWN_FILES} more files, each with its hash in certificate.json")
    return lines


def _inline(text: str) -> str:
    """Outside text within a line or a cell of Markdown."""
    return plain(text, LONGEST).replace("|", "\\|").replace("`", "'").replace("<", "‹").replace(">", "›")
