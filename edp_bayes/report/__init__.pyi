from .cells import write_cells as write_cells
from .describing import describe as describe
from .html import write_report as write_report
from .pseudonyms import pseudonym_table as pseudonym_table
