"""``vinoir edit``: edits of a model, from a patch file or from the command line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import click
from pydantic import BaseModel

from ...schemas import UsageError
from ...schemas.printing import meant
from ..surgery import EDITS, Operated, Surgery, edit, edit_schema, edits_in, read_edits
from .naming import (
    attribute_names,
    before_value,
    constant_names,
    layer_names,
    output_names,
    tensor_names,
)
from .operate import Destination, deliver, operation_options
from .options import (
    STDIN,
    FileName,
    Source,
    format_option,
    model_options_or_none,
    split,
    stdin_bytes,
    verb,
)
from .output import print_json, print_table, say, say_json


@verb(
    "edit",
    "edit model.xml --patch edits.json -o new.xml",
    "edit model.xml --rename image=picture --bypass drop1 --in-place",
    "edit model.xml --set pool1.rounding_type=ceil --constant w1=w.npy -o new.xml",
    "edit model.xml --do op=preprocess --do input=image --do type=u8 --dry-run",
    "edit --list",
    "edit insert --list",
)
@model_options_or_none
@click.option(
    "--patch",
    multiple=True,
    type=FileName(),
    help="A JSON file with a list of edits; - reads standard input.",
)
@click.option("--rename", multiple=True, metavar="OLD=NEW",
              shell_complete=before_value(tensor_names), help="Rename an input, output, "
              "layer or tensor.")  # fmt: skip
@click.option(
    "--set",
    "attributes",
    multiple=True,
    metavar="LAYER.NAME=VALUE",
    shell_complete=attribute_names,
    help="Set an attribute.",
)
@click.option(
    "--constant",
    multiple=True,
    metavar="LAYER=FILE.npy",
    shell_complete=before_value(constant_names, is_file=True),
    help="Set a constant.",
)
@click.option(
    "--bypass",
    multiple=True,
    metavar="LAYER",
    shell_complete=layer_names,
    help="Take a layer out, and hand on what it was fed.",
)
@click.option(
    "--delete",
    multiple=True,
    metavar="LAYER",
    shell_complete=layer_names,
    help="Take a layer out.",
)
@click.option(
    "--add-output",
    multiple=True,
    metavar="TENSOR",
    shell_complete=tensor_names,
    help="Hand a tensor out.",
)
@click.option(
    "--remove-output",
    multiple=True,
    metavar="OUTPUT",
    shell_complete=output_names,
    help="Hand it out no more.",
)
@click.option(
    "--add-input",
    multiple=True,
    metavar="TENSOR",
    shell_complete=tensor_names,
    help="Feed a tensor from outside.",
)
@click.option("--do", "steps", multiple=True, metavar="KEY=VALUE", help="Any edit, field by "
              "field: each op=... begins one; values are JSON, or text.")  # fmt: skip
@click.option("--list", "listing", is_flag=True, help="List all edits; in the place of "
              "MODEL the name of one: tell all of it.")  # fmt: skip
@click.option("--schema", is_flag=True, help="Print the JSON Schema of a patch file.")
@operation_options
@format_option()
def edit_command(
    source: Source | None,
    patch: tuple[str, ...],
    rename: tuple[str, ...],
    attributes: tuple[str, ...],
    constant: tuple[str, ...],
    bypass: tuple[str, ...],
    delete: tuple[str, ...],
    add_output: tuple[str, ...],
    remove_output: tuple[str, ...],
    add_input: tuple[str, ...],
    steps: tuple[str, ...],
    listing: bool,
    schema: bool,
    destination: Destination,
    format_: str,
) -> None:
    """Change MODEL: first by patch files, then by the other options in the order of this page."""
    if schema:
        say_json(edit_schema())
        return
    if listing:
        one = None if source is None else source.path
        if one is not None and one not in EDITS and Path(one).exists():
            one = None  # the model that is to be edited
        rows = [edit_row(name) for name in (EDITS if one is None else [one])]
        if format_ == "json":
            print_json("edit", {"edits": rows})
        elif one is None:
            print_edits(rows)
        else:
            print_edit(rows[0])
        return
    if source is None:
        raise UsageError("no model is given", hint="vinoir edit MODEL --patch edits.json")
    target = destination.of(source)
    own: list[dict[str, Any]] = []
    found = source.read()
    for old, new in map(split, rename):
        own.append({"op": "rename", "any": old, "to": new})
    for place, value in map(split, attributes):
        layer, dot, name = place.rpartition(".")
        if not dot:
            raise UsageError(f'"{place}" is not LAYER.NAME')
        own.append({"op": "set-attribute", "layer": layer, "name": name, "value": value})
    for layer, file in map(split, constant):
        own.append({"op": "set-constant", "layer": layer, "file": file})
    own += [{"op": "bypass", "layer": layer} for layer in bypass]
    own += [{"op": "delete", "layer": layer} for layer in delete]
    own += [{"op": "add-output", "tensor": tensor} for tensor in add_output]
    own += [{"op": "remove-output", "output": name} for name in remove_output]
    own += [{"op": "add-input", "tensor": tensor} for tensor in add_input]
    own += gathered(steps)
    if not own and not patch:
        raise UsageError("no edit is given", hint="give --patch, or see vinoir edit --list")
    done = Operated(found, Surgery("edit"))
    changes = []
    before = None
    for file in patch:
        entries = (
            edits_in(stdin_bytes("the patch"), "<stdin>") if file == STDIN else read_edits(file)
        )
        done = edit(done.model, entries, folder=Path(file).parent)
        before = before or done.report.layers[0]
        changes += done.report.changes
    if own:
        done = edit(done.model, own)
        before = before or done.report.layers[0]
        changes += done.report.changes
    done.report.changes, done.report.layers = changes, (before or 0, done.report.layers[1])
    deliver(done, target, format_)


def gathered(steps: Sequence[str]) -> list[dict[str, Any]]:
    """Edits from fields: each that says ``op`` begins one."""
    found: list[dict[str, Any]] = []
    for key, _, text in (step.partition("=") for step in steps):
        if key == "op":
            found.append({"op": text})
        elif not found:
            raise UsageError(f'"{key}={text}" comes before any op', hint="begin with --do op=...")
        elif key in found[-1]:
            raise UsageError(f'"{key}" is given twice: {found[-1][key]!r} and {text!r}')
        else:
            found[-1][key] = _value(text, EDITS.get(found[-1]["op"]), key)
    return found


def _value(text: str, kind: type[BaseModel] | None, key: str) -> Any:
    """What a field is given: JSON, where the field may be anything but text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    fields = {} if kind is None else {x.alias or name: x for name, x in kind.model_fields.items()}
    words = get_args(fields[key].annotation) or (fields[key].annotation,) if key in fields else ()
    only_text = bool(words) and all(word in (str, type(None)) for word in words)
    return text if only_text and not isinstance(value, (str, type(None))) else value


