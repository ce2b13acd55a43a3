"""``vinoir schema``: the schemas that are made from the project's own records."""

from __future__ import annotations

from importlib.resources import files

import click

from ... import schemas
from ...schemas import UsageError
from .options import verb
from .output import say_json


def _verbs(ctx: click.Context, param: click.Parameter, text: str) -> list[str]:
    """Verbs with documents that begin so, for the shell."""
    from .documents import DOCUMENTS

    return [name for name in DOCUMENTS if name.startswith(text)]


@verb(
    "schema",
    "schema xsd > ir.xsd",
    "schema json",
    "schema output",
    "schema output show",
)
@click.argument("kind", type=click.Choice(["xsd", "json", "output"]))
@click.argument("name", metavar="[VERB]", required=False, shell_complete=_verbs)
def schema_command(kind: str, name: str | None) -> None:
    """Print the XML Schema of IR v10/v11, or a JSON Schema.

    json: of the operations' attributes; output: of what VERB prints with --json, or all verbs:
    of one model a document, of many a line for each, whose "result" is that document.
    """
    if kind == "output":
        from .documents import output_schema

        say_json(output_schema(name))
        return
    if name is not None:
        raise UsageError(f"schema {kind} takes no verb, {name} is given", hint="schema output")
    file = {"xsd": "ir.xsd", "json": "operations.json"}[kind]
    click.echo(files(schemas).joinpath(file).read_text("utf-8"), nl=False)
