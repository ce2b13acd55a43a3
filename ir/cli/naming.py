"""Names that a shell completes: found in the text of the model, of which no model is made."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

#: Bytes of an .xml in which names are looked for while somebody types.
_SEARCHED = 1 << 25
_LAYER = re.compile(r'<layer\s((?:[^">]|"[^"]*")*)>')
_DATA = re.compile(r'<data\s((?:[^">]|"[^"]*")*)>')
_WORD = re.compile(r'([\w.:-]+)\s*=\s*"([^"]*)"')
_TENSORS = re.compile(r'<port\s[^>]*?\bnames="([^"]*)"')
_COMMA = re.compile(r"(?<!\\),")

#: What click asks for the words that an option may go on with.
Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], "list[str]"]
CompleteItems: TypeAlias = "Callable[[click.Context, click.Parameter, str], list[CompletionItem]]"


class _Named(NamedTuple):
    """A layer of the text: its name and type, those of its tensors, and its attributes."""

    name: str
    type: str
    tensors: list[str]
    attributes: list[str]


def _layers(ctx: click.Context) -> Iterator[_Named]:
    """The layers of the model that the command line names, those in bodies too."""
    from click.shell_completion import split_arg_string

    # The option that still has no value keeps click from seeing the model behind it.
    words = split_arg_string(os.environ.get("COMP_WORDS", ""))
    given = ctx.params.get("model") or ctx.params.get("models") or ()
    paths = [*((given,) if isinstance(given, str) else given), *words]
    path = next((path for path in paths if path.endswith(".xml") and os.path.isfile(path)), None)
    if path is None:
        return
    try:
        with open(path, "rb") as file:
            text = file.read(_SEARCHED).decode("utf-8", "replace")
    except OSError:
        return
    rows = [*_LAYER.finditer(text)]
    for row, end in zip(rows, [*(x.start() for x in rows[1:]), len(text)], strict=True):
        said = dict(_WORD.findall(row[1]))
        rest = text[row.end() : end]
        data = _DATA.search(rest)
        tensors = [
            name.replace("\\,", ",")
            for names in _TENSORS.findall(rest)
            for name in _COMMA.split(_plain(names))
        ]
        attributes = [] if data is None else [name for name, _ in _WORD.findall(data[1])]
        yield _Named(_plain(said.get("name", "")), said.get("type", ""), tensors, attributes)


def _plain(text: str) -> str:
    from xml.sax.saxutils import unescape

    return unescape(text, {"&quot;": '"', "&apos;": "'"})


def layer_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of layers that begin so."""
    return _fitting((row.name for row in _layers(ctx)), incomplete)


def tensor_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of layers, and of tensors that are called otherwise, that begin so."""
    rows = [*_layers(ctx)]
    return _fitting((name for row in rows for name in (row.name, *row.tensors)), incomplete)


def input_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of inputs that begin so; old files call them Input."""
    rows = [row for row in _layers(ctx) if row.type in ("Parameter", "Input")]
    return _fitting((name for row in rows for name in (row.name, *row.tensors)), incomplete)


def constant_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of constants that begin so."""
    return _fitting((row.name for row in _layers(ctx) if row.type == "Const"), incomplete)


def output_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of outputs that begin so."""
    rows = [row for row in _layers(ctx) if row.type == "Result"]
    return _fitting((row.name for row in rows), incomplete)


def attribute_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Layers with a dot behind them; of one that is written out its attributes, as ``l.name=``."""
    rows = [*_layers(ctx)]
    found = [
        f"{row.name}.{name}="
        for row in rows
        if incomplete.startswith(f"{row.name}.")
        for name in row.attributes
    ]
    return _fitting((*found, *(f"{row.name}." for row in rows if row.attributes)), incomplete)


def before_value(names: Complete, *, is_file: bool = False) -> CompleteItems:
    """Of ``NAME=VALUE`` the name with its sign; then the value, where that is a file."""

    def complete(
        ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        found = [f"{name}=" for name in names(ctx, param, incomplete)]
        if not found and is_file and "=" in incomplete:
            return [CompletionItem(incomplete.rpartition("=")[2], type="file")]
        return [CompletionItem(name) for name in found]

    return complete


def _fitting(names: Iterable[str], incomplete: str) -> list[str]:
    """Names that begin so, each once, and that a terminal shows as they are."""
    found = dict.fromkeys(name for name in names if name.startswith(incomplete))
    return [name for name in found if name and name.isprintable()]
