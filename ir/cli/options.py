"""What verbs share of the command line: their class, and each option that several of them have."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ...schemas import UsageError
from .naming import before_value, input_names
from .output import note, note_json_said, ready_streams, set_colour

if TYPE_CHECKING:
    from pathlib import Path

    from ..document import Model

F = TypeVar("F", bound=Callable[..., Any])

#: What stands for standard input in the place of a file.
STDIN = "-"
#: Repairs that are named one by one.
_NAMED = 20


# Verbs.


class _Exemplified(click.Command):
    """What ends its help with examples, and knows the options that may also stand before it."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **words: Any) -> None:
        super().__init__(*args, **words)
        self.examples = tuple(examples)
        self.params += [color_option(), debug_option()]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, each a line that can be copied."""
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}vinoir {example}\n")


class Verb(_Exemplified):
    """A verb."""


class Verbs(_Exemplified, click.Group):
    """A verb that has verbs of its own."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; where a file stands in its place, say what it may be."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            *others, last = (f"'{ctx.command_path} {name}'" for name in self.commands)
            raise click.UsageError(
                f"No such verb '{args[0]}'. There are {', '.join(others)} and {last}.", ctx
            )
        return super().resolve_command(ctx, args)


def verb(name: str, *examples: str) -> Callable[[Callable[..., Any]], Verb]:
    """A verb with the examples that end its help, each without the program's name."""
    return click.command(name, cls=Verb, examples=examples)