def edit_row(name: str) -> dict[str, Any]:
    """What one edit does, and each of its fields."""
    kind = EDITS.get(name)
    if kind is None:
        hint = meant(name, EDITS) or "without a name it lists all"
        raise UsageError(f'no edit is named "{name}"', hint=hint)
    fields = [
        {"name": field.alias or key, "needed": field.is_required(), "what": field.description}
        for key, field in kind.model_fields.items()
        if key != "op"
    ]
    return {"op": name, "what": (kind.__doc__ or "").partition("\n")[0], "fields": fields}


def print_edits(rows: Iterable[Mapping[str, Any]]) -> None:
    """Every edit, what it does, and its fields."""
    cells = []
    for row in rows:
        fields = [
            f"{field['name']}{'' if field['needed'] else '?'}"
            for field in row["fields"]
            if field["name"] != "body"
        ]
        cells.append([row["op"], row["what"], ", ".join(fields)])
    print_table("", ["op", "what", "fields (?: may be left out)"], cells)


def print_edit(row: Mapping[str, Any]) -> None:
    """What one edit does, each of its fields, and how it is begun."""
    say(row["what"])
    fields = [[x["name"], "yes" if x["needed"] else "", x["what"] or ""] for x in row["fields"]]
    print_table("", ["field", "needed", "what"], fields)
    steps = [f"op={row['op']}", *(f"{key}={key.upper()}" for key, needed, _ in fields if needed)]
    say(f"vinoir edit MODEL {' '.join(f'--do {step}' for step in steps)} ... -o NEW.xml")
