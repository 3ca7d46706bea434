"""``python -m kernull.cli``."""

from kernull.cli import main

if __name__ == "__main__":
    main()
