"""`python -m edp_bayes.cli` is `edp-bayes`."""

import sys

from edp_bayes.cli import main

if __name__ == "__main__":
    sys.exit(main())
