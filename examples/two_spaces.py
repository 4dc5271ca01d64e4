"""Group in one space, average in another: the logarithm decides who is alike, the counts themselves are averaged."""

from __future__ import annotations

import numpy as np

from omokage import Anonymizer, Cells
from omokage.method.maps import parse_map

counts = np.random.default_rng(0).negative_binomial(0.5, 0.1, size=(500, 12)).astype(np.float64)
release = Anonymizer(Cells(k=5), group_map=parse_map("log+pca:6"), random_state=0).release(counts)

print(release.certificate.promised())
print("smallest group:", release.certificate.found.k)
print("column sums before and after:", counts.sum(axis=0)[:3], release.data.sum(axis=0)[:3].round(1))
