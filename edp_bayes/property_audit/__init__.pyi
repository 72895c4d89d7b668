from .auditing import audit_property as audit_property
from .counts import PropertyCounts as PropertyCounts
from .models import BetaBinomialModel as BetaBinomialModel
from .models import BinomialModel as BinomialModel
from .models import PyMCProbabilities as PyMCProbabilities
