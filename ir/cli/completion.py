"""``vinoir completion``: what lets a shell complete verbs, files and layers."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from . import bash  # noqa: F401  # its script is there then
from .options import verb


@verb(
    "completion",
    "completion bash",
    "completion zsh > _vinoir",
    "completion fish > vinoir.fish",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print what SHELL reads to complete verbs, options, files and names of layers.

    bash: eval "$(vinoir completion bash)" in ~/.bashrc; zsh: the same in ~/.zshrc, or a file
    _vinoir in a folder of fpath; fish: ~/.config/fish/completions/vinoir.fish.
    """
    from . import COMPLETE, cli

    kind = get_completion_class(shell)
    assert kind is not None
    # That of bash itself would ask which bash is there: one from 4.4 on.
    click.echo(ShellComplete.source(kind(cli, {}, "vinoir", COMPLETE)))
