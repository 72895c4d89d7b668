"""What a calibration comes back as: a distribution of noise, and what it was found against."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.distributions.lattice import LatticeNoise
from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise, Noise, NoNoise
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.checksums import ATTRIBUTE, checksum
from edp_bayes.utils.sentences import restored, stored

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

__all__ = ["NoiseDistribution", "as_distribution"]

# Of the file.
FORMAT, VERSION = "edp_bayes_noise", 1

SIMPLE: dict[str, type[GaussianNoise | LaplaceNoise]] = {
    "gaussian": GaussianNoise,
    "laplace": LaplaceNoise,
}
NAMES = {kind: name for name, kind in SIMPLE.items()}


@dataclass(frozen=True, eq=False)
class NoiseDistribution:
    """A mixture of noises, with an atom at zero where one of them is no noise.

    Parameters
    ----------
    components : tuple of NoNoise, LaplaceNoise, GaussianNoise or LatticeNoise
        What it is a mixture of.
    weights : array_like
        Their probabilities; by default a single distribution has all of it.
    record : mapping
        What the noise was found for: method, epsilon, delta, prob, what was reached.

    Raises
    ------
    InvalidInputError, InputTypeError
        If there is no component, one is of an unknown kind, or the weights are not probabilities.

    See Also
    --------
    calibrate : the least noise for a target
    release : one noisy answer
    LaplaceNoise : Laplace noise

    Examples
    --------
    >>> noise = NoiseDistribution((NoNoise(), LaplaceNoise(2.0)), (0.25, 0.75))
    >>> noise.atom, noise.mean_absolute, noise.variance
    (0.25, 1.5, 6.0)
    """

    components: tuple[Noise, ...]
    weights: Array
    record: Mapping[str, Any] = field(default_factory=dict)

    def __init__(
        self,
        components: tuple[Noise, ...],
        weights: ArrayLike = (1.0,),
        record: Mapping[str, Any] | None = None,
    ) -> None:
        array = validate.finite_array(weights, "weights", ndim=1)
        for component in components:
            if not isinstance(component, NoNoise | LaplaceNoise | GaussianNoise | LatticeNoise):
                raise InputTypeError(
                    "a noise distribution is made of NoNoise, LaplaceNoise, GaussianNoise and "
                    f"LatticeNoise, found {type(component).__name__}"
                )
        bad = not components or array.size != len(components) or (array < 0).any()
        if bad or abs(array.sum() - 1.0) > 1e-9:
            raise InvalidInputError(
                "weights must be one probability for each of at least one distribution, found "
                f"{array.tolist()} for {len(components)}"
            )
        array.setflags(write=False)
        object.__setattr__(self, "components", tuple(components))
        object.__setattr__(self, "weights", array)
        object.__setattr__(self, "record", dict(record or {}))

    @property
    def atom(self) -> float:
        """Probability of exactly no noise."""
        return float(sum(w for w, distribution in self if isinstance(distribution, NoNoise)))

    @property
    def mean(self) -> float:
        """Mean of the noise, zero for symmetric noise."""
        return float(sum(w * distribution.mean for w, distribution in self))

    @property
    def mean_absolute(self) -> float:
        """Expected absolute noise, in the units of the response."""
        return float(sum(w * distribution.mean_absolute for w, distribution in self))

    @property
    def variance(self) -> float:
        """Variance of the noise."""
        square = sum(w * (distribution.variance + distribution.mean**2) for w, distribution in self)
        return float(square - self.mean**2)

    def pdf(self, x: ArrayLike) -> Array:
        """Return the density at x, any shape; the atom at zero is in `atom`, not here."""
        points = validate.finite_array(x, "x")
        return np.asarray(sum(w * distribution.pdf(points) for w, distribution in self))

    def cdf(self, x: ArrayLike) -> Array:
        """Return the probability of noise up to x, any shape."""
        points = validate.finite_array(x, "x")
        return np.asarray(sum(w * distribution.cdf(points) for w, distribution in self))

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
        chosen = source.choice(
            len(self.components), size=count, p=self.weights / self.weights.sum()
        )
        values = np.empty(count)
        for k, distribution in enumerate(self.components):
            members = np.flatnonzero(chosen == k)
            values[members] = distribution.sample(members.size, source)
        return values

    def plot(self, **options: Any) -> PlotCollection:
        """Plot the density; see `edp_bayes.plots.noise.plot_noise`."""
        from edp_bayes.plots.noise import plot_noise

        return plot_noise(self, **options)

    def to_json(self) -> str:
        """Return the distributions and the record as JSON."""
        parts = [
            {"weight": float(w), **_distribution_record(distribution)} for w, distribution in self
        ]
        record = {name: stored(value) for name, value in self.record.items()}
        held = {"distributions": parts, "record": record}
        checked = {name: checksum(value) for name, value in held.items()}
        return json.dumps({FORMAT: VERSION, **held, ATTRIBUTE: checked})

    @classmethod
    def from_json(cls, text: str) -> NoiseDistribution:
        """Return what `to_json` wrote.

        Raises
        ------
        InvalidInputError
            If the text is something else, or not as it was written.
        """
        try:
            found = json.loads(text)
        except json.JSONDecodeError as error:
            raise InvalidInputError(f"this is no saved noise: no JSON, {error}") from None
        version = found.get(FORMAT) if isinstance(found, dict) else None
        if isinstance(version, bool) or version != VERSION:
            raise InvalidInputError(
                f"this is no saved noise that can be read here: found {FORMAT} = {version!r}, "
                f"{VERSION} would be right"
            )
        _verify(found)
        try:
            parts = [dict(part) for part in found["distributions"]]
            components = tuple(_distribution_of(part["distribution"], part) for part in parts)
            record = {**found["record"]}
            if "message" in record:
                record["message"] = restored(record["message"])
            return cls(components, [float(part["weight"]) for part in parts], record)
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
        """Yield (weight, distribution)."""
        return iter(zip(self.weights, self.components, strict=True))

    def __repr__(self) -> str:
        """Return the distributions in short."""
        parts = [f"{w:.3g} {_short(distribution)}" for w, distribution in self]
        return f"NoiseDistribution({' + '.join(parts)}, mean_absolute={self.mean_absolute:.6g})"


def as_distribution(noise: object) -> NoiseDistribution:
    """Return noise of any kind as a NoiseDistribution; refuse anything else."""
    if isinstance(noise, NoiseDistribution):
        return noise
    if isinstance(noise, NoNoise | LaplaceNoise | GaussianNoise | LatticeNoise):
        return NoiseDistribution((noise,))
    raise InputTypeError(
        "noise must be a NoiseDistribution, LaplaceNoise, GaussianNoise or LatticeNoise, found "
        f"{type(noise).__name__}"
    )


def _verify(found: Mapping[str, Any]) -> None:
    """Refuse what is not as it was written."""
    expected = found.get(ATTRIBUTE)
    for name in dict.fromkeys(["distributions", "record", *found]):
        if name in (FORMAT, ATTRIBUTE):
            continue
        known = expected.get(name) if isinstance(expected, dict) else None
        if name not in found or known != checksum(found[name]):
            raise InvalidInputError(f"this noise is damaged: {name} is not as it was saved")


def _short(distribution: Noise) -> str:
    if isinstance(distribution, LatticeNoise):
        return (
            f"LatticeNoise({distribution.weights.size} weights, spacing={distribution.spacing:.4g})"
        )
    return repr(distribution)


def _distribution_record(distribution: Noise) -> dict[str, Any]:
    if isinstance(distribution, LatticeNoise):
        tails = {
            "left": distribution.left,
            "right": distribution.right,
            "decay": distribution.decay,
        }
        return {
            "distribution": "lattice",
            "spacing": distribution.spacing,
            "weights": distribution.weights.tolist(),
            **tails,
        }
    if isinstance(distribution, LaplaceNoise | GaussianNoise):
        return {"distribution": NAMES[type(distribution)], "scale": distribution.scale}
    return {"distribution": "none"}


def _distribution_of(kind: str, record: Mapping[str, Any]) -> Noise:
    if kind == "lattice":
        names = ("left", "right", "decay")
        return LatticeNoise(
            record["spacing"], record["weights"], **{name: record[name] for name in names}
        )
    if kind == "none":
        return NoNoise()
    if kind not in SIMPLE:
        known = ", ".join(["none", *SIMPLE, "lattice"])
        raise InvalidInputError(f"distribution must be one of {known}, found {kind}")
    return SIMPLE[kind](record["scale"])
