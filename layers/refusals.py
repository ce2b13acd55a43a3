"""What the system refuses, told from what a signal's handler raises.

A handler may raise TimeoutError, which is an OSError as well: it means to end the call, and nobody
may take it for a file or memory that is not to be had. What the system says has a number.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


def from_system(error: OSError) -> OSError:
    """The error, if the system said it; else it goes on its way."""
    if error.errno is None:
        raise error
    return error


@contextmanager
def unless_refused() -> Iterator[None]:
    """Do this as far as the system does not refuse it."""
    try:
        yield
    except OSError as error:
        from_system(error)
