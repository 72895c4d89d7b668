"""How what holds many numbers shows itself: by their shape."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

__all__ = ["by_shapes"]

SHOWN = 8  # numbers that are shown as they are


def by_shapes(self: Any) -> str:
    """Return a dataclass or named tuple as it is made, but long arrays by their shape.

    Written ``__repr__ = by_shapes`` in a class.

    Examples
    --------
    >>> import edp_bayes as edp
    >>> edp.Mixture([[0.5, 0.5]] * 100, [-1.0, 1.0], 1.0)
    Mixture(weights=<100 x 2>, locations=<100 x 2>, scales=<100 x 2>, kernel='gaussian', noise=None)
    """
    names = getattr(self, "_fields", None) or [part.name for part in fields(self) if part.repr]
    parts = (f"{name}={_shown(getattr(self, name))}" for name in names)
    return f"{type(self).__name__}({', '.join(parts)})"


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > SHOWN:
        return f"<{' x '.join(map(str, value.shape))}>"
    return repr(value)
