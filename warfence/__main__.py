"""`python -m warfence`: the command line from a bare checkout, with nothing installed."""

from warfence.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
