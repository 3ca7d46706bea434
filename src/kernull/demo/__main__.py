"""``python -m kernull.demo``."""

import sys

from kernull.demo import main

if __name__ == "__main__":
    sys.exit(main())
