"""``python -m experiments E4 --quick``."""

import sys

from experiments import main

if __name__ == "__main__":
    sys.exit(main())
