"""The papers' little table: identifiers go, quasi-identifiers are unified, the disease stays."""

from __future__ import annotations

import polars as pl

from omokage import Anonymizer, Mondrian, Roles

patients = pl.DataFrame(
    {
        "id": ["t1", "t2", "t3", "t4", "t5"],
        "zip": ["0123", "0124", "0125", "1220", "1221"],
        "age": [22, 24, 26, 31, 39],
        "gender": ["F", "M", "M", "M", "M"],
        "disease": ["Cancer", "Flu", "Aids", "Cold", "Flu"],
    }
)
roles = Roles(identifier=["id"], quasi=["zip", "age", "gender"], sensitive=["disease"])
release = Anonymizer(Mondrian(k=2), random_state=0).release(patients, roles=roles)

print(release.data)
print(release.certificate.promised())
