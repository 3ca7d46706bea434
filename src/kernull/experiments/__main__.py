"""``python -m kernull.experiments E4 --quick``."""

import sys

from kernull.experiments import main

if __name__ == "__main__":
    sys.exit(main())
