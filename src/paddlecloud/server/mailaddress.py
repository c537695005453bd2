"""An address of mail in one spelling, so that one mailbox is one user however its address is typed.

Keys go to exactly the mailbox that the user is named after, never to another spelling of it: a mail server might take
the two for two people.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

import idna

from paddlecloud.model.errors import InvalidError
from paddlecloud.model.user import check_user_name

_LOCAL_BYTES = 64


@dataclass(frozen=True, slots=True)
class MailAddress:
    """`local` in small letters, `domain` as the DNS has it (`xn--…`)."""

    local: str
    domain: str

    @property
    def tagged(self) -> bool:
        """Whether it is one of any number of addresses that most mail servers give one mailbox (RFC 5233)."""
        return "+" in self.local

    @property
    def user(self) -> str:
        """The name of its user, in the script that people read."""
        return f"{self.local}@{idna.decode(self.domain)}"

    def __str__(self) -> str:
        """What a mail is sent to."""
        return f"{self.local}@{self.domain}"


def parse(text: str) -> MailAddress:
    local, at, domain = text.strip().rpartition("@")
    if not at or not _is_local(local):
        raise _malformed(text)
    try:
        found = MailAddress(unicodedata.normalize("NFC", local).lower(), parse_domain(domain))
        check_user_name(found.user)
    except UnicodeError:
        raise _malformed(text) from None
    except InvalidError as error:
        raise InvalidError(
            f"{error.message}; ask the operator for an account of another name: paddlecloud user add NAME",
            field="email",
        ) from None
    return found


def parse_domain(text: str) -> str:
    """The domain as the DNS has it; UnicodeError where it cannot have it."""
    return idna.encode(text.strip(), uts46=True).decode("ascii").removesuffix(".")


def _is_local(local: str) -> bool:
    """Whether it needs no quotes before the @."""
    return (
        0 < len(local.encode(errors="replace")) <= _LOCAL_BYTES
        and "@" not in local
        and ".." not in local
        and not local.startswith(".")
        and not local.endswith(".")
    )


def _malformed(text: str) -> InvalidError:
    return InvalidError(
        f"email {text[:80]!r} is not an address of mail: write it as zhangsan@example.com", field="email"
    )
