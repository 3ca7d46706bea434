"""``python -m kernull``: the command line."""

from kernull.cli import main

if __name__ == "__main__":
    main()
