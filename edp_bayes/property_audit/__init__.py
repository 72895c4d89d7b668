"""Property queries audited from counts: a posterior of pi, and of the privacy curve it implies.

`audit_property` takes counts of positives and returns a `PropertyAudit`. The models are PyMC
models that can be opened, changed and replaced. Names are imported when they are first used.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
