"""Asking a person for what must not stand in the command line, which everyone on the machine can read."""

from __future__ import annotations

import getpass
import sys

from paddlecloud.cli import shell
from paddlecloud.cli.printable import printable
from paddlecloud.model.errors import InvalidError


def name(prompt: str) -> str:
    if not shell.is_terminal(sys.stdin):
        raise InvalidError("--user is missing: there is no terminal to ask on", field="user")
    return input(prompt).strip()


def line(prompt: str) -> str:
    """From the terminal, or the first line of stdin; "" where there is none."""
    return (input(prompt) if shell.is_terminal(sys.stdin) else sys.stdin.readline()).strip()


def password(prompt: str) -> str:
    """From the terminal, without showing it, or the first line of stdin."""
    if shell.is_terminal(sys.stdin):
        return getpass.getpass(prompt)
    found = sys.stdin.readline().rstrip("\r\n")
    if not found:
        raise InvalidError("no password: there is no terminal to ask on and stdin is empty", field="password")
    return found


def new_password(name: str) -> str:
    first = password(f"new password of {printable(name)}: ")
    if shell.is_terminal(sys.stdin) and getpass.getpass("again: ") != first:
        raise InvalidError("the two passwords differ: nothing was changed", field="password")
    return first
