"""Priors that are given in the place of a model's own: distributions of PyMC or of PreliZ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    from pymc import Model

__all__ = ["NONNEGATIVE", "REAL", "SIMPLEX", "UNIT", "Priors", "Support"]

TRIES = 1000  # draws by which the support of a prior is looked at
SEED = 1
# Digits of the parameters of a distribution, by their precision.
DIGITS = {"float32": 7, "float64": 12}
# Random variables of PyTensor whose last parameter is the inverse of the one that PyMC takes.
BY_SCALE = ("gamma", "exponential")


class Support(NamedTuple):
    """What values a parameter may have.

    Attributes
    ----------
    words : str
        In a sentence, such as "positive".
    low, high : float
        Both ends.
    size : int
        How many numbers it has; 0 of a single number, whose prior each component may share.
    """

    words: str
    low: float
    high: float
    size: int = 0


REAL = Support("a number", -np.inf, np.inf)
NONNEGATIVE = Support("at least 0", 0.0, np.inf)
UNIT = Support("between 0 and 1", 0.0, 1.0)
SIMPLEX = Support("between 0 and 1 with sum 1", 0.0, 1.0, 1)


class Priors(Mapping[str, Any]):
    """Distributions by the names of the parameters whose priors they are.

    Parameters
    ----------
    given : mapping of str to distribution
        Distributions of PyMC, such as ``pm.Gamma.dist(2, 2)``, or of PreliZ.
    known : mapping of str to Support
        The parameters whose prior may be given, and what values they may have.
    check : bool
        Look at every distribution; False for those that were looked at before.

    Raises
    ------
    InputTypeError
        If a prior is no distribution, or a PreliZ distribution without parameters.
    InvalidInputError
        If there is no parameter of a name, or a distribution has other values or dimensions, no
        density, no draws, or parameters that are random.

    Examples
    --------
    >>> import pymc as pm
    >>> priors = Priors({"rate": pm.HalfNormal.dist(2.0)}, {"rate": NONNEGATIVE})
    >>> priors
    {rate ~ HalfNormal(0, 2)}
    >>> with pm.Model() as model:
    ...     rate = priors.add("rate", lambda name: pm.Exponential(name, 1.0))
    >>> model.basic_RVs
    [rate]
    """

    def __init__(
        self,
        given: Mapping[str, Any] | None = None,
        known: Mapping[str, Support] | None = None,
        *,
        check: bool = True,
    ) -> None:
        given, known = given or {}, known or {}
        if not isinstance(given, Mapping):
            raise InputTypeError(
                "priors must be distributions by name, such as {'rate': pm.Gamma.dist(2, 2)}, "
                f"found {given!r}"
            )
        for name in given:
            if name not in known:
                raise InvalidInputError(
                    f"there is no parameter {name!r}, whose prior could be given: there are "
                    f"{', '.join(known)}"
                )
        check = check and not isinstance(given, Priors)
        self._given = {
            name: _checked(name, prior, known[name]) if check else prior
            for name, prior in given.items()
        }

    def __getitem__(self, name: str) -> Any:
        return self._given[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)

    def __hash__(self) -> int:
        return hash(frozenset(self._given.items()))

    def __repr__(self) -> str:
        """Return every parameter with its distribution."""
        return f"{{{', '.join(self.described)}}}"

    @property
    def described(self) -> list[str]:
        """Every parameter with its distribution, as it stands in the record of a model."""
        return [f"{name} ~ {_described(prior)}" for name, prior in self._given.items()]

    def without(self, *names: str) -> Priors:
        """Return the priors of all other parameters."""
        found = Priors()
        found._given = {name: prior for name, prior in self._given.items() if name not in names}
        return found

    def parameters(self, name: str, family: str) -> tuple[Array, ...] | None:
        """Return the parameters of a prior of this family, as PyMC takes them.

        None where there is no prior of the name, or it is of another family.

        Examples
        --------
        >>> import pymc as pm
        >>> priors = Priors({"rate": pm.Gamma.dist(2.0, 4.0)}, {"rate": NONNEGATIVE})
        >>> [float(value) for value in priors.parameters("rate", "gamma")]
        [2.0, 4.0]
        """
        prior = self._given.get(name)
        return _parameters(prior) if prior is not None and _family(prior) == family else None

    def draws(self, name: str, count: int) -> Array:
        """Return draws of a prior, always the same ones."""
        return _draws(self._given[name], count)

    def add(
        self,
        name: str,
        default: Callable[..., Any] | None = None,
        dims: str | None = None,
        shape: int | None = None,
    ) -> Any:
        """Add a variable to the current PyMC model, with the prior given if there is one.

        Parameters
        ----------
        name : str
            Of the variable.
        default : callable
            Takes the name, and dims or shape where they are given, and makes the variable where
            there is no prior.
        dims : str, optional
            Every value along them has the prior, independently.
        shape : int, optional
            In the place of dims.
        """
        import pymc as pm

        if name not in self._given:
            assert default is not None
            along = {"dims": dims} if dims else {"shape": shape} if shape else {}
            return default(name, **along)
        model = pm.modelcontext(None)
        size = model.dim_lengths[dims].eval() if dims else shape
        return _placed(self._given[name], model, name, dims, size)


def _checked(name: str, prior: Any, support: Support) -> Any:
    """Return a prior as a PyMC distribution; refuse what cannot be one of this parameter."""
    from pymc.logprob.abstract import MeasurableOp
    from pytensor.graph.basic import Variable
    from pytensor.tensor.random.op import RandomVariable

    found = _from_preliz(name, prior)
    op = getattr(getattr(found, "owner", None), "op", None)
    if not (isinstance(found, Variable) and isinstance(op, RandomVariable | MeasurableOp)):
        raise InputTypeError(
            f"the prior of {name} must be a distribution such as pm.Normal.dist(0.0, 1.0), "
            f"found {prior!r}"
        )
    if found.type.ndim != (support.size > 0):
        numbers = f"{support.size} numbers" if support.size else "one number"
        raise InvalidInputError(
            f"the prior of {name} must be of {numbers}, found {found.type.ndim} dimensions"
        )
    if not found.dtype.startswith("float"):
        raise InvalidInputError(
            f"the prior of {name} must be a continuous distribution, which NUTS draws; found "
            f"{_described(found)}"
        )
    _refuse_no_density(name, found)
    try:
        values = _draws(found, TRIES)
    except NotImplementedError as error:
        raise InvalidInputError(
            f"the prior of {name} must be a proper distribution that can be drawn from; PyMC has "
            f"no draws of {_described(found)}: {str(error).partition('\n')[0]}"
        ) from error
    low, high = float(values.min()), float(values.max())
    if low < support.low or high > support.high:
        raise InvalidInputError(
            f"{name} is {support.words}, and its prior must be a distribution of such values; "
            f"found {_described(found)}, with {low if low < support.low else high:g} among "
            f"{TRIES} draws"
        )
    if support.size and values.shape[1:] != (support.size,):
        raise InvalidInputError(
            f"the prior of {name} must be of {support.size} numbers, found {values.shape[1]}"
        )
    return found


def _from_preliz(name: str, prior: Any) -> Any:
    """Return a distribution of PreliZ as one of PyMC, anything else as it is."""
    import pymc as pm

    convert = getattr(prior, "to_pymc", None)
    if not callable(convert) or isinstance(prior, type):
        return prior
    if getattr(prior, "is_frozen", True) is False:
        raise InputTypeError(
            f"the prior of {name} must be a distribution with its parameters, found {prior!r} of "
            "PreliZ without them"
        )
    with pm.Model(model=None):  # where it is converted, no model around may take it
        return convert(name)


def _refuse_no_density(name: str, prior: Any) -> None:
    """Refuse a distribution that has no log density, or whose own parameters are random."""
    import pymc as pm
    from pytensor.graph.traversal import ancestors
    from pytensor.tensor.random.op import RandomVariable

    try:
        density = pm.logp(prior, prior.type())
    except NotImplementedError as error:
        raise InvalidInputError(
            f"the prior of {name} must have a log density; PyMC has none of {_described(prior)}: "
            f"{str(error).partition('\n')[0]}"
        ) from error
    ops = (getattr(part.owner, "op", None) for part in ancestors([density]))
    if any(isinstance(op, RandomVariable) for op in ops):
        raise InvalidInputError(
            f"the parameters of the prior of {name} must be numbers, and some are random: give "
            "numbers, or build a pm.Model of your own, see PyMCMixture"
        )


def _draws(prior: Any, count: int) -> Array:
    import pymc as pm

    found = pm.draw(prior, count, random_seed=SEED, mode="FAST_COMPILE")
    return np.asarray(found, dtype=np.float64)


def _placed(prior: Any, model: Model, name: str, dims: str | None, size: Any) -> Any:
    """Add a copy of a distribution to a model: it may be given for several, and for another name.

    Every copy has a stream of random numbers of its own.
    """
    import pytensor
    from pymc.distributions.shape_utils import change_dist_size
    from pytensor.graph.replace import clone_replace
    from pytensor.graph.traversal import graph_inputs
    from pytensor.tensor.random.type import RandomType

    streams = {
        part: pytensor.shared(np.random.default_rng())
        for part in graph_inputs([prior])
        if isinstance(part.type, RandomType)
    }
    copied = clone_replace(prior, replace=streams)
    if size is not None and copied.type.ndim == 0:
        copied = change_dist_size(copied, (int(size),))
    return model.register_rv(copied, name, dims=None if dims is None else (dims,))


def _family(prior: Any) -> str:
    return str(getattr(prior.owner.op, "name", None))


def _parameters(prior: Any) -> tuple[Array, ...]:
    """Return the parameters of a random variable as PyMC takes them, without those of its size."""
    op = prior.owner.op
    found = [np.asarray(part.eval()) for part in op.dist_params(prior.owner)]
    if op.name in BY_SCALE:
        found[-1] = np.reciprocal(found[-1], dtype=found[-1].dtype)
    return tuple(_rounded(part) for part in found)


def _rounded(values: NDArray[Any]) -> Array:
    """Return numbers without the digits beyond their precision."""
    digits = DIGITS.get(str(values.dtype), DIGITS["float64"])
    plain = [float(f"{float(v):.{digits}g}") for v in values.ravel()]
    return np.reshape(np.array(plain), values.shape)


def _described(prior: Any) -> str:
    """Return a distribution in words, with all digits of its parameters."""
    from pymc.printing import str_for_dist
    from pytensor.graph.basic import Constant
    from pytensor.graph.traversal import graph_inputs
    from pytensor.tensor.random.op import RandomVariable

    if isinstance(prior.owner.op, RandomVariable):
        values = list(_parameters(prior))
    else:  # made of others: the numbers of which it is made
        parts = [part.data for part in graph_inputs([prior]) if isinstance(part, Constant)]
        values = [_rounded(np.asarray(part)) for part in parts if np.size(part)]
    family = str(str_for_dist(prior)).rpartition(" ~ ")[2].partition("(")[0]
    return f"{family}({', '.join(map(_number, values))})"


def _number(values: Array) -> str:
    texts = [f"{v:.{DIGITS['float64']}g}" for v in values.ravel()]
    return texts[0] if values.ndim == 0 else f"[{', '.join(texts)}]"
