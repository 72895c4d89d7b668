"""Posterior distributions and credible bands for empirical differential privacy.

Every name of ``__init__.pyi`` is imported when it is first used, so that ``import edp_bayes`` is
quick.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
__version__ = "0.1.0"
__all__ += ["__version__"]
