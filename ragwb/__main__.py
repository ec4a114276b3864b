"""`python -m ragwb` is `ragwb`."""

from ragwb.cli import main

if __name__ == "__main__":
    main()
