"""Audits of every cell of a table that is published every period."""

from edp_bayes.auditing.cells.audit import audit_cells
from edp_bayes.auditing.cells.result import Cells

__all__ = ["Cells", "audit_cells"]
