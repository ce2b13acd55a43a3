"""Completion for Bash, of words that it takes for several."""

from __future__ import annotations

import os

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    split_arg_string,
)

#: Bash takes these for the ends of words, the shell and names of layers do not.
_BREAKS = ":=@"
#: What stands where the cursor is, so that a space before it is seen to begin a word.
_CURSOR = "\x01"
_SOURCE = r"""
%(complete_func)s() {
    local kind value word="${COMP_WORDS[COMP_CWORD]}"
    COMPREPLY=()
    while IFS=, read -r kind value; do
        case "$kind" in
            dir) COMPREPLY=(); compopt -o dirnames ;;
            file) COMPREPLY=(); compopt -o default ;;
            plain)
                [[ "$word" == [\'\"]* ]] || printf -v value %%q "$value"
                [[ "$value" != *[.=] ]] || compopt -o nospace  # more is to come
                COMPREPLY+=("$value") ;;
        esac
    done < <(env COMP_WORDS="$COMP_LINE" COMP_CWORD="$COMP_CWORD" COMP_WORD="$word" \
        COMP_LEFT="${COMP_LINE:0:COMP_POINT}" COMP_BREAKS="$COMP_WORDBREAKS" \
        %(complete_var)s=bash_complete "$1")
    return 0
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


@add_completion_class
class Bash(BashComplete):
    """Completion for Bash, of words that it takes for several: ``__module.conv1/aten::relu``."""

    source_template = _SOURCE

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one at the cursor, and that one."""
        if "COMP_LEFT" not in os.environ:  # a script of before
            return super().get_completion_args()
        *words, last = split_arg_string(os.environ["COMP_LEFT"] + _CURSOR)
        return words[1:], last.removesuffix(_CURSOR)

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """What may stand there, without what Bash will not write over."""
        found = super().get_completions(args, incomplete)
        if os.environ.get("COMP_WORD", "'")[:1] in ("'", '"'):
            return found
        head, is_set, value = incomplete.partition("=")
        if not (is_set and head.startswith("-")):
            head, value = "", incomplete
        breaks = [char for char in _BREAKS if char in os.environ["COMP_BREAKS"]]
        kept = len(value) - min(len(value.rpartition(char)[2]) for char in (*breaks, "\0"))
        lead = f"{head}=" if head and "=" not in breaks else ""
        for item in found:
            if item.type == "plain":
                item.value = lead + item.value[kept:]
        return found
