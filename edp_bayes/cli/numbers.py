"""Numbers, counts and mechanisms as text, and what they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from edp_bayes.exceptions import InvalidInputError

if TYPE_CHECKING:
    from edp_bayes.statistical_privacy.mechanisms import GaussianNoise, LaplaceNoise, Subsampling

__all__ = ["parse_counts", "parse_integers", "parse_mechanism", "parse_noise", "parse_numbers"]


def parse_numbers(text: str, option: str) -> list[float]:
    """Return the numbers that stand in a list with commas.

    Examples
    --------
    >>> parse_numbers("0.1, 0.2", "--width")
    [0.1, 0.2]
    """
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInputError(
            f"{option} must be a number or a list such as 0.1,0.2, found {text!r}"
        ) from None


def parse_integers(text: str, option: str) -> list[int]:
    """Return the whole numbers that stand in a list with commas.

    Examples
    --------
    >>> parse_integers("103, 98", "--count")
    [103, 98]
    """
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInputError(
            f"{option} must be a whole number or a list such as 103,98, found {text!r}"
        ) from None


def parse_counts(texts: Sequence[str]) -> list[int] | dict[str, list[int]]:
    """Return counts of one property in several databases, or those of several named properties.

    Examples
    --------
    >>> parse_counts(["103", "98,95"])
    [103, 98, 95]
    >>> parse_counts(["older=103,98", "veteran=3,5"])
    {'older': [103, 98], 'veteran': [3, 5]}
    """
    parts = [text.rpartition("=") for text in texts]
    named = [name.strip() for name, equals, _ in parts if equals]
    if not named:
        return [k for text in texts for k in parse_integers(text, "--count")]
    if len(named) < len(parts) or not all(named) or len(set(named)) < len(named):
        raise InvalidInputError(
            "--count must name every property, each once, or none of them, found "
            + ", ".join(map(repr, texts))
        )
    return {name.strip(): parse_integers(values, "--count") for name, _, values in parts}


def parse_noise(text: str, option: str) -> LaplaceNoise | GaussianNoise:
    """Return the noise that laplace:SCALE or gaussian:SCALE stands for.

    Examples
    --------
    >>> parse_noise("laplace:2", "--noise")
    LaplaceNoise(scale=2.0)
    """
    from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise

    name, _, scale = text.partition(":")
    distributions: dict[str, type[LaplaceNoise | GaussianNoise]]
    distributions = {"laplace": LaplaceNoise, "gaussian": GaussianNoise}
    try:
        return distributions[name](float(scale))
    except (KeyError, ValueError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(
            f"{option} must be laplace:SCALE or gaussian:SCALE, found {text!r}"
        ) from None


def parse_mechanism(
    text: str | None, n: int
) -> tuple[Subsampling | LaplaceNoise | GaussianNoise, ...] | None:
    """Return what subsampling:SIZE, subsampling:RATE, gaussian:NU or laplace:NU stand for.

    Parameters
    ----------
    text : str, optional
        Parts are joined by +. Noise has the scale NU / n, which is NU on the count.
    n : int
        Entries of the database.

    Examples
    --------
    >>> parse_mechanism("subsampling:100+gaussian:1", 1000)
    (Subsampling(size=100, rate=None), GaussianNoise(scale=0.001))
    """
    if text is None:
        return None
    return tuple(_step(part.strip(), n) for part in text.split("+"))


def _step(text: str, n: int) -> Subsampling | LaplaceNoise | GaussianNoise:
    from edp_bayes.statistical_privacy.mechanisms import Subsampling

    name, _, value = text.partition(":")
    if name in ("gaussian", "laplace"):
        noise = parse_noise(text, "--mechanism")
        return type(noise)(noise.scale / n)
    try:
        if name == "subsampling":
            return (
                Subsampling(size=int(value))
                if value.isdecimal()
                else Subsampling(rate=float(value))
            )
    except InvalidInputError:
        raise
    except ValueError:
        pass
    raise InvalidInputError(
        "--mechanism must be gaussian:NU, laplace:NU, subsampling:SIZE or subsampling:RATE, or "
        f"two of them as subsampling:SIZE+gaussian:NU, found {text!r}"
    )
