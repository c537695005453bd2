"""What a check of a set-up found: well, worth a look, or broken, and then what to do about it."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Verdict(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


class Finding(Struct, frozen=True, kw_only=True):
    subject: str
    verdict: Verdict
    text: str
    remedy: str = ""


def ok(subject: str, text: str) -> Finding:
    return Finding(subject=subject, verdict=Verdict.OK, text=text)


def warning(subject: str, text: str, remedy: str = "") -> Finding:
    return Finding(subject=subject, verdict=Verdict.WARNING, text=text, remedy=remedy)


def failed(subject: str, text: str, remedy: str = "") -> Finding:
    return Finding(subject=subject, verdict=Verdict.FAILED, text=text, remedy=remedy)
