"""What a calibration comes back as: a law of noise, and what it was found against."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.distributions.lattice import LatticeNoise
from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise, NoiseLaw, NoNoise
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.utils import validate

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

__all__ = ["NoiseDistribution", "as_distribution"]

Array = NDArray[np.float64]

FORMAT, VERSION = "edp_bayes_noise", 1  # of the file

SIMPLE: dict[str, type[GaussianNoise | LaplaceNoise]] = {
    "gaussian": GaussianNoise,
    "laplace": LaplaceNoise,
}
NAMES = {kind: name for name, kind in SIMPLE.items()}


@dataclass(frozen=True, eq=False)
class NoiseDistribution:
    """A mixture of laws of noise, with an atom at zero where one of them is no noise.

    Parameters
    ----------
    laws : tuple of NoNoise, LaplaceNoise, GaussianNoise or LatticeNoise
        Components.
    weights : array_like
        Their probabilities; by default a single law has all of it.
    record : mapping
        What the noise was found for: method, epsilon, delta, assurance, what was reached.

    Raises
    ------
    InvalidInputError, InputTypeError
        If there is no law, one is of an unknown kind, or the weights are not probabilities.

    Examples
    --------
    >>> noise = NoiseDistribution((NoNoise(), LaplaceNoise(2.0)), (0.25, 0.75))
    >>> noise.atom, noise.mean_absolute, noise.variance
    (0.25, 1.5, 6.0)
    """

    laws: tuple[NoiseLaw, ...]
    weights: Array
    record: Mapping[str, Any] = field(default_factory=dict)

    def __init__(
        self,
        laws: tuple[NoiseLaw, ...],
        weights: ArrayLike = (1.0,),
        record: Mapping[str, Any] | None = None,
    ) -> None:
        array = validate.finite_array(weights, "weights", ndim=1)
        for law in laws:
            if not isinstance(law, NoNoise | LaplaceNoise | GaussianNoise | LatticeNoise):
                raise InputTypeError(
                    "a noise distribution is made of NoNoise, LaplaceNoise, GaussianNoise and "
                    f"LatticeNoise, found {type(law).__name__}"
                )
        bad = not laws or array.size != len(laws) or (array < 0).any()
        if bad or abs(array.sum() - 1.0) > 1e-9:
            raise InvalidInputError(
                "weights must be one probability for each of at least one law, found "
                f"{array.tolist()} for {len(laws)}"
            )
        array.setflags(write=False)
        object.__setattr__(self, "laws", tuple(laws))
        object.__setattr__(self, "weights", array)
        object.__setattr__(self, "record", dict(record or {}))

    @property
    def atom(self) -> float:
        """Probability of exactly no noise."""
        return float(sum(w for w, law in self if isinstance(law, NoNoise)))

    @property
    def mean(self) -> float:
        """Mean of the noise, zero for symmetric noise."""
        return float(sum(w * law.mean for w, law in self))

    @property
    def mean_absolute(self) -> float:
        """Expected absolute noise, in the units of the response."""
        return float(sum(w * law.mean_absolute for w, law in self))

    @property
    def variance(self) -> float:
        """Variance of the noise."""
        square = sum(w * (law.variance + law.mean**2) for w, law in self)
        return float(square - self.mean**2)

    def pdf(self, x: ArrayLike) -> Array:
        """Return the density at x, any shape; the atom at zero is in `atom`, not here."""
        points = validate.finite_array(x, "x")
        return np.asarray(sum(w * law.pdf(points) for w, law in self))

    def cdf(self, x: ArrayLike) -> Array:
        """Return the probability of noise up to x, any shape."""
        points = validate.finite_array(x, "x")
        return np.asarray(sum(w * law.cdf(points) for w, law in self))

    def sample(self, size: int, rng: np.random.Generator | int | None = None) -> Array:
        """Return independent values for simulation; `edp_bayes.noise.release` draws the real one.

        Parameters
        ----------
        size : int
            Number of values.
        rng : numpy.random.Generator or int, optional
            Source of randomness or its seed.

        Returns
        -------
        ndarray
            Shape (size,).
        """
        count = validate.positive_integer(size, "size")
        source = validate.generator(rng, "rng")
        chosen = source.choice(len(self.laws), size=count, p=self.weights / self.weights.sum())
        values = np.empty(count)
        for k, law in enumerate(self.laws):
            members = np.flatnonzero(chosen == k)
            values[members] = law.sample(members.size, source)
        return values

    def plot(self, **options: Any) -> PlotCollection:
        """Plot the density; see `edp_bayes.plots.noise.plot_noise`."""
        from edp_bayes.plots.noise import plot_noise

        return plot_noise(self, **options)

    def to_json(self) -> str:
        """Return the laws and the record as JSON."""
        parts = [{"weight": float(w), **_law_record(law)} for w, law in self]
        return json.dumps({FORMAT: VERSION, "laws": parts, "record": dict(self.record)})

    @classmethod
    def from_json(cls, text: str) -> NoiseDistribution:
        """Return what `to_json` wrote.

        Raises
        ------
        InvalidInputError
            If the text is something else.
        """
        try:
            found = json.loads(text)
        except json.JSONDecodeError as error:
            raise InvalidInputError(f"this is no saved noise: no JSON, {error}") from None
        version = found.get(FORMAT) if isinstance(found, dict) else None
        if version != VERSION:
            raise InvalidInputError(
                f"this is no saved noise that can be read here: found {FORMAT} = {version!r}, "
                f"{VERSION} would be right"
            )
        try:
            laws = tuple(_law_of(dict(part)) for part in found["laws"])
            weights = [float(part["weight"]) for part in found["laws"]]
            return cls(laws, weights, found["record"])
        except KeyError as error:
            raise InvalidInputError(f"this is no saved noise: {error} is missing") from None
        except (TypeError, ValueError, AttributeError) as error:
            raise InvalidInputError(f"this is no saved noise: {error}") from None

    def save(self, path: str | Path) -> Path:
        """Write `to_json` to a file, complete or not at all.

        Raises
        ------
        InvalidInputError
            If the file cannot be written.
        """
        from edp_bayes.utils import files

        with files.replaced(Path(path)) as temporary:
            temporary.write_text(self.to_json(), encoding="utf-8")
        return Path(path)

    @classmethod
    def load(cls, path: str | Path) -> NoiseDistribution:
        """Read a file that `save` wrote.

        Raises
        ------
        InvalidInputError
            If the file cannot be read or is something else.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"{path} cannot be read: {error}") from None
        try:
            return cls.from_json(text)
        except (InvalidInputError, InputTypeError) as error:
            raise InvalidInputError(f"{path}: {error}") from None

    def __iter__(self) -> Any:
        """Yield (weight, law)."""
        return iter(zip(self.weights, self.laws, strict=True))

    def __repr__(self) -> str:
        """Return the laws in short."""
        parts = [f"{w:.3g} {_short(law)}" for w, law in self]
        return f"NoiseDistribution({' + '.join(parts)}, mean_absolute={self.mean_absolute:.6g})"


