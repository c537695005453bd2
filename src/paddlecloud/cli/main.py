"""The command's way in and out: finds the verb, and turns every end into an exit code and, if need be, one sentence."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from paddlecloud import __version__
from paddlecloud.cli import shell
from paddlecloud.cli.exits import OTHER, USAGE, exit_code
from paddlecloud.cli.parser import UsageError, option_before_verb, path, unknown_verb
from paddlecloud.cli.verbs import VERBS, overview, parser
from paddlecloud.model.errors import PaddleCloudError

_HELP = ("-h", "--help", "-help", "help")
_SERVER = "serve"  # lives long, and its garbage holds what users upload
_INTERRUPTED = 130
_BROKEN_PIPE = 141
_GARBAGE_WORTH_A_LOOK = 50_000  # objects; most commands end with fewer, and looking through them all takes a while


def start() -> None:
    """The command as a process of its own."""
    if sys.argv[1:2] != [_SERVER]:
        gc.set_threshold(_GARBAGE_WORTH_A_LOOK)
    shell.replace_unencodable()
    code = main()
    gc.freeze()  # else the interpreter looks through everything once more before it ends
    sys.exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    typed = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _dispatch(typed)
        sys.stdout.flush()
        return code
    except SystemExit as end:  # argparse, after --help
        return end.code if isinstance(end.code, int) else OTHER
    except UsageError as error:
        shell.talk(f"paddlecloud: {error.message}", f"see: {error.program} --help")
        return USAGE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Who reads us has had enough; the interpreter would complain once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except PaddleCloudError as error:
        return _refused(error.message, exit_code(error))
    except OSError as error:
        return _refused(_about_files(error), USAGE if _is_typed_wrong(error, typed) else OTHER)
    except Exception as error:
        if shell.variables().get("PADDLECLOUD_DEBUG"):
            raise
        return _refused(
            f"{type(error).__name__}: {error}",
            OTHER,
            f"This is a fault of paddlecloud {__version__}; PADDLECLOUD_DEBUG=1 shows where. Please report it.",
        )


def _dispatch(argv: list[str]) -> int:
    if argv and argv[0] in _HELP:
        argv = [*argv[1:], "--help"] if argv[1:] and argv[1] not in _HELP else []
    if not argv:
        shell.say(*overview().split("\n"))
        return 0
    if argv[0] in ("--version", "-V"):
        argv[0] = "version"
    verb = VERBS.get(argv[0])
    if verb is None:
        raise _no_verb(argv)
    arguments = parser(verb).read(argv[1:])
    code: int | None = arguments.run(arguments)
    return code or 0


def _no_verb(argv: Sequence[str]) -> UsageError:
    known = [name for name, verb in VERBS.items() if verb.group]
    if argv[0].startswith("-"):
        return option_before_verb(argv[0], argv[1:], known)
    return unknown_verb(argv[0], known)


def _is_typed_wrong(error: OSError, typed: Sequence[str]) -> bool:
    """Whether the person named something that is not there, or is a folder where a file is wanted."""
    kinds = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
    words = [*typed, *(path(part) for word in typed for part in (word, word.partition("=")[2]))]
    return isinstance(error, kinds) and any(word.endswith(str(error.filename)) for word in words)


def _refused(message: str, code: int, *more: str) -> int:
    if shell.variables().get("PADDLECLOUD_DEBUG"):
        import traceback

        shell.talk(*traceback.format_exc().splitlines())
    shell.talk(f"paddlecloud: {message}", *more)
    return code


def _about_files(error: OSError) -> str:
    named = f"{error.filename}: " if error.filename else ""
    return f"{named}{error.strerror or error}"