def color_option() -> click.Option:
    """``--color``, before a verb and after it."""

    def settle(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
        if value is not None:
            set_colour(value)  # type: ignore[arg-type]  # a Choice of the three

    return click.Option(
        ["--color"],
        type=click.Choice(["auto", "always", "never"]),
        expose_value=False,
        is_eager=True,
        callback=settle,
        help="Colour in the output; not given: on a terminal, unless NO_COLOR is set.",
    )


def debug_option() -> click.Option:
    """``--debug``, before a verb and after it; :func:`main` looks for it among all words."""
    return click.Option(
        ["--debug"],
        is_flag=True,
        expose_value=False,
        help="Show the Python traceback of an error.",
    )


def lacks_weights(source: Source, model: Model) -> bool:
    """Whether constants have no bytes, which is then noted."""
    lacks = any(layer.is_constant and not layer.has_value for layer in model.everywhere())
    if lacks:
        note(f"{source.path}: there is no .bin: what depends on constants is not known")
    return lacks


class FileName(click.Path):
    """The name of a file; that it cannot be opened is told by whoever opens it, of it alone."""

    def __init__(self, *, allow_dash: bool = False) -> None:
        super().__init__(readable=False, allow_dash=allow_dash)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The name; an empty one would mean the folder where one is."""
        if not os.fspath(value):
            self.fail("the name of a file is empty", param, ctx)
        return super().convert(value, param, ctx)


def layered(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator; the help lists them in this order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


# What is read.


@dataclass(frozen=True)
class Source:
    """The model that the command line names, and how it is to be read."""

    path: str
    weights: str | None = None
    lenient: bool = False

    def read(self, **words: Any) -> Model:
        """Read it; ``-`` is standard input. What a lenient reading repaired is told."""
        from ..files import read

        path = named_stdin("the model") if self.path == STDIN else self.path
        model = read(path, self.weights, lenient=self.lenient, **words)
        for repair in model.repairs[:_NAMED]:
            note(f"{self.path}:{repair.line}:{repair.column}: repaired: {repair.message}")
        if len(model.repairs) > _NAMED:
            note(f"repaired: {len(model.repairs) - _NAMED} more")
        return model


_taken: list[str] = []


def stdin_bytes(what: str) -> bytes:
    """All of standard input, which can be read but once."""
    if _taken:
        raise UsageError(f"standard input was read as {_taken[0]}, it cannot be {what} too")
    _taken.append(what)
    return sys.stdin.buffer.read()


def named_stdin(what: str) -> io.BytesIO:
    """The same as a file, whose name places in it begin with."""
    found: Any = io.BytesIO(stdin_bytes(what))
    found.name = "<stdin>"
    made: io.BytesIO = found
    return made


def begin() -> None:
    """Forget what an earlier command line of this process settled; make streams usable."""
    _taken.clear()
    note_json_said(has=False)
    set_colour("auto")
    ready_streams()


weights_option = click.option(
    "--weights", type=FileName(), help="The .bin, where it is not beside the .xml."
)
lenient_option = click.option(
    "--lenient", is_flag=True, help="Repair what OpenVINO reads and XML forbids, and tell it."
)


def model_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """``MODEL``, ``--weights`` and ``--lenient``: the verb gets them as its ``source``."""
    return _sourced(function, required=True)


def model_options_or_none(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same where MODEL may be left out."""
    return _sourced(function, required=False)


def _sourced(function: Callable[..., Any], *, required: bool) -> Callable[..., Any]:
    @wraps(function)
    def sourced(
        model: str | None, weights: str | None, lenient: bool, *args: Any, **words: Any
    ) -> Any:
        source = None if model is None else Source(model, weights, lenient)
        return function(*args, source=source, **words)

    argument = click.argument(
        "model", metavar="MODEL", type=FileName(allow_dash=True), required=required
    )
    return argument(weights_option(lenient_option(sourced)))


#: How a new shape is given for an input.
SHAPED = "NAME=SHAPE"
shapes_option = click.option(
    "--input",
    "-i",
    "inputs",
    multiple=True,
    metavar=SHAPED,
    shell_complete=before_value(input_names),
    help="A new shape for an input: 1,3,H,W or 1..8,?,... ; names stand for unknown sizes.",
)
values_option = click.option(
    "--input",
    "-i",
    "inputs",
    multiple=True,
    metavar="NAME=VALUE",
    shell_complete=before_value(input_names, is_file=True),
    help="An input: FILE.npy, FILE.npz (its array of that name), random, zeros or ones, with "
    "sizes random:1,3,64,64; inputs that are not named are random.",
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of random inputs.",
)
samples_option = click.option(
    "--samples",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many samples; what is random is drawn anew for each. A folder or a pattern of files "
    "as an --input is as many.",
)
onnx_option = click.option(
    "--onnx", type=FileName(), help="The model for onnxruntime; else MODEL's .onnx."
)


def split(text: str, form: str = "NAME=VALUE") -> tuple[str, str]:
    """A name and what is given for it."""
    name, sign, value = text.rpartition("=")
    if not sign or not name:
        raise UsageError(f'"{text}" is not {form}')
    return name, value


def pairs(texts: Sequence[str], form: str = "NAME=VALUE") -> dict[str, str]:
    """Names and what is given for them; a name that is given twice is refused."""
    found: dict[str, str] = {}
    for name, value in (split(text, form) for text in texts):
        if name in found:
            raise UsageError(f'"{name}" is given twice: {found[name]} and {value}')
        found[name] = value
    return found


# What is told.


def format_option(*more: str) -> Callable[[F], F]:
    """``--format`` and ``--json``, which every verb that tells something has."""
    return layered(
        click.option(
            "--format",
            "format_",
            type=click.Choice(["text", "json", *more]),
            default="text",
            help="What to print.",
        ),
        # Which of the two counts where neither is given, releases of click do not agree on.
        click.option(
            "--json",
            "format_",
            flag_value="json",
            callback=lambda _context, _option, value: value or "text",
            help="Short for --format json.",
        ),
    )


# How much it may take.

if TYPE_CHECKING:
    _Parameter = click.ParamType[int]
else:
    _Parameter = click.ParamType  # which older releases do not let be subscripted


class Bytes(_Parameter):
    """A number of bytes, such as 500M or 1.5G."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number that a text means."""
        if isinstance(value, int):
            return value
        found = re.fullmatch(
            r"(\d{1,15}(?:\.\d{1,6})?) ?([KMGT]?)(I?B?)", value.strip().upper(), re.A
        )
        if found is None:
            self.fail(f"{value!r} is no number of bytes, such as 500M or 1.5G", param, ctx)
        base = 1024 if found[3].startswith("I") else 1000
        return int(float(found[1]) * base ** " KMGT".index(found[2] or " "))


class AtLeastZero(click.FloatRange):
    """A number from 0 on, or above it; NaN, to which nothing compares, is none."""

    def __init__(self, *, above: bool = False) -> None:
        super().__init__(min=0, min_open=above)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number that a text means."""
        number = super().convert(value, param, ctx)
        if number != number:
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


seconds_option = click.option(
    "--max-seconds",
    type=AtLeastZero(above=True),
    metavar="SECONDS",
    help="Stop when it has taken so long.",
)


def limit_options(function: F) -> F:
    """``--max-memory`` and ``--max-seconds`` of verbs that compute."""
    memory = click.option(
        "--max-memory",
        type=Bytes(),
        metavar="BYTES",
        help="Refuse what would take more memory: 500M, 1G; not given: what the machine has.",
    )
    return layered(memory, seconds_option)(function)


# What is written.

force_option = click.option("--force", is_flag=True, help="Overwrite what is already there.")
in_place_option = click.option(
    "--in-place",
    is_flag=True,
    help="Write over the model that was read; a .bin of another name, which other models may use, "
    "only grows, unless --force is given.",
)
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Write nothing; tell everything that would be done."
)


def output_option(what: str = "The .xml to write", *, required: bool = False) -> Callable[[F], F]:
    """``-o``: where to."""
    return click.option("-o", "--output", type=FileName(), required=required, help=f"{what}.")


@dataclass(frozen=True)
class Target:
    """Where a model is to be written; ``path`` is None for a dry run."""

    path: str | None
    #: The .bin, where it does not stand beside the .xml: in place it stays where it is.
    weights: str | None = None
    #: Whether other models may use that .bin: it is not named after this one.
    shared: bool = False

    def write(self, model: Model, **words: Any) -> None:
        """Write a model there, if anywhere; what cannot be written is refused in any case."""
        from ..files import ensure_writable, write
        from .progress import waiting

        if self.path is None:
            ensure_writable(model)
        else:
            before = self._held()
            with waiting(f"writing {self.path}"):
                write(model, self.path, self.weights, shared=self.shared, **words)
            if self.shared and self._held() > before:
                note(f"{self.weights} may be other models' too: kept as it is, and lengthened")

    def _held(self) -> int:
        """Bytes of the .bin that is there."""
        if self.weights is None or not os.path.exists(self.weights):
            return 0
        return os.path.getsize(self.weights)


def target_of(
    source: Source, output: str | None, *, force: bool, in_place: bool, dry_run: bool = False
) -> Target:
    """Where to write, looked at before anything is done; nothing is overwritten unasked."""
    if in_place and output is not None:
        raise UsageError("--in-place and --output exclude each other")
    if dry_run:
        return Target(None)
    if in_place:
        if source.path == STDIN:
            raise UsageError("standard input cannot be written over", hint="give -o MODEL.xml")
        return _read_from(source, force=force)
    if output is None:
        raise UsageError("there is nothing to write to", hint=_places())
    from pathlib import Path

    if os.path.isdir(output) or output.endswith(("/", os.sep)):
        raise UsageError(f"{output} is a folder", hint="give the name of an .xml in it")
    if output not in ("", STDIN) and not output.lower().endswith(".xml"):
        raise UsageError(
            f"{output} does not end in .xml, by which a model is known",
            hint=f"give -o {Path(output).with_suffix('.xml')}",
        )
    refuse_present(force, output)
    refuse_present(force, Path(output).with_suffix(".bin"))
    return Target(output)


def _places() -> str:
    """Where the verb at hand can write to, of what it offers."""
    context = click.get_current_context(silent=True)
    offered = set() if context is None else {part.name for part in context.command.params}
    *rest, last = [
        "-o MODEL.xml",
        *(f"--{name.replace('_', '-')}" for name in ("in_place", "dry_run") if name in offered),
    ]
    return f"give {', '.join(rest)} or {last}" if rest else f"give {last}"


def _read_from(source: Source, *, force: bool) -> Target:
    """The files that a model is read from; a link is followed, as it was for reading."""
    place = _pair_of(source)
    if force or place.weights is None or place.path is None:
        return place
    own = os.path.splitext(os.path.realpath(place.path))[0] + ".bin"
    return replace(place, shared=os.path.realpath(place.weights) != own)


def _pair_of(source: Source) -> Target:
    """The same, whosever the .bin may be."""
    from pathlib import Path

    from ..files import find_pair

    xml, own = find_pair(source.path)
    if not isinstance(xml, Path) or not xml.is_symlink():
        return Target(str(xml), source.weights)
    real = xml.resolve()
    weights = source.weights
    if weights is None and os.path.exists(own):
        held = Path(own).resolve()
        weights = None if held == real.with_suffix(".bin") else str(held)
    return Target(str(real), weights)


def refuse_present(force: bool, *paths: str | Path) -> None:
    """Refuse to overwrite what is there, unless that is asked for; and what cannot be written."""
    from pathlib import Path

    from ..storage import refuse_special

    for path in paths:
        if not os.fspath(path):
            raise UsageError("the name of what is to be written is empty", hint="give its name")
        if path == STDIN:
            raise UsageError("what is written goes to a file, not to -", hint="give its name")
        if os.fspath(path).endswith(("/", os.sep)):
            raise UsageError(f"{path} is a folder", hint="give the name of a file in it")
        if os.path.lexists(path) and not force:
            raise UsageError(f"{path} is already there", hint="--force overwrites it")
        refuse_special(path)
        # Missing folders are made; the first that is there must take them.
        folder = next(one for one in Path(os.path.abspath(path)).parents if one.exists())
        if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
            what = "cannot be written into" if folder.is_dir() else "is a file, no folder"
            raise UsageError(f"{path} cannot be written: {folder} {what}")
