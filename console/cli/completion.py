"""Completion for bash, zsh and fish: a script that defines the command `mq` of this installation and says what may follow."""

import shlex
import sys
from pathlib import Path

from . import options
from .commands import COMMANDS, Command
from .described import describe
from .exits import USAGE, Ended

SHELLS = ("bash", "zsh", "fish")
MANAGE = Path(__file__).resolve().parents[2] / "manage.py"


def script(shell: str) -> str:
    """Raises Ended."""
    if shell not in SHELLS:
        raise Ended(USAGE, f"Completion is for {', '.join(SHELLS)}: give one of them.")
    objects: dict[str, list[str]] = {"completion": list(SHELLS)}
    for command in COMMANDS:
        objects.setdefault(command.verb, []).append(command.object)
    taken = {command.name: _options(command) for command in COMMANDS}
    run = f"{shlex.quote(sys.executable)} {shlex.quote(str(MANAGE))} mq"
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](run, objects, taken)


def _options(command: Command) -> list[str]:
    parser = options.parser_of(command, describe(command))
    return sorted(name for action in parser._actions for name in action.option_strings if name.startswith("--"))


def _cases(objects: dict[str, list[str]], taken: dict[str, list[str]]) -> str:
    """For bash and zsh: $n words are there, $1 and $2 are the first two."""
    lines = [f'0) found="{" ".join(objects)}" ;;', '1) case "$first" in']
    lines += [f'    {verb}) found="{" ".join(things)}" ;;' for verb, things in objects.items()]
    lines += ["    esac ;;", '*) case "$first $second" in']
    lines += [f'    "{name}") found="{" ".join(names)}" ;;' for name, names in taken.items()]
    return "\n".join([f"    {line}" for line in [*lines, "    esac ;;"]])


def _bash(run: str, objects: dict[str, list[str]], taken: dict[str, list[str]]) -> str:
    return f"""# eval "$(... manage.py mq completion bash)"
mq() {{ command {run} "$@"; }}
_surety_mq() {{
    local found="" first="${{COMP_WORDS[1]:-}}" second="${{COMP_WORDS[2]:-}}" current="${{COMP_WORDS[COMP_CWORD]}}"
    case "$((COMP_CWORD - 1))" in
{_cases(objects, taken)}
    esac
    COMPREPLY=()
    if [[ $COMP_CWORD -le 2 || $current == -* ]]; then COMPREPLY=($(compgen -W "$found" -- "$current")); fi
}}
complete -o default -F _surety_mq mq
"""


def _zsh(run: str, objects: dict[str, list[str]], taken: dict[str, list[str]]) -> str:
    return f"""# eval "$(... manage.py mq completion zsh)", after compinit
mq() {{ command {run} "$@" }}
_surety_mq() {{
    local found="" first="${{words[2]}}" second="${{words[3]}}"
    case "$((CURRENT - 2))" in
{_cases(objects, taken)}
    esac
    if (( CURRENT <= 3 )) || [[ ${{words[CURRENT]}} == -* ]]; then compadd -- ${{=found}}; else _files; fi
}}
compdef _surety_mq mq
"""


def _fish(run: str, objects: dict[str, list[str]], taken: dict[str, list[str]]) -> str:
    lines = [
        "# ... manage.py mq completion fish | source",
        f"function mq; command {run} $argv; end",
        "complete -c mq -f -n 'test (count (commandline -opc)) -eq 1' -a '" + " ".join(objects) + "'",
    ]
    for verb, things in objects.items():
        lines.append(f"complete -c mq -f -n 'test (count (commandline -opc)) -eq 2; and test (commandline -opc)[2] = {verb}' -a '{' '.join(things)}'")
    for name, names in taken.items():
        verb, thing = name.split(" ")
        asked = f"test (count (commandline -opc)) -ge 3; and test (commandline -opc)[2] = {verb}; and test (commandline -opc)[3] = {thing}"
        lines += [f"complete -c mq -n '{asked}' -l {option.removeprefix('--')}" for option in names]
    return "\n".join(lines) + "\n"
