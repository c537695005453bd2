"""Completion for bash, zsh and fish, generated from the parsers themselves, so that it cannot disagree with them.

Names of jobs, groups and queues and paths of the PFS come from the hidden verbs of known.py.
"""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from paddlecloud.cli import shell, verbs
from paddlecloud.cli.parser import Parser, Setup
from paddlecloud.model.state import JobState

SHELLS = ("bash", "zsh", "fish")
# What arguments of these names may be.
_KINDS: Mapping[str, tuple[str, ...]] = {
    "folders": ("FOLDER", "DIR"),
    "files": ("FILE", "JOB.YAML", "SOURCE", "TARGET", "SRC", "DEST"),
    "jobs": ("JOB", "JOB[:PATH]", "SOURCE"),
    "groups": ("GROUP",),
    "queues": ("QUEUE",),
    "pfs": ("PATH", "SOURCE", "TARGET", "SRC", "DEST"),
}
_NO_PFS = ("--prefix",)  # of results
_ALSO: Mapping[str, str] = {"ls": "jobs", "submit": "pfs"}
_REGISTER = "complete -F _paddlecloud paddlecloud\n"
# There `compopt` is not known: who offers folders has to put the space behind everything else.
_ZSH_REGISTER = """\
_paddlecloud_spaced() {
    local word
    local -a spaced=()
    _paddlecloud
    for word in "${COMPREPLY[@]}"; do
        case "$word" in */) spaced+=( "$word" ) ;; *) spaced+=( "$word " ) ;; esac
    done
    COMPREPLY=( "${spaced[@]}" )
}
complete -o nospace -F _paddlecloud_spaced paddlecloud
"""
_STATES = ("live", *(state.value for state in JobState))


def completion(parser: Parser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="bash, zsh or fish")
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


@dataclass(frozen=True, slots=True)
class Offer:
    """What may stand in one place: fixed words, and the names of jobs, folders, files or paths of the PFS."""

    words: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()  # of _KINDS


@dataclass(slots=True)
class Place:
    """A verb, or a sub-command such as `user add`: its options, what each takes, and its arguments."""

    options: tuple[str, ...]
    values: dict[str, Offer] = field(default_factory=dict)
    arguments: Offer = field(default_factory=Offer)


def script(shell: str) -> str:
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](_places())


def _completion(args: Namespace) -> None:
    shell.say(*script(args.shell).splitlines())


def _places() -> dict[str, Place]:
    found: dict[str, Place] = {}
    for verb in verbs.VERBS.values():
        if verb.group:
            _collect(verb.name, verbs.parser(verb), found)
    found["help"] = Place((), arguments=Offer(tuple(name for name in found if " " not in name)))
    return found


def _collect(name: str, parser: Parser, found: dict[str, Place]) -> None:
    branches = parser.branches()
    place = found[name] = Place(tuple(parser.options()))
    for action in parser.actions():
        if action.option_strings and action.nargs != 0:
            place.values |= dict.fromkeys(action.option_strings, _offer(action))
    arguments = [_offer(action) for action in parser.actions() if not action.option_strings]
    words = tuple(branches) or tuple(word for offer in arguments for word in offer.words)
    kinds = frozenset(kind for offer in arguments for kind in offer.kinds)
    place.arguments = Offer(words, kinds | {_ALSO[name]} if name in _ALSO else kinds)
    for below, branch in branches.items():
        _collect(f"{name} {below}", branch, found)


def _offer(action: argparse.Action) -> Offer:
    if action.choices is not None:
        return Offer(tuple(map(str, action.choices)))
    if action.metavar == "STATE":
        return Offer(_STATES)
    if any(option in _NO_PFS for option in action.option_strings):
        return Offer()
    return Offer((), frozenset(kind for kind, names in _KINDS.items() if action.metavar in names))


