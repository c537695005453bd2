"""HTML put together so that nothing of others gets into it unescaped: what is not Html already is text. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape

_LONG = 26  # letters that a narrow column holds
_EMPTY = frozenset({"input", "meta", "link", "br"})


class Html(str):
    """A text that is HTML already."""

    __slots__ = ()


def tag(name: str, /, *inner: str, **attributes: str | bool | None) -> Html:
    """An element. A trailing _ of an attribute's name is dropped (`class_`), and other _ are dashes; False is none."""
    given = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    content = "".join(one if isinstance(one, Html) else escape(one) for one in inner)
    return Html(f"<{name}{given}>" if name in _EMPTY else f"<{name}{given}>{content}</{name}>")


def join(parts: Iterable[str], between: str = "") -> Html:
    return Html(between.join(part if isinstance(part, Html) else escape(part) for part in parts))


def moment(at: datetime | None) -> Html:
    """A time, for people and for machines."""
    if at is None:
        return Html("–")
    utc = at.astimezone(UTC)
    return tag("time", f"{utc:%Y-%m-%d %H:%M:%S} UTC", datetime=f"{utc:%Y-%m-%dT%H:%M:%SZ}")


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Html:
    head = tag("tr", *(tag("th", one, scope="col") for one in heads))
    body = [tag("tr", *(tag("td", cell) for cell in row)) for row in rows]
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body)), class_="wide", tabindex="0")


def facts(pairs: Iterable[tuple[str, str]]) -> Html:
    return tag(
        "dl",
        *(
            tag("div", tag("dt", name), tag("dd", value), class_="long" if _is_long(value) else None)
            for name, value in pairs
        ),
    )


def _is_long(value: str) -> bool:
    return not isinstance(value, Html) and len(value) > _LONG


def document(title: str, *body: str, user: str = "", leave: Html | None = None, refresh: int | None = None) -> str:
    """A whole page."""
    links = (("/index.html", "Home"), ("/job-list.html", "Jobs"), ("/submit.html", "Submit"))
    menu = [tag("a", word, href=address) for address, word in links] if user else []
    whom = [tag("span", user, class_="whom"), leave or Html("")] if user else []
    return "<!DOCTYPE html>\n" + tag(
        "html",
        tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("meta", http_equiv="refresh", content=str(refresh)) if refresh else Html(""),
            tag("title", f"{title} · PaddleCloud"),
            tag("link", rel="stylesheet", href=f"/portal.css?{VERSION}"),
        ),
        tag(
            "body",
            tag("header", tag("a", "PaddleCloud", href="/index.html", class_="mark"), tag("nav", *menu), *whom),
            tag("main", *body),
        ),
        lang="en",
    )


STYLE = """\
:root { --back: #f6f7f9; --card: #fff; --ink: #1c2330; --soft: #5b6675; --line: #dde1e7; --link: #0b5cad;
  --good: #14713d; --bad: #b3261e; --busy: #0b5cad; --wait: #8a5a00; --button: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --back: #12161c; --card: #1a2029; --ink: #e4e8ee; --soft: #9aa6b5; --line: #2d3643; --link: #7cb8ff;
    --good: #6cd394; --bad: #ff8f86; --busy: #7cb8ff; --wait: #e6b455; --button: #a3352d; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
header { display: flex; flex-wrap: wrap; gap: .4rem 1.2rem; align-items: center; padding: .7rem 1.2rem;
  background: var(--card); border-bottom: 1px solid var(--line); }
header nav { display: flex; gap: 1rem; flex: 1; }
header form { margin: 0; }
.mark { font-weight: 700; color: var(--ink); text-decoration: none; }
.whom, .soft { color: var(--soft); }
a { color: var(--link); }
main { max-width: 72rem; margin: 0 auto; padding: 1.2rem; }
h1 { font-size: 1.35rem; margin: 0 0 .8rem; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 0 0 .6rem; }
section, .card { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: 1rem 1.2rem;
  margin: 0 0 1rem; }
.narrow { max-width: 24rem; margin: 3rem auto; }
.bad { border-left: .3rem solid var(--bad); }
.waits { border-left: .3rem solid var(--wait); }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(12.5rem, 1fr)); gap: .6rem 1.2rem; margin: 0; }
dl .long { grid-column: span 2; }
dt { color: var(--soft); font-size: .85rem; }
dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; color: var(--soft); font-weight: 600; font-size: .85rem; }
th, td { padding: .35rem .9rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
tbody tr:last-child td { border-bottom: 0; }
time, th { white-space: nowrap; }
pre { margin: 0; padding: .8rem; background: var(--back); border: 1px solid var(--line); border-radius: .4rem;
  overflow: auto; font: 13px/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
.state { font-weight: 700; font-size: .85rem; letter-spacing: .02em; white-space: nowrap; }
.SUCCEEDED { color: var(--good); } .FAILED { color: var(--bad); } .RUNNING { color: var(--busy); }
.WAITING, .STOPPING { color: var(--wait); } .STOPPED, .UNKNOWN { color: var(--soft); }
form.filter { display: flex; flex-wrap: wrap; gap: .6rem; align-items: end; margin-bottom: 1rem; }
form.filter p { margin: 0; }
form.filter input, form.filter select, form.filter button { height: 2.4rem; }
label { display: block; color: var(--soft); font-size: .85rem; }
input, select, textarea, button { font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line);
  border-radius: .35rem; padding: .4rem .6rem; }
input[type=text], input[type=password], textarea { width: 100%; }
form.filter input[type=text] { width: 12rem; }
textarea { min-height: 22rem; font: 13px/1.45 ui-monospace, monospace; }
button { cursor: pointer; background: var(--link); border-color: var(--link); color: var(--card); font-weight: 600; }
button.stop { background: var(--button); border-color: var(--button); color: #fff; }
button.plain { background: none; border: 0; padding: 0; color: var(--link); font-weight: 400;
  text-decoration: underline; }
.row { display: flex; flex-wrap: wrap; gap: .6rem 1rem; align-items: center; justify-content: space-between;
  margin-bottom: .8rem; }
.row h1 { margin: 0; }
ul { margin: .4rem 0 0; padding-left: 1.2rem; }
p { margin: 0 0 .6rem; } p:last-child { margin-bottom: 0; }
.problem { color: var(--bad); }
@media (max-width: 40rem) { main { padding: .8rem; } section, .card { padding: .8rem; }
  dl { grid-template-columns: 1fr 1fr; } }
"""
VERSION = hashlib.sha256(STYLE.encode()).hexdigest()[:12]
