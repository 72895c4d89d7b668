"""Compiled helpers: the decorator of every kernel, and an exponential made for vector loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])


# Only explicit numba.prange loops run in parallel: turning array expressions into parallel loops
# as well would double the time of compilation.
_PRANGE_ONLY = {
    "comprehension": False,
    "reduction": False,
    "inplace_binop": False,
    "setitem": False,
    "numpy": False,
    "stencil": False,
    "fusion": False,
    "prange": True,
}


def compiled(*, parallel: bool = False) -> Callable[[F], F]:
    """Compile a function without the interpreter lock and keep the result on disk.

    Divisions follow IEEE rules; products may be fused with sums, but no sum is ever reordered, so
    results do not depend on the number of threads or on how the work is cut into blocks.
    """

    def decorate(function: F) -> F:
        jit = numba.njit(
            cache=True,
            nogil=True,
            error_model="numpy",
            fastmath={"contract"},
            parallel=dict(_PRANGE_ONLY) if parallel else False,
        )
        return cast(F, jit(function))

    return decorate


@intrinsic  # type: ignore[untyped-decorator]
def _float_bits(typingctx: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic  # type: ignore[untyped-decorator]
def _bits_float(typingctx: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


_LOG2_E = 1.4426950408889634
_LN2_HIGH = 0.693147180369123816490
_LN2_LOW = 1.90821492927058770002e-10
_SHIFTER = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer in the low bits
_UNDERFLOW = 708.0


@compiled()
def decay(x: float) -> tuple[float, float]:
    """Return exp(-x) and 1 - exp(-x), both to a few units in the last place, for x >= 0.

    Free of branches, so that a loop around it becomes vector instructions. From x = 708 on,
    where exp(-x) leaves the normal range, the pair is (0, 1).
    """
    y = min(x, _UNDERFLOW)
    shifted = y * _LOG2_E + _SHIFTER
    n = shifted - _SHIFTER
    power = _bits_float((np.int64(1023) << np.int64(52)) - (_float_bits(shifted) << np.int64(52)))
    r = (y - n * _LN2_HIGH) - n * _LN2_LOW
    # series of (1 - exp(-r)) / r on abs(r) <= ln(2) / 2, to 1e-17
    s = 1.0 / 87178291200.0
    s = 1.0 / 6227020800.0 - r * s
    s = 1.0 / 479001600.0 - r * s
    s = 1.0 / 39916800.0 - r * s
    s = 1.0 / 3628800.0 - r * s
    s = 1.0 / 362880.0 - r * s
    s = 1.0 / 40320.0 - r * s
    s = 1.0 / 5040.0 - r * s
    s = 1.0 / 720.0 - r * s
    s = 1.0 / 120.0 - r * s
    s = 1.0 / 24.0 - r * s
    s = 1.0 / 6.0 - r * s
    s = 0.5 - r * s
    s = 1.0 - r * s
    lost = power * (r * s)
    kept = power - lost
    dead = x >= _UNDERFLOW
    return (0.0 if dead else kept), (1.0 if dead else (1.0 - power) + lost)
