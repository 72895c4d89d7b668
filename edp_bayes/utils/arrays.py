"""Names of the arrays that functions take and return."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Flags", "Index"]

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Index = NDArray[np.int64]