def as_distribution(noise: object) -> NoiseDistribution:
    """Return a law or a distribution of noise as a distribution; refuse anything else."""
    if isinstance(noise, NoiseDistribution):
        return noise
    if isinstance(noise, NoNoise | LaplaceNoise | GaussianNoise | LatticeNoise):
        return NoiseDistribution((noise,))
    raise InputTypeError(
        "noise must be a NoiseDistribution, LaplaceNoise, GaussianNoise or LatticeNoise, found "
        f"{type(noise).__name__}"
    )


def _short(law: NoiseLaw) -> str:
    if isinstance(law, LatticeNoise):
        return f"LatticeNoise({law.weights.size} weights, spacing={law.spacing:.4g})"
    return repr(law)


def _law_record(law: NoiseLaw) -> dict[str, Any]:
    if isinstance(law, LatticeNoise):
        tails = {"left": law.left, "right": law.right, "decay": law.decay}
        return {
            "law": "lattice",
            "spacing": law.spacing,
            "weights": law.weights.tolist(),
            **tails,
        }
    if isinstance(law, LaplaceNoise | GaussianNoise):
        return {"law": NAMES[type(law)], "scale": law.scale}
    return {"law": "none"}


def _law_of(record: dict[str, Any]) -> NoiseLaw:
    kind = record["law"]
    if kind == "lattice":
        names = ("left", "right", "decay")
        return LatticeNoise(
            record["spacing"], record["weights"], **{name: record[name] for name in names}
        )
    if kind == "none":
        return NoNoise()
    if kind not in SIMPLE:
        known = ", ".join(["none", *SIMPLE, "lattice"])
        raise InvalidInputError(f"law must be one of {known}, found {kind}")
    return SIMPLE[kind](record["scale"])