def _bash(places: Mapping[str, Place]) -> str:
    first = " ".join(name for name in places if " " not in name)
    nested = "|".join(name for name, below in _below(places).items() if below)
    cases = "\n".join(line for name, place in places.items() for line in _bash_cases(name, place))
    return f"""\
_paddlecloud() {{
    local IFS=$' \\t\\n' current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
    local place="${{COMP_WORDS[1]}}" words="" kinds="" word typed lead
    # bash takes --name=value for three words.
    [[ $before == "=" ]] && before="${{COMP_WORDS[COMP_CWORD-2]}}"
    [[ $current == "=" ]] && current=""
    case "$place" in {nested}) (( COMP_CWORD > 2 )) && place="$place ${{COMP_WORDS[2]}}" ;; esac
    COMPREPLY=()
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do [[ $word == "--" ]] && place="a command"; done
    (( COMP_CWORD == 1 )) && place="" before=""
    [[ $before == -* ]] || before="arguments"
    [[ $current == -* ]] && before="options"
    case "$place:$before" in
        ":"*) words="{first}" ;;
        "a command:"*) kinds="files" ;;
{cases}
    esac
    # bash breaks a path at an @ or a : too, and asks for what it would put behind that.
    typed="${{COMP_LINE:0:COMP_POINT}}" && typed="${{typed##*[[:space:]]}}"
    [[ -n $typed && $typed == *"${{2-$current}}" ]] || typed="${{2-$current}}"
    lead="${{typed%"${{2-$current}}"}}"
    if [[ $kinds == *pfs* && $typed == /pfs/* ]]; then
        for word in $(paddlecloud known_files "$typed" 2>/dev/null); do COMPREPLY+=( "${{word#"$lead"}}" ); done
        [[ ${{COMPREPLY[0]}} == */ ]] && compopt -o nospace 2>/dev/null
        return 0
    fi
    [[ ( $kinds == pfs || ( $kinds == *pfs* && -n $typed ) ) && /pfs/ == "$typed"* ]] &&
        COMPREPLY=( /pfs/ ) && compopt -o nospace 2>/dev/null
    [[ $kinds == *jobs* ]] && words="$words $(paddlecloud known_jobs 2>/dev/null)"
    [[ $kinds == *groups* ]] && words="$words $(paddlecloud known_groups 2>/dev/null)"
    [[ $kinds == *queues* ]] && words="$words $(paddlecloud known_queues 2>/dev/null)"
    COMPREPLY+=( $(compgen -W "$words" -- "$current") )
    IFS=$'\\n'
    [[ $kinds == *folders* ]] && COMPREPLY+=( $(compgen -d -- "$current") )
    [[ $kinds == *files* ]] && COMPREPLY+=( $(compgen -f -- "$current") )
    [[ $kinds == *folders* || $kinds == *files* ]] && compopt -o filenames 2>/dev/null
    return 0
}}
{_REGISTER}"""


def _below(places: Mapping[str, Place]) -> dict[str, list[str]]:
    """The sub-commands of each verb, such as `add` of `user`."""
    found: dict[str, list[str]] = {}
    for name in places:
        verb, _, action = name.partition(" ")
        found.setdefault(verb, []).extend([action] if action else [])
    return found


def _bash_cases(name: str, place: Place) -> Iterable[str]:
    """What is offered at a place; an option without a value, such as --json, leaves it with the arguments."""
    yield f'        "{name}:options") words="{" ".join(place.options)}" ;;'
    for option, offer in place.values.items():
        yield f'        "{name}:{option}") {_bash_offer(offer)} ;;'
    yield f'        "{name}:"*) {_bash_offer(place.arguments)} ;;'


def _bash_offer(offer: Offer) -> str:
    return f'words="{" ".join(offer.words)}" kinds="{" ".join(sorted(offer.kinds))}"'


def _zsh(places: Mapping[str, Place]) -> str:
    bash = _bash(places).replace(_REGISTER, _ZSH_REGISTER)
    return f"autoload -Uz bashcompinit && bashcompinit\n{bash}"


def _fish(places: Mapping[str, Place]) -> str:
    lines = ["complete -c paddlecloud -e", "complete -c paddlecloud -f"]
    actions = _below(places)
    for name, place in places.items():
        verb, _, below = name.partition(" ")
        if not below:
            line = verbs.VERBS[verb].line.replace("'", "\\'") if verb in verbs.VERBS else "tell more of a verb"
            lines.append(f"complete -c paddlecloud -n __fish_use_subcommand -a {verb} -d '{line}'")
        seen = f"__fish_seen_subcommand_from {verb}"
        if below:
            seen += f"; and __fish_seen_subcommand_from {below}"
        elif actions[verb]:
            seen += f"; and not __fish_seen_subcommand_from {' '.join(actions[verb])}"
        lines += [f"complete -c paddlecloud -n '{seen}' {words}" for words in _fish_words(place)]
    return "\n".join(lines) + "\n"


def _fish_words(place: Place) -> Iterable[str]:
    for option in place.options:
        known = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
        offer = place.values.get(option)
        yield known if offer is None else f"{known} -r {_fish_offer(offer)}".rstrip()
    if told := _fish_offer(place.arguments):
        yield told


def _fish_offer(offer: Offer) -> str:
    words = list(offer.words)
    if "jobs" in offer.kinds:
        words.append("(paddlecloud known_jobs 2>/dev/null)")
    if "groups" in offer.kinds:
        words.append("(paddlecloud known_groups 2>/dev/null)")
    if "queues" in offer.kinds:
        words.append("(paddlecloud known_queues 2>/dev/null)")
    if "pfs" in offer.kinds:
        words.append("(paddlecloud known_files (commandline -ct) 2>/dev/null)")
    if "folders" in offer.kinds:
        words.append("(__fish_complete_directories)")
    files = "-F" if "files" in offer.kinds else ""
    return " ".join(filter(None, [files, f'-a "{" ".join(words)}"' if words else ""]))
