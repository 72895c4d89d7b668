"""One HTML file about a result, to hand on: `write_report`.

`content` says what a report holds, `describing` computes it from a result by what that has, and
`html` renders it. Names are imported when they are first used.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
