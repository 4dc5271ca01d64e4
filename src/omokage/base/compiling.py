"""Compiling kernels: which are kept for the next run, and one sentence to the user before the first is compiled.

Numba compiles a kernel when it is first called and keeps the machine code in a cache: beside the source, or, where that cannot be
written, in the user's cache folder (``NUMBA_CACHE_DIR`` names another place). Where no place can be written, kernels are
compiled again in every process. Only kernels that Python calls are kept; what they call is compiled into them.

Importing this module does not import numba, which takes half a second: modules of kernels do, and they are imported when the
first table comes that is large enough for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MESSAGE = "compiling kernels (first run only)"

# Sums may be taken in any order (that is what lets them use vector registers); NaN and infinity keep their meaning.
SUMS = {"nsz", "contract", "reassoc"}
# The same for minima of numbers that are never NaN.
MINIMA = {"nnan", "nsz", "reassoc"}

_tell: Callable[[str], None] = lambda _: None  # noqa: E731
_listening = False


def announce(listener: Callable[[str], None]) -> None:
    """Have ``listener`` called with one sentence before the first kernel of this process is compiled.

    It is not called where all kernels come from the cache, or where none is needed.
    """
    global _tell
    _tell = listener


def kernel(*, cached: bool = True, reorder: set[str] | None = None) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that compiles a function without Python objects, and has it release the GIL.

    Parameters
    ----------
    cached : bool
        Keep the machine code for the next process. False is for functions that only other kernels call.
    reorder : set of str or None
        The liberties that the compiler may take with floating point: ``SUMS`` or ``MINIMA``.
    """
    import numba

    njit: Any = numba.njit
    _listen()

    def decorate(function: Callable[..., Any]) -> Any:
        options = {"nogil": True, "fastmath": reorder or False}
        if not cached:
            return njit(**options)(function)
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:  # numba found no place that it can write to
            return njit(**options)(function)

    return decorate


def _listen() -> None:
    """Hear from numba when it compiles something; what comes from the cache it does not mention."""
    global _listening
    if _listening:
        return
    _listening = True
    from numba.core import event as numba_event

    event: Any = numba_event

    class First(event.Listener):
        told = False

        def on_start(self, event: Any) -> None:
            if not self.told:
                First.told = True
                _tell(MESSAGE)

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", First())
