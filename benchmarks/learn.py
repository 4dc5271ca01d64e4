"""Training steps against torch and Opacus, in one run, as ratios.

    python benchmarks/learn.py            # the paper's network, batches of 50 records
    python benchmarks/learn.py --quick    # fewer repetitions

CPU milliseconds of one thread for one step, the median of several rounds. Ours draws its noise on an integer
grid from OpenSSL's random bits; torch and Opacus draw floating-point noise from a Mersenne twister, which is
faster and leaks (see docs/learn.md). Peers that are not installed are left out: ``pip install torch``,
``pip install --no-deps opacus opt_einsum``.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from omokage.learn import network_kernels as kernels
from omokage.learn.descent import norm_grid, to_grid
from omokage.learn.network import Network, initial_network, weight_mask
from omokage.learn.noise import NoiseSource, release_integers

SIZES = (108, 32, 32, 32, 32, 2)
BATCH = 50
RECORDS = 5000
CLIP, MULTIPLIER, RATE, DECAY = 1.0, 1.0, 0.01, 0.001


def milliseconds(step: Callable[[], Any], repetitions: int, rounds: int = 5) -> float:
    for _ in range(3):
        step()
    found = []
    for _ in range(rounds):
        begun = time.process_time()
        for _ in range(repetitions):
            step()
        found.append((time.process_time() - begun) / repetitions * 1e3)
    return statistics.median(found)


def data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.random((RECORDS, SIZES[0])), rng.integers(0, SIZES[-1], RECORDS)


def our_plain_step() -> Callable[[], Any]:
    X, y = data()
    rng = np.random.default_rng(0)
    theta = initial_network(SIZES, rng).theta
    mask, low, high = weight_mask(SIZES), np.full(theta.size, -np.inf), np.full(theta.size, np.inf)
    shape = np.array(SIZES, np.int64)

    def step() -> None:
        rows = rng.integers(0, RECORDS, BATCH)
        kernels.sgd_epoch(theta, shape, X, y, rows, BATCH, RATE, DECAY, mask, low, high)

    return step


def our_private_step(noise: bool = True) -> Callable[[], Any]:
    X, y = data()
    state = {"network": initial_network(SIZES, np.random.default_rng(0))}
    source = NoiseSource()
    parameters = state["network"].theta.size
    grid = norm_grid(CLIP, parameters, 2, RECORDS)

    def step() -> None:
        network = state["network"]
        rows = source.poisson_subset(RECORDS, BATCH / RECORDS)
        total = to_grid(network.gradient(X, y, rows, 2, CLIP), grid.step)
        if noise:
            total = total + source.gaussian(parameters, MULTIPLIER * (grid.units + grid.slack))
        state["network"] = Network(SIZES, network.theta - RATE / BATCH * total * grid.step)

    return step


def torch_network(torch: Any) -> Any:
    layers: list[Any] = []
    for m, k in zip(SIZES[:-1], SIZES[1:], strict=True):  # noqa: RUF007 - reads like the sizes
        layers += [torch.nn.Linear(m, k), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def torch_plain_step(torch: Any) -> Callable[[], Any]:
    X, y = data()
    inputs, labels = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    network = torch_network(torch)
    optimizer = torch.optim.SGD(network.parameters(), lr=RATE, weight_decay=DECAY)

    def step() -> None:
        rows = torch.randint(0, RECORDS, (BATCH,))
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(inputs[rows]), labels[rows]).backward()
        optimizer.step()

    return step


def opacus_step(torch: Any) -> Callable[[], Any]:
    opacus = importlib.import_module("opacus")

    X, y = data()
    network = torch_network(torch)
    dataset = torch.utils.data.TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y))
    network, optimizer, loader = opacus.PrivacyEngine().make_private(
        module=network,
        optimizer=torch.optim.SGD(network.parameters(), lr=RATE),
        data_loader=torch.utils.data.DataLoader(dataset, batch_size=BATCH),
        noise_multiplier=MULTIPLIER,
        max_grad_norm=CLIP,
        poisson_sampling=True,
    )
    batches = iter([])  # type: ignore[var-annotated]

    def step() -> None:
        nonlocal batches
        try:
            inputs, labels = next(batches)
        except StopIteration:
            batches = iter(loader)
            inputs, labels = next(batches)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(inputs), labels).backward()
        optimizer.step()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    repetitions = 20 if parser.parse_args().quick else 200
    with threadpool_limits(1):
        compare(repetitions)


def compare(repetitions: int) -> None:
    rows = [
        ("ours, plain", milliseconds(our_plain_step(), repetitions)),
        ("ours, DP-SGD without its noise", milliseconds(our_private_step(noise=False), repetitions)),
        ("ours, DP-SGD", milliseconds(our_private_step(), repetitions)),
    ]
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(1)
        rows.append(("torch, plain", milliseconds(torch_plain_step(torch), repetitions)))
        if importlib.util.find_spec("opacus"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows.append(("Opacus, DP-SGD", milliseconds(opacus_step(torch), repetitions)))
    times = dict(rows)
    parameters = initial_network(SIZES, np.random.default_rng(0)).theta.size
    print(f"network {SIZES}, {parameters} parameters, batches of {BATCH}, one thread\n")
    print("| step | ms | against ours, same kind |\n|---|---|---|")
    for name, ms in rows:
        own = times["ours, plain" if "plain" in name else "ours, DP-SGD"]
        print(f"| {name} | {ms:.3f} | {ms / own:.1f} × |")
    print_noise(parameters, repetitions)


def print_noise(parameters: int, repetitions: int) -> None:
    source, scale = NoiseSource(), 2.0**20
    zeros = np.zeros(parameters, np.int64)
    rng = np.random.default_rng(0)
    ours = milliseconds(lambda: source.laplace(parameters, scale), repetitions)
    rows = (
        ("ours, discrete Laplace", ours),
        ("ours, discrete Gaussian", milliseconds(lambda: source.gaussian(parameters, scale), repetitions)),
        ("OpenDP, discrete Laplace", milliseconds(lambda: release_integers(zeros, 2**20, 1.0, source), 3)),
        ("NumPy, floating-point Laplace (leaks)", milliseconds(lambda: rng.laplace(size=parameters), repetitions)),
    )
    print(f"\n| {parameters} numbers of noise | ms | against ours |\n|---|---|---|")
    for name, ms in rows:
        print(f"| {name} | {ms:.3f} | {ms / ours:.1f} × |")


if __name__ == "__main__":
    main()
