"""`edp-bayes noise` and `edp-bayes release`: the noise an audit asks for, and one noisy answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["noise", "release"]


def noise(
    audit: Annotated[Path, typer.Argument(help="A saved audit, such as audit.nc.")],
    epsilon: Annotated[float, typer.Option("--epsilon", help="Target.")],
    delta: Annotated[float, typer.Option("--delta", help="Target.")] = 0.0,
    method: Annotated[
        str,
        typer.Option(
            "--method", help="optimal, bottleneck, partial, laplace, gaussian, hausdorff."
        ),
    ] = "optimal",
    assurance: Annotated[
        float, typer.Option("--assurance", help="Posterior probability that the target holds.")
    ] = 0.95,
    out: Annotated[
        Path, typer.Option("--out", help="JSON file for the noise, for edp-bayes release.")
    ] = Path("noise.json"),
) -> None:
    """Print the noise that brings an audited query to a target, and write it to a file."""
    from rich.console import Console

    from edp_bayes.noise.command import noise_for_audit

    console = Console(highlight=False)
    run = noise_for_audit(
        audit,
        epsilon,
        delta,
        method=method,
        assurance=assurance,
        output=out,
        progressbar=console.is_terminal,
    )
    found = run.noise
    console.print(f"{found!r}")
    console.print(
        f"Mean absolute noise {found.mean_absolute:.4g}, variance {found.variance:.4g}, "
        f"probability of none {found.atom:.3g}."
    )
    held = run.verification.probability(epsilon, max(delta, ROUNDING))
    console.print(
        f"P((epsilon, delta) = ({epsilon:g}, {delta:g}) holds | data) = {held:.3g} "
        f"with this noise.\nWritten to {out}."
    )


# A delta of exactly zero is verified up to the rounding of the integrals.
ROUNDING = 1e-9


def release(
    noise: Annotated[Path, typer.Argument(help="A file that edp-bayes noise wrote.")],
    value: Annotated[float, typer.Option("--value", help="The true answer.")],
) -> None:
    """Print one noisy answer, with randomness from the operating system."""
    from edp_bayes.noise.command import release_from_file

    typer.echo(repr(release_from_file(noise, value)))
