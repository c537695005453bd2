"""Completion for bash, zsh and fish, generated from the parsers themselves, so that it cannot disagree with them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping

from paddlecloud.cli import verbs
from paddlecloud.cli.parser import Parser, Setup

SHELLS = ("bash", "zsh", "fish")


def completion(parser: Parser) -> None:
    parser.add_argument("shell", choices=SHELLS)
    parser.epilog = "\n".join(
        [
            "to have it in every new shell:",
            "  bash:  echo 'source <(paddlecloud completion bash)' >> ~/.bashrc",
            "  zsh:   echo 'source <(paddlecloud completion zsh)' >> ~/.zshrc   (after compinit)",
            "  fish:  paddlecloud completion fish > ~/.config/fish/completions/paddlecloud.fish",
        ]
    )
    parser.set_defaults(run=_completion)


VERBS: Mapping[str, Setup] = {"completion": completion}


def script(shell: str) -> str:
    words = _words()
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](words)


def _completion(args: Namespace) -> None:
    print(script(args.shell), end="")


def _words() -> dict[str, list[str]]:
    """What may follow each verb (`user add` too): options with a leading dash, sub-commands and fixed choices."""
    found: dict[str, list[str]] = {}
    for verb in verbs.VERBS.values():
        if verb.group:
            _collect(verb.name, verbs.parser(verb), found)
    return found


def _collect(name: str, parser: Parser, found: dict[str, list[str]]) -> None:
    branches = parser.branches()
    positional = [
        str(choice) for action in parser.actions() if not action.option_strings for choice in action.choices or ()
    ]
    found[name] = [*parser.options(), *(branches or positional)]
    for below, branch in branches.items():
        _collect(f"{name} {below}", branch, found)


def _bash(words: Mapping[str, list[str]]) -> str:
    cases = "\n".join(f'        "{name}") words="{" ".join(options)}" ;;' for name, options in words.items())
    first = " ".join(name for name in words if " " not in name)
    return f"""\
_paddlecloud() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" words="" path="${{COMP_WORDS[1]}}"
    case "$path" in user|token|key) (( COMP_CWORD > 2 )) && path="$path ${{COMP_WORDS[2]}}" ;; esac
    (( COMP_CWORD == 1 )) && path=""
    case "$path" in
        "") words="{first} help" ;;
{cases}
    esac
    COMPREPLY=( $(compgen -W "$words" -- "$current") )
}}
complete -o default -F _paddlecloud paddlecloud
"""


def _zsh(words: Mapping[str, list[str]]) -> str:
    return f"autoload -Uz bashcompinit && bashcompinit\n{_bash(words)}"


def _fish(words: Mapping[str, list[str]]) -> str:
    lines = ["complete -c paddlecloud -e"]
    for name, options in words.items():
        verb, _, below = name.partition(" ")
        if not below:
            line = verbs.VERBS[verb].line.replace("'", "\\'")
            lines.append(f"complete -c paddlecloud -n __fish_use_subcommand -a {verb} -d '{line}'")
        seen = f"__fish_seen_subcommand_from {verb}"
        if below:
            seen += f"; and __fish_seen_subcommand_from {below}"
        lines += [f"complete -c paddlecloud -n '{seen}' {_fish_word(word)}" for word in options]
    return "\n".join(lines) + "\n"


def _fish_word(word: str) -> str:
    if word.startswith("--"):
        return f"-l {word[2:]}"
    return f"-s {word[1:]}" if word.startswith("-") else f"-a {word}"
