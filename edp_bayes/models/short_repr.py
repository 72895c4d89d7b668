"""How a model is shown: by what was changed of it."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any


class ShortRepr:
    """Base of a dataclass that shows the fields which differ from their defaults.

    Examples
    --------
    >>> import edp_bayes as edp
    >>> edp.DirichletProcessMixture(), edp.FiniteMixture(components=2)
    (DirichletProcessMixture(), FiniteMixture(components=2))
    """

    def __repr__(self) -> str:
        """Return the class and what was changed."""
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)  # type: ignore[arg-type]
            if getattr(self, field.name) != _default(field)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


def _default(field: Any) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()
