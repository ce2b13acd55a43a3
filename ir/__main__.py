"""``python -m vinoir.ir``: the command line."""

from .cli import main

main()
