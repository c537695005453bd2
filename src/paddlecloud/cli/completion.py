"""Completion for bash, zsh and fish, generated from the parsers themselves, so that it cannot disagree with them.

Names of jobs are asked of a server only if one answers at once; completion never starts one and never complains.
"""

from __future__ import annotations

import argparse
import re
from argparse import Namespace
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from paddlecloud.cli import verbs
from paddlecloud.cli.parser import Parser, Setup
from paddlecloud.model.state import JobState

SHELLS = ("bash", "zsh", "fish")
_JOBS_VERB = "known_jobs"
_JOBS = 50
_ANSWER_SECONDS = 0.5
# A shell reads what we offer once more, so a name with anything else in it is left out.
_SAFE = re.compile(r"[\w.@+-]+", re.ASCII)
_FOLDERS = ("FOLDER", "DIR")
_FILES = ("FILE", "JOB.YAML")
_JOB_NAMES = ("JOB", "JOB[:PATH]")
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


def known_jobs(parser: Parser) -> None:
    parser.set_defaults(run=_known_jobs)


VERBS: Mapping[str, Setup] = {"completion": completion, _JOBS_VERB: known_jobs}


@dataclass(frozen=True, slots=True)
class Offer:
    """What may stand in one place: fixed words, and the names of jobs, folders or files."""

    words: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()  # "jobs", "folders", "files"


@dataclass(slots=True)
class Place:
    """A verb, or a sub-command such as `user add`: its options, what each takes, and its arguments."""

    options: tuple[str, ...]
    values: dict[str, Offer] = field(default_factory=dict)
    arguments: Offer = field(default_factory=Offer)


def script(shell: str) -> str:
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](_places())


def _completion(args: Namespace) -> None:
    print(script(args.shell), end="")


def _known_jobs(_: Namespace) -> None:
    """Ids and names of the newest jobs, or nothing: who presses TAB wants neither a wait nor a sentence."""
    from paddlecloud.model.errors import PaddleCloudError
    from paddlecloud.sdk import profile as profiles
    from paddlecloud.sdk import trust
    from paddlecloud.sdk.client import Client
    from paddlecloud.sdk.connections import BrokenError

    try:
        profile = profiles.load()
        if not profile.server or not profile.identified:
            return
        trust.connections(profile).request("GET", "/readyz", seconds=_ANSWER_SECONDS).close()
        with Client(profile) as client:
            jobs = client.list(limit=_JOBS)
    except (PaddleCloudError, BrokenError, OSError):
        return
    offered = dict.fromkeys([*(job.spec.name for job in jobs), *(job.id for job in jobs)])
    print("\n".join(name for name in offered if _SAFE.fullmatch(name)))


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
    place.arguments = Offer(words, frozenset(kind for offer in arguments for kind in offer.kinds))
    for below, branch in branches.items():
        _collect(f"{name} {below}", branch, found)


def _offer(action: argparse.Action) -> Offer:
    if action.choices is not None:
        return Offer(tuple(map(str, action.choices)))
    if action.metavar == "STATE":
        return Offer(_STATES)
    places = {"folders": _FOLDERS, "files": _FILES, "jobs": _JOB_NAMES}
    return Offer((), frozenset(kind for kind, names in places.items() if action.metavar in names))


def _bash(places: Mapping[str, Place]) -> str:
    first = " ".join(name for name in places if " " not in name)
    nested = "|".join(name for name, below in _below(places).items() if below)
    cases = "\n".join(line for name, place in places.items() for line in _bash_cases(name, place))
    return f"""\
_paddlecloud() {{
    local IFS=$' \\t\\n' current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
    local place="${{COMP_WORDS[1]}}" words="" kinds="" word
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
    [[ $kinds == *jobs* ]] && words="$words $(paddlecloud {_JOBS_VERB} 2>/dev/null)"
    COMPREPLY=( $(compgen -W "$words" -- "$current") )
    IFS=$'\\n'
    [[ $kinds == *folders* ]] && COMPREPLY+=( $(compgen -d -- "$current") )
    [[ $kinds == *files* ]] && COMPREPLY+=( $(compgen -f -- "$current") )
    [[ $kinds == *folders* || $kinds == *files* ]] && compopt -o filenames 2>/dev/null
    return 0
}}
complete -F _paddlecloud paddlecloud
"""


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
    return f"autoload -Uz bashcompinit && bashcompinit\n{_bash(places)}"


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
        words.append(f"(paddlecloud {_JOBS_VERB} 2>/dev/null)")
    if "folders" in offer.kinds:
        words.append("(__fish_complete_directories)")
    files = "-F" if "files" in offer.kinds else ""
    return " ".join(filter(None, [files, f'-a "{" ".join(words)}"' if words else ""]))
