"""What a block of individuals needs of a coupling, for workers that are elsewhere.

No labels are part of it, and no records: responses, contributions of these individuals, and draws.
The draws and other large arrays that all blocks have in common are packed once and apart.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.base import Coupling
from edp_bayes.coupling.joint import JointCoupling
from edp_bayes.coupling.regression import RegressionCoupling
from edp_bayes.coupling.shift import ShiftCoupling
from edp_bayes.coupling.views.some_draws import SomeDraws, StackedCoupling
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.distributions.multivariate import NormalMixture
from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
from edp_bayes.exceptions import InputTypeError
from edp_bayes.responses.joined import SomeJointResponses
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from scipy.sparse import csc_array

    from edp_bayes.responses.responses import Responses

__all__ = ["Contributions", "Packed", "taken", "unpack"]

# Bytes from which an array that all blocks have in common is sent apart.
SHARED_BYTES = 1024


# What blocks share.
type Common = Mixture | NormalMixture | Array


@dataclass(frozen=True, eq=False)
class Contributions:
    """Contributions of some individuals to all responses; attributes as those of `Responses`."""

    response: Array
    contribution: csc_array[np.float64]
    rank: Index
    largest_contribution: Array
    samples: int
    n_databases: int
    noise: GaussianNoise | LaplaceNoise | None
    reduced: NDArray[np.bool_]
    presence: Index

    @classmethod
    def of(cls, responses: Responses | Contributions, members: Index) -> Contributions:
        """Take those of some individuals."""
        return cls(
            responses.response,
            responses.collected[:, members],
            responses.rank[members],
            responses.largest_contribution[members],
            responses.samples,
            responses.n_databases,
            responses.noise,
            responses.reduced[members],
            responses.presence[members],
        )

    @property
    def collected(self) -> csc_array[np.float64]:
        """The same contributions; columns of those not collected are empty."""
        return self.contribution

    @property
    def n_individuals(self) -> int:
        """Number of these individuals."""
        return int(self.rank.size)


@singledispatch
def taken(coupling: Any, members: Index) -> Any:
    """Return the coupling of some individuals, whose positions become 0, 1, ...

    Their risks are, bit for bit, those among all. Register an implementation for a coupling of your
    own by ``@taken.register``.
    """
    raise InputTypeError(
        "executor= needs couplings of which a block of individuals can be taken, found "
        f"{type(coupling).__name__}; register how with "
        f"edp_bayes.coupling.views.some_individuals.taken"
    )


@taken.register
def _(coupling: ShiftCoupling, members: Index) -> Coupling:
    return ShiftCoupling(coupling.mixture, Contributions.of(coupling.responses, members))


@taken.register
def _of_regression(coupling: RegressionCoupling, members: Index) -> RegressionCoupling:
    presence = coupling.presence
    if presence is not None:
        presence = replace(presence, responses=Contributions.of(presence.responses, members))
    known = {i: k for k, i in enumerate(members.tolist()) if i in coupling.without}
    return replace(
        coupling,
        posterior=coupling.posterior.taken(members),
        presence=presence,
        reduced=None if coupling.reduced is None else coupling.reduced[members],
        without={k: coupling.without[i] for i, k in known.items()},
    )


@taken.register
def _(coupling: SomeDraws, members: Index) -> Coupling:
    some, whole = (_of_regression(part, members) for part in (coupling, coupling.whole))
    return replace(
        coupling,
        whole=whole,
        posterior=some.posterior,
        presence=None,
        without=some.without,
        reduced=some.reduced,
    )


@taken.register
def _(coupling: StackedCoupling, members: Index) -> Coupling:
    blocks = tuple((rows, taken(inner, members)) for rows, inner in coupling.blocks)
    return StackedCoupling(coupling.mixture, blocks)


@taken.register
def _of_joint(coupling: JointCoupling, members: Index) -> JointCoupling:
    place = {i: k for k, i in enumerate(members.tolist())}
    return replace(
        coupling,
        responses=SomeJointResponses.of(coupling.responses, members),
        posterior=None if coupling.posterior is None else coupling.posterior.taken(members),
        without={place[i]: part for i, part in coupling.without.items() if i in place},
        revealed={place[i]: found for i, found in coupling.revealed.items() if i in place},
    )


class Packed:
    """A coupling as bytes: what all blocks share, and what each of them needs besides.

    Parameters
    ----------
    coupling : Coupling
        The fit.

    Attributes
    ----------
    shared : bytes
        The draws, and arrays such as the floor of bounds, the responses and what is known of them.
    """

    def __init__(self, coupling: Coupling) -> None:
        self._coupling = coupling
        self._common: list[Common] = []
        # What is there without anybody is there for everybody.
        nobody = taken(coupling, np.zeros(0, dtype=np.int64))
        _Packer(io.BytesIO(), self._common, grow=True).dump(nobody)
        self.shared = pickle.dumps(self._common)

    def part(self, members: Index) -> bytes:
        """Return what else a block of individuals needs."""
        file = io.BytesIO()
        _Packer(file, self._common).dump(taken(self._coupling, members))
        return file.getvalue()


def unpack(common: list[Common], part: bytes) -> Coupling:
    """Return the coupling of a block of individuals from what all share and what else it needs."""
    found: Coupling = _Unpacker(io.BytesIO(part), common).load()
    return found


class _Packer(pickle.Pickler):
    """Puts a number in the place of what is shared."""

    def __init__(self, file: io.BytesIO, common: list[Common], *, grow: bool = False) -> None:
        super().__init__(file)
        self._common, self._grow = common, grow

    def persistent_id(self, obj: Any) -> int | None:
        array = isinstance(obj, np.ndarray) and obj.nbytes >= SHARED_BYTES
        if not (array or isinstance(obj, Mixture | NormalMixture)):
            return None
        for k, known in enumerate(self._common):
            if obj is known:
                return k
        if not self._grow:
            return None
        self._common.append(obj)
        return len(self._common) - 1  # What it holds goes with it.


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, common: list[Common]) -> None:
        super().__init__(file)
        self._common = common

    def persistent_load(self, pid: int) -> Common:
        return self._common[pid]
