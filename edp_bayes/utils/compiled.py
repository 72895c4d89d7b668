"""Compiled helpers: the decorator, the threads and an exponential made for vector loops."""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property, partial
from typing import Any, cast

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic

from edp_bayes.exceptions import EdpBayesWarning
from edp_bayes.utils.leftovers import Folder

BLOCKS_PER_THREAD = 8

# Divisions follow IEEE rules; products may be fused with sums, but no sum is ever reordered.
# Nothing passes compiled functions on by their address, which takes an entry for C.
RULES: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract"},
    "no_cfunc_wrapper": True,
}

# A counter that starts here, and not at a literal 0, does not make the functions it is passed to
# compile a second time.
ZERO = cast(int, np.int64(0))


def compiled[F: Callable[..., Any]](function: F) -> F:
    """Compile a function without the interpreter lock and keep the result on disk."""
    return kept(numba.njit(cache=True, **RULES), function)


def linked[F: Callable[..., Any]](function: F) -> F:
    """Compile a helper as part of what calls it; the interpreter does not, but for tests."""
    return kept(partial(_inner, cache=True), function)


def inlined[F: Callable[..., Any]](function: F) -> F:
    """Compile a formula into whatever calls it, so that loops around it can become vectors."""
    return kept(partial(_inner, cache=True, forceinline=True), function)


def borrowing[F: Callable[..., Any]](function: F) -> F:
    """Compile a helper that neither makes nor returns arrays, without counting references.

    The counts at every use of an array take longer than the arithmetic of a short helper.
    """
    return kept(partial(_inner, cache=True, _nrt=False), function)


def generic[F: Callable[..., Any]](function: F) -> F:
    """Compile a closure that borrows arrays as part of what calls it, which is kept on disk."""
    return _inner(function, _nrt=False)


class Linked(JITCodeLibrary):  # type: ignore[misc]
    """Code that is only ever linked into a caller: optimised, and never made machine code alone."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def serialize_using_object_code(self) -> Any:
        """Return what is kept on disk: there is no machine code."""
        return self.serialize_using_bitcode()


class LinkedCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler, for functions that are only linked into others."""

    def define_pipelines(self) -> Any:
        """Say before Numba's own steps where the code goes, and that nothing enters it."""
        state = self.state
        state.library = Linked(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        return super().define_pipelines()


class Inner(CPUDispatcher):  # type: ignore[misc]
    """A compiled function for compiled callers; another caller's first call compiles one for it."""

    def add_overload(self, cres: Any) -> None:
        """Keep a compiled version, under a name in the place of an entry where it has none."""
        if cres.entry_point is None:
            cres = cres._replace(entry_point=object())
            cres.target_context.insert_user_function(cres.entry_point, cres.fndesc, [cres.library])
        self.overloads[tuple(cres.signature.args)] = cres

    @cached_property
    def _caller(self) -> Callable[..., Any]:
        # A function that captures another is not kept on disk.
        return cast(Callable[..., Any], numba.njit(**RULES)(lambda *arguments: self(*arguments)))

    def __call__(self, *arguments: Any) -> Any:
        """Call the function from the interpreter, as tests do."""
        return self._caller(*arguments)


def _inner[F: Callable[..., Any]](function: F, **options: Any) -> F:
    """Compile a function without an entry for the interpreter, a seventh of the compilation."""
    made = numba.njit(no_cpython_wrapper=True, pipeline_class=LinkedCompiler, **RULES, **options)(
        function
    )
    made.__class__ = Inner
    return cast(F, made)


def kept[F: Callable[..., Any]](compiler: Callable[[F], Any], function: F) -> F:
    """Compile by a decorator of Numba that keeps its result on disk, wherever that can be."""
    try:
        return cast(F, compiler(function))
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
    _keep_in_temporary_folder()
    return cast(F, compiler(function))


@cache
def _keep_in_temporary_folder() -> Folder:
    """Let Numba, here and in processes started from here, keep its code until this one ends.

    The folder is new and private: code that others can write must not be loaded.
    """
    folder = Folder("edp_bayes_numba_")
    os.environ["NUMBA_CACHE_DIR"] = numba.config.CACHE_DIR = str(folder.path)
    warnings.warn(
        "neither the installation nor the home folder can be written, so that code is compiled "
        "again in every process: NUMBA_CACHE_DIR names a folder to keep it in",
        EdpBayesWarning,
        stacklevel=4,
    )
    return folder


def in_threads(
    function: Callable[..., None], tasks: int, *arguments: object, least: int = 1
) -> None:
    """Call function(first, last, *arguments) on blocks of range(tasks), in Numba's threads.

    The compiled functions release the interpreter lock, so plain threads share the cores; unlike
    Numba's own parallel loops they cost no time of compilation and may be nested. Every task
    writes its own part of the result, which therefore does not depend on the blocks. A thread
    is started for no fewer than `least` tasks.
    """
    arguments = tuple(map(_in_one_layout, arguments))
    threads = min(numba.get_num_threads(), tasks // least)
    if threads <= 1:
        function(0, tasks, *arguments)
        return
    blocks = min(tasks, BLOCKS_PER_THREAD * threads)
    edges = [tasks * k // blocks for k in range(blocks + 1)]
    with ThreadPoolExecutor(threads) as pool:
        jobs = [
            pool.submit(function, first, last, *arguments)
            for first, last in itertools.pairwise(edges)
        ]
        for job in jobs:
            job.result()


def _in_one_layout(argument: Any) -> Any:
    """Return arrays, also in tuples, so that every function is compiled once."""
    if isinstance(argument, tuple):
        parts = map(_in_one_layout, argument)
        return argument._make(parts) if hasattr(argument, "_make") else tuple(parts)
    if isinstance(argument, np.ndarray):
        return np.require(argument, requirements=["C", "W"])
    return argument


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


@inlined
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


@inlined
def upper_tail(u: float) -> float:
    """Return P(N(0, 1) > u) for 0 <= u, to a few units in the last place; 0 from u = 37.6 on."""
    return decay(0.5 * u * u)[0] * mills_ratio(u)


@inlined
def mills_ratio(u: float) -> float:
    """Return exp(u^2 / 2) P(N(0, 1) > u) for 0 <= u, to a unit or two in the last place.

    A rational approximation, wrong by at most 7e-17 of its value up to u = 1e6. All its
    coefficients are positive, so that nothing cancels. Free of branches, as `decay`.
    """
    top = 3.173116456333287e-07
    top = 9.37649743117984e-06 + u * top
    top = 0.0001371362261751591 + u * top
    top = 0.00128745956814382 + u * top
    top = 0.00851888937619313 + u * top
    top = 0.04131364217124902 + u * top
    top = 0.1484235325126849 + u * top
    top = 0.39031434661466197 + u * top
    top = 0.7217803759817759 + u * top
    top = 0.8545572210202144 + u * top
    top = 0.5 + u * top
    bottom = 7.953823428141942e-07
    bottom = 2.35033935780004e-05 + u * bottom
    bottom = 0.00034454492434963455 + u * bottom
    bottom = 0.0032506859495358043 + u * bottom
    bottom = 0.021695847755738084 + u * bottom
    bottom = 0.10673811938687731 + u * bottom
    bottom = 0.3927167659934474 + u * bottom
    bottom = 1.0757116165871197 + u * bottom
    bottom = 2.14194840276301 + u * bottom
    bottom = 2.9438565502803504 + u * bottom
    bottom = 2.5069990028432954 + u * bottom
    bottom = 1.0 + u * bottom
    return top / bottom
