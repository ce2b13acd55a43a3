"""The command line: ``vinoir VERB MODEL``.

Data goes to standard output, messages to standard error. Exit codes: 0 well, 1 findings,
differences, or a model that is wrong in itself, 2 wrong usage, 3 what cannot be read or written,
4 unsupported, 5 numbers differ, 70 our own bug, 130 stopped by Ctrl-C.
A verb's module is imported when the verb is called.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from ...schemas import InternalError, IRError, LimitError, UsageError
from ...schemas.printing import printable
from ...schemas.version import REPORTS, VERSION
from .options import begin, color_option, debug_option
from .output import note

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

#: What a shell sets where it wants to know how a line may go on.
COMPLETE = "_VINOIR_COMPLETE"
#: Verb, the module that has it, and what it does; in the order of the help page.
VERBS: dict[str, tuple[str, str]] = {
    "show": ("show", "Tell what is in a model: inputs, outputs, layers, weights."),
    "draw": ("draw", "Draw a model: a page, SVG, dot, Mermaid."),
    "check": ("check", "Find what is wrong with models, all of it, and say what to do."),
    "explain": ("check", "Tell what a finding's code means."),
    "infer": ("infer", "Work out the types and shapes of every port."),
    "run": ("run", "Run a model in NumPy."),
    "bench": ("bench", "Measure how fast a model runs, also against other runtimes."),
    "simplify": ("simplify", "Leave fewer layers that give the same outputs."),
    "diff": ("diff", "Tell what changed from one model to another."),
    "compare": ("compare", "Find the layer where a run parts from another."),
    "reduce": ("reduce", "Make a failing model as small as it can be and still fail."),
    "copy": ("copy", "Read a model, write it, and verify that nothing was lost."),
    "edit": ("edit", "Change a model: names, attributes, layers, inputs, preprocessing."),
    "extract": ("extract", "Cut a part out of a model."),
    "merge": ("merge", "Join models: one after another, or side by side."),
    "compress": ("compress", "Store weights in half precision, or back."),
    "convert": (
        "convert",
        "Upgrade IR v2 to v7, or say newer operations by older ones.",
    ),
    "weights": ("weights", "List, export or draw the constants."),
    "import": ("onnx", "Turn an ONNX model into IR."),
    "ops": ("ops", "List the operations that are supported, and their attributes."),
    "schema": ("schema", "Print schemas: of IR, of the operations, of what verbs print as JSON."),
    "completion": ("completion", "Print what lets a shell complete verbs, files and layers."),
}

CRASH = 70
#: By Ctrl-C, as shells have it.
STOPPED = 130
#: What the linker says that finds no room for a library, and Python of an error that is none.
_UNMAPPED = ("failed to map segment", "annot allocate memory")
_UNTOLD = ("without exception set", "without setting an exception")


class Verbs(click.Group):
    """A group that imports a verb when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every verb, in the order of the table."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb of a name."""
        if cmd_name not in VERBS:
            return None
        module = import_module(f".{VERBS[cmd_name][0]}", __name__)
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete verbs without importing them."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        from click.shell_completion import CompletionItem

        return [
            CompletionItem(verb, help=text)
            for verb, (_, text) in VERBS.items()
            if verb.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of verbs without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, text) for verb, (_, text) in VERBS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; name the nearest where there is none."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], VERBS, 1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"No such verb '{args[0]}'.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Call the verb; where nobody reads on, click would make a failure of it."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise SystemExit(report(error)) from None


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 99},
    subcommand_metavar="VERB [ARGS]...",
    epilog="Try: vinoir show model.xml",
)
@click.version_option(VERSION, "--version", prog_name="vinoir")
def cli() -> None:
    """OpenVINO IR files in pure Python: read, check, infer, run and write them."""


cli.params += [color_option(), debug_option()]


def main(args: list[str] | None = None) -> None:
    """Run the command line, and leave the process with its exit code."""
    words = sys.argv[1:] if args is None else args
    begin()
    if COMPLETE in os.environ:
        from . import bash  # noqa: F401  # what it completes is asked for there
    code: Any = 0
    try:
        code = cli.main(words, prog_name="vinoir", standalone_mode=False)
    except SystemExit as left:
        code = left.code
    except (Exception, KeyboardInterrupt) as error:
        if "--debug" in words:
            import traceback

            traceback.print_exception(error)
        code = report(error)
    try:
        sys.stdout.flush()
    except OSError as error:
        # What is found of the model counts, though nobody reads of it.
        code = report(error) or code
        _hush()
    sys.exit(code if isinstance(code, int) else 0)


def _hush() -> None:
    """Let go what is still to be printed: it would fail once more when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_short_of_memory(error: BaseException) -> bool:
    """Whether a package could not be begun for want of memory: its error is of another type.

    C code that has no memory for an error answers that something went wrong, and not what.
    """
    if isinstance(error, SystemError):
        return str(error).endswith(_UNTOLD)
    return isinstance(error, ImportError) and any(words in str(error) for words in _UNMAPPED)


def report(error: BaseException) -> int:
    """Say on standard error what went wrong; the exit code for it."""
    if isinstance(error, click.ClickException):
        error.show()
        return error.exit_code
    if isinstance(error, (click.exceptions.Abort, KeyboardInterrupt)):
        note("stopped")
        return STOPPED
    if isinstance(error, BrokenPipeError):
        # Whoever read the output has seen enough.
        _hush()
        return 0
    if isinstance(error, IRError):
        place = f"{error.where}: " if error.where else ""
        note(f"{place}error: {printable(error.message)}")
        if error.hint:
            note(f"  hint: {printable(error.hint)}")
        return error.exit_code
    if isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename else ""
        note(f"{name}error: {error.strerror or error}")
        return 3
    if isinstance(error, MemoryError) or _is_short_of_memory(error):
        note("error: there is not enough memory")
        note("  hint: run it where there is more memory; ulimit -v may say how much there is")
        return LimitError.exit_code
    if isinstance(error, ImportError) and not (error.name or "").startswith("vinoir"):
        note(f"error: a package cannot be imported: {printable(error)}")
        note("  hint: it is missing or broken: install it anew")
        return UsageError.exit_code
    bug = error if isinstance(error, InternalError) else InternalError(error)
    note(str(bug))
    note(f"  hint: please report it, with what --debug prints, to {REPORTS}")
    return CRASH


__all__: list[Any] = ["cli", "main"]
