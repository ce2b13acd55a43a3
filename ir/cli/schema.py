"""``vinoir schema``: the schemas that are made from the project's own records."""

from __future__ import annotations

from importlib.resources import files

import click

from ... import schemas


@click.command("schema", epilog="Example: vinoir schema xsd > ir.xsd")
@click.argument("kind", type=click.Choice(["xsd", "json"]))
def schema_command(kind: str) -> None:
    """Print the XML Schema of IR v10/v11, or the JSON Schema of the operations' attributes."""
    name = {"xsd": "ir.xsd", "json": "operations.json"}[kind]
    click.echo(files(schemas).joinpath(name).read_text("utf-8"), nl=False)
