"""What all groupers share: how they look at their rows, and what scikit-learn asks of them."""

from __future__ import annotations

from typing import Any

from ...base.matrix import Matrix, as_matrix
from ...base.parameters import check_parameters


class Grouper:
    """A base of the built-in groupers; your own needs only ``k`` and ``fit_predict``."""

    k: int
    n_features_in_: int

    def _rows(self, X: Any) -> Matrix:
        """The rows to group, after a look at the parameters."""
        check_parameters(self)
        x = as_matrix(X, self.k)
        self.n_features_in_ = x.shape[1]
        return x
