"""What came of one task: its answer, or why there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from ...schemas import InternalError, IRError, LimitError

#: ``done``: there is an answer; ``refused``: an error says why not; ``crashed``: the process
#: ended; ``overtime`` and ``memory``: more was wanted than is allowed.
State: TypeAlias = Literal["done", "refused", "crashed", "overtime", "memory"]
#: What is handed to a worker: a value that JSON has.
Task: TypeAlias = Any
#: What is done to a task; its answer is a value that JSON has, or offers ``to_json``.
Function: TypeAlias = Callable[[Any], Any]


@dataclass
class Outcome:
    """What came of one task, with the exit code that stands for it."""

    code: int = 0
    state: State = "done"
    result: Any = None
    error: str | None = None
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return asdict(self)


def outcome_of(function: Function, task: Task) -> Outcome:
    """Do something to a task; whatever it raises is an outcome."""
    try:
        return _answer(function(task))
    except LimitError as error:
        timed = "seconds" in error.message or "steps" in error.message
        return Outcome(error.exit_code, "overtime" if timed else "memory", error=words_of(error))
    except (IRError, InternalError) as error:
        return Outcome(error.exit_code, "refused", error=words_of(error))
    except OSError as error:
        return Outcome(3, "refused", error=words_of(error))
    except MemoryError:
        return Outcome(LimitError.exit_code, "memory", error="there is not enough memory")
    except BaseException as error:  # a result, not the end of the others: sys.exit() too
        return Outcome(70, "refused", error=words_of(error, named=True))


def _answer(value: Any) -> Outcome:
    """The outcome that a value is."""
    if isinstance(value, Outcome):
        return value
    if hasattr(value, "to_json"):
        code = getattr(value, "exit_code", None)
        return Outcome(code() if callable(code) else 0, result=value.to_json())
    return Outcome(result=value)


def words_of(error: BaseException, *, named: bool = False) -> str:
    """What an error says, its kind before it or alone where it cannot say anything."""
    kind = type(error).__name__
    try:
        text = str(error)
    except Exception:
        text = ""
    if not text:
        return kind
    return f"{kind}: {text}" if named else text
