"""Autoencoder: a network that learns to give its input back through a narrow middle (DR paper, section 3.1.3).

The paper uses a linear transformation; ``hidden`` makes it nonlinear. Inputs are standardized inside, so that columns
count alike. Training stops when rows held out stop getting better, and the best weights are kept.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...base.matrix import are
from ...base.parameters import Rules, real, several, whole
from ...errors import MapError, MissingExtra
from .checks import Map, check_components
from .elementwise import Standardize

if TYPE_CHECKING:
    from torch import nn


class Autoencoder(Map):
    """Encoder and decoder trained on the CPU; needs the ``neural`` extra.

    Parameters
    ----------
    n_components : int
        Width of the middle layer.
    hidden : tuple of int
        Widths of ReLU layers between input and middle, mirrored on the way back; empty is linear.
    learning_rate, batch_size, max_epochs : training, with Adam
    patience : int
        Epochs without improvement on the held-out tenth of the rows after which training stops.
    random_state : int
        Fixes the first weights, the split and the order of the rows.
    """

    name: ClassVar[str] = "the autoencoder"
    parameters: ClassVar[Rules] = {
        "n_components": whole(1),
        "hidden": several(whole(1)),
        "learning_rate": real(0, above=True),
        "batch_size": whole(1),
        "max_epochs": whole(1),
        "patience": whole(1),
        "random_state": whole(0),
    }

    def __init__(
        self,
        n_components: int,
        *,
        hidden: tuple[int, ...] = (),
        learning_rate: float = 1e-3,
        batch_size: int = 256,
        max_epochs: int = 100,
        patience: int = 5,
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.hidden = hidden
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Autoencoder:
        x = self._first(X)
        if len(x) < 2:
            raise MapError(f"the autoencoder needs at least 2 rows, but there {are(len(x))}: add rows")
        torch = _torch()
        check_components(self.n_components, x.shape[1], "the autoencoder")
        self.standard_ = Standardize().fit(x)
        rows = torch.from_numpy(self.standard_.transform(x).astype(np.float32))
        with torch.random.fork_rng(devices=[]):  # the caller's generator is left alone
            torch.manual_seed(self.random_state)
            self.encoder_, self.decoder_ = self._networks(x.shape[1])
            self._train(rows)
        return self

    def _networks(self, d: int) -> tuple[nn.Sequential, nn.Sequential]:
        parts = _torch().nn
        widths = [d, *self.hidden, self.n_components]

        def stack(w: list[int]) -> Any:
            layers: list[Any] = []
            for a, b in pairwise(w[:-1]):
                layers += [parts.Linear(a, b), parts.ReLU()]
            return parts.Sequential(*layers, parts.Linear(w[-2], w[-1]))

        return stack(widths), stack(widths[::-1])

    def _train(self, rows: Any) -> None:
        torch = _torch()
        order = torch.randperm(len(rows))
        held = max(1, len(rows) // 10)
        check, learn = rows[order[:held]], rows[order[held:]]
        both = torch.nn.Sequential(self.encoder_, self.decoder_)
        optimizer = torch.optim.Adam(both.parameters(), lr=self.learning_rate)
        mse = torch.nn.functional.mse_loss
        best, waited, keep = float("inf"), 0, None
        self.losses_: list[float] = []
        for _ in range(self.max_epochs):
            for batch in torch.randperm(len(learn)).split(self.batch_size):
                optimizer.zero_grad()
                loss = mse(both(learn[batch]), learn[batch])
                loss.backward()
                optimizer.step()
            with torch.no_grad():
                self.losses_.append(float(mse(both(check), check)))
            if not np.isfinite(self.losses_[-1]):
                raise MapError("the autoencoder's loss is no longer a number: lower learning_rate")
            if self.losses_[-1] < best * (1 - 1e-4):
                best, waited = self.losses_[-1], 0
                keep = {name: value.clone() for name, value in both.state_dict().items()}
            elif (waited := waited + 1) >= self.patience:
                break
        if keep is not None:
            both.load_state_dict(keep)
        both.eval()

    def transform(self, X: Any) -> NDArray[Any]:
        x = self._more(X)
        return self._run(self.encoder_, self.standard_.transform(x)).astype(x.dtype)

    def inverse_transform(self, Z: Any) -> NDArray[Any]:
        z = self._mapped(Z)
        out: NDArray[Any] = self.standard_.inverse_transform(self._run(self.decoder_, z)).astype(z.dtype)
        return out

    @staticmethod
    def _run(network: nn.Sequential, x: NDArray[Any]) -> NDArray[np.float32]:
        torch = _torch()
        with torch.no_grad():
            out: NDArray[np.float32] = network(torch.from_numpy(np.asarray(x, dtype=np.float32))).numpy()
        return out


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise MissingExtra("the autoencoder", "neural") from None
    return torch
