"""All the work of `edp-bayes noise` and `edp-bayes release`: no printing, no parsing here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edp_bayes import validate
from edp_bayes.noise.calibration import calibrate
from edp_bayes.noise.distribution import NoiseDistribution
from edp_bayes.noise.posterior import posterior_of
from edp_bayes.noise.releasing import release
from edp_bayes.noise.verification import Verification, verify

if TYPE_CHECKING:
    from edp_bayes.responses import Responses

__all__ = ["NoiseRun", "noise_for_audit", "release_from_file"]


@dataclass(frozen=True, eq=False)
class NoiseRun:
    """What `edp-bayes noise` reports and writes.

    Attributes
    ----------
    noise : NoiseDistribution
        What was found; its record holds a message in words.
    verification : Verification
        Privacy of the noisy query at the target and at twice it.
    file : Path or None
        Where the noise was saved, for `release_from_file`.
    """

    noise: NoiseDistribution
    verification: Verification
    file: Path | None


def noise_for_audit(
    audit_file: str | Path,
    epsilon: float,
    delta: float = 0.0,
    *,
    responses: Responses | None = None,
    output: str | Path | None = None,
    progressbar: bool = True,
    **options: Any,
) -> NoiseRun:
    """Calibrate noise for a saved audit, verify it and save it.

    Parameters
    ----------
    audit_file : str or Path
        A file that `Audit.save` wrote.
    epsilon, delta : float
        Target.
    responses : Responses, optional
        The data of the audit, made from the same table and query.
    output : str or Path, optional
        Where to write the noise, as JSON.
    progressbar : bool
        Show progress.
    **options
        method, assurance, objective, symmetric, spacing of `calibrate`.

    Raises
    ------
    InvalidInputError
        As `load_audit`, `calibrate` and `verify`.
    """
    from edp_bayes.result import load_audit

    target = validate.positive_number(epsilon, "epsilon")
    posterior = posterior_of(load_audit(audit_file), responses=responses)
    noise = calibrate(posterior, target, delta, **options)
    verification = verify(posterior, noise, [target, 2.0 * target], progressbar=progressbar)
    return NoiseRun(noise, verification, None if output is None else noise.save(output))


def release_from_file(noise_file: str | Path, value: float, **options: Any) -> float:
    """Return one noisy answer, with noise that `noise_for_audit` saved.

    Parameters
    ----------
    noise_file : str or Path
        A file that `NoiseDistribution.save` wrote.
    value : float
        The true answer.
    **options
        grid and sampler of `release`.
    """
    return release(value, NoiseDistribution.load(noise_file), **options)
