"""The parameters of a call, read as Hadoop reads them: names and booleans in any case, of several values the first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import parse_qsl, quote, urlencode

from paddlecloud.server.dialects.webhdfs.errors import HdfsError, invalid

DATA = "data"  # marks the second request of two, as HttpFS does
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
_OCTAL = re.compile(r"0*([0-7]{1,4})")
_LARGEST = 2**63 - 1
_PARAMETERS = 100


class Query:
    def __init__(self, raw: str) -> None:
        try:
            self._given = parse_qsl(raw, keep_blank_values=True, max_num_fields=_PARAMETERS)
        except ValueError:
            raise HdfsError("IllegalArgumentException", f"more than {_PARAMETERS} parameters were given") from None

    @property
    def op(self) -> str:
        found = self.text("op")
        if not found:
            raise HdfsError("UnsupportedOperationException", "op=NULL is not supported")
        return found.upper()

    def all(self, name: str) -> Sequence[str]:
        return [value for key, value in self._given if key.lower() == name and value]

    def text(self, name: str) -> str:
        """ "" if it was not given."""
        found = self.all(name)
        return found[0] if found else ""

    def flag(self, name: str) -> bool:
        found = self.text(name).lower()
        if found not in ("", "true", "false"):
            raise invalid(name, f'Failed to parse "{self.text(name)}" to Boolean.')
        return found == "true"

    def number(self, name: str, *, least: int = 0, most: int = _LARGEST) -> int | None:
        """None if it was not given."""
        found = self.text(name)
        if not found:
            return None
        if not _NUMBER.fullmatch(found):
            raise invalid(name, f'Failed to parse "{found}" as a radix-10 long integer.')
        if int(found) < least:
            raise invalid(name, f"Invalid parameter range: {name} = {int(found)} < {least}")
        if int(found) > most:
            raise invalid(name, f"Invalid parameter range: {name} = {int(found)} > {most}")
        return int(found)

    def permission(self) -> str:
        """In octal, without a leading 0; "" if none was given."""
        found = self.text("permission")
        if not found:
            return ""
        digits = _OCTAL.fullmatch(found)
        if digits is None:
            raise invalid("permission", f'Failed to parse "{found}" as a radix-8 short integer.')
        if int(digits[1], 8) > 0o1777:
            raise invalid("permission", f"Invalid parameter range: permission = {found} > 1777")
        return f"{int(digits[1], 8):o}"

    def again(self) -> str:
        """The same parameters for the second of two requests, with everything in them encoded."""
        kept = [(key, value) for key, value in self._given if key.lower() not in (DATA, "noredirect")]
        return urlencode([*kept, (DATA, "true")], quote_via=quote)
