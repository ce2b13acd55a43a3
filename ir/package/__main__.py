"""``python -m vinoir``: the command line."""

from .ir.cli import main

main()
