"""The pictures of a result under one name: ``audit.plot.delta()`` is ``audit.plot_delta()``."""

from __future__ import annotations

from typing import Any

__all__ = ["Pictures"]

PREFIX = "plot_"


class Pictures:
    """What a result can draw, by name.

    Parameters
    ----------
    result : Audit, ComposedAudit, ...
        Whose methods named ``plot_...`` these are.

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> c = np.random.default_rng(1).gamma(2.0, 1.0, (20, 3))
    >>> responses = edp.Responses.from_arrays(c.sum(axis=1), contribution=c)
    >>> model = edp.SmoothedBootstrap()
    >>> audit = edp.audit(responses, epsilon=[0.1], model=model, draws=20, progressbar=False)
    >>> audit.plot
    pictures: delta, density, individuals, membership, past, power, total_risk
    """

    def __init__(self, result: object) -> None:
        self._result = result

    def __getattr__(self, name: str) -> Any:
        """Return the method that draws a picture."""
        if name.startswith("_") or not hasattr(self._result, PREFIX + name):
            raise AttributeError(
                f"there is no picture {name!r}; there are {', '.join(self.__dir__())}"
            )
        return getattr(self._result, PREFIX + name)

    def __dir__(self) -> list[str]:
        """Return the names of the pictures."""
        return [name[len(PREFIX) :] for name in dir(self._result) if name.startswith(PREFIX)]

    def __repr__(self) -> str:
        """Return the names of the pictures."""
        return f"pictures: {', '.join(self.__dir__())}"
