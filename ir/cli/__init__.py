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

from ...schemas.version import VERSION
from .options import begin, color_option, debug_option
from .refused import CRASH, Refusal, asks_for_json, hush, report

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
    refused: BaseException | None = None
    try:
        code = cli.main(words, prog_name="vinoir", standalone_mode=False)
    except SystemExit as left:
        code = left.code
    except (Exception, KeyboardInterrupt) as error:
        if "--debug" in words:
            import traceback

            traceback.print_exception(error)
        code, refused = report(error), error
    try:
        if code and refused is not None and asks_for_json(words):
            verb = next((word for word in words if word in VERBS), "")
            Refusal.of(refused).say_json(verb)
        sys.stdout.flush()
    except OSError as error:
        # What is found of the model counts, though nobody reads of it.
        code = report(error) or code
        hush()
    sys.exit(code if isinstance(code, int) else 0)


__all__: list[Any] = ["CRASH", "cli", "main", "report"]
