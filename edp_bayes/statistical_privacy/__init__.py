"""Statistical privacy of property queries (Breutigam and Reischuk, "Statistical Privacy").

A property query answers with the share of the entries of one database that have a property. The
adversary knows the distribution of the entries but none of them, or only some of them. Every curve
here is exact; names are imported when they are first used.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
