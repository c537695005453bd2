"""The pages themselves, from records to HTML: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from paddlecloud.model import causes
from paddlecloud.model.accounts import VSCODE_SETTING, WebHdfsAccess, vscode_line
from paddlecloud.model.remedies import remedies
from paddlecloud.model.state import JobState
from paddlecloud.model.task import TaskReport
from paddlecloud.model.units import format_duration
from paddlecloud.model.views import JobDetail
from paddlecloud.server.dialects.openpai import shapes, states
from paddlecloud.server.dialects.openpai.portal.html import Html, facts, join, moment, table, tag
from paddlecloud.server.face_settings import LOGINS
from paddlecloud.store.attempts import Span
from paddlecloud.store.listing import Listed

STATES = (states.WAITING, states.RUNNING, states.STOPPING, states.SUCCEEDED, states.STOPPED, states.FAILED)


def login(next_page: str, problem: str = "", name: str = "") -> Html:
    return tag(
        "section",
        tag("h1", "Log in"),
        tag("p", problem, class_="problem", role="alert") if problem else Html(""),
        tag(
            "form",
            tag("input", type="hidden", name="next", value=next_page),
            tag(
                "p",
                tag("label", "User name", for_="username"),
                tag("input", type="text", name="username", id="username", value=name, autocomplete="username"),
            ),
            tag(
                "p",
                tag("label", "Password", for_="password"),
                tag("input", type="password", name="password", id="password", autocomplete="current-password"),
            ),
            tag("button", "Log in", type="submit"),
            method="post",
            action="/login.html",
        ),
        class_="narrow",
    )


def home(counts: Mapping[str, int], clusters: Mapping[str, Mapping[str, object]], recent: Sequence[Listed]) -> Html:
    told = [(word, tag("a", str(counts.get(word, 0)), href=list_address(state=word))) for word in STATES]
    rows = [
        [
            name,
            str(one["numActiveJobs"]),
            str(one["numPendingJobs"]),
            _share(one, "cpu"),
            _memory(one),
            _share(one, "gpu"),
        ]
        for name, one in clusters.items()
    ]
    return join(
        [
            tag("h1", "Home"),
            tag("section", tag("h2", "Your jobs"), facts([(word.capitalize(), count) for word, count in told])),
            tag("section", tag("h2", "Recent jobs"), _jobs(recent)),
            tag(
                "section",
                tag("h2", "Virtual clusters"),
                table(["Name", "Running", "Waiting", "CPUs used", "Memory used", "GPUs used"], rows),
            ),
        ]
    )


def files(access: WebHdfsAccess, host: str) -> Html:
    """How the VS Code client reaches the user's files."""
    believed = access.plain == LOGINS
    when = "If it cannot reach your files, write" if believed else "Write"
    for_all = "" if believed else f"It needs no such line once the operator writes {VSCODE_SETTING}."
    return tag(
        "section",
        tag("h2", "Your files in VS Code"),
        tag(
            "p",
            f"{when} this line into the client's configuration of this cluster, in the place of its own. It holds a "
            f"secret: whoever has it reads and changes your files. {for_all}",
        ),
        tag("details", tag("summary", "the line"), tag("pre", vscode_line(host, access.path))),
    )


def _share(cluster: Mapping[str, object], what: str) -> str:
    used, whole = cluster["resourcesUsed"], cluster["resourcesTotal"]
    return f"{used[what]:g} of {whole[what]:g}"  # type: ignore[index]


def _memory(cluster: Mapping[str, object]) -> str:
    used, whole = cluster["resourcesUsed"], cluster["resourcesTotal"]
    return f"{used['memory'] / 1024:.1f} of {whole['memory'] / 1024:.1f} GiB"  # type: ignore[index]


def job_list(found: Sequence[Listed], query: Mapping[str, str], *, total: int, offset: int, size: int) -> Html:
    chosen = query.get("state", "")
    choices = [tag("option", "any state", value=""), *(_option(word, chosen) for word in STATES)]
    last = min(offset + size, total)
    told = f"{offset + 1} to {last} of {total}" if total else "none"
    return join(
        [
            tag("h1", "Jobs"),
            tag(
                "form",
                _field("Name or cluster", "keyword", query),
                _field("User", "username", query),
                tag("p", tag("label", "State", for_="state"), tag("select", *choices, name="state", id="state")),
                tag("p", tag("button", "Show", type="submit")),
                class_="filter",
                method="get",
                action="/job-list.html",
            ),
            tag("section", _jobs(found)),
            tag(
                "p",
                tag("a", "newer", href=list_address(**{**query, "offset": str(max(0, offset - size))}))
                if offset
                else "",
                f" {told} ",
                tag("a", "older", href=list_address(**{**query, "offset": str(last)})) if last < total else "",
                class_="soft",
            ),
        ]
    )


def _option(word: str, chosen: str) -> Html:
    return tag("option", word.lower(), value=word, selected=word == chosen)


def _field(label: str, name: str, query: Mapping[str, str]) -> Html:
    return tag(
        "p", tag("label", label, for_=name), tag("input", type="text", name=name, id=name, value=query.get(name, ""))
    )


def _jobs(found: Sequence[Listed]) -> Html:
    if not found:
        return tag("p", "There are none.", class_="soft")
    rows = []
    for job in found:
        name = shapes.shown_name(job.name, job.id, found=job.found)
        shown = tag("a", job.name if job.found else f"{job.name} ({job.id[:12]}…)", href=job_address(job.user, name))
        counts = f"{job.tasks} / {job.gpus}"
        rows.append([shown, state(job), job.user, job.pool, counts, moment(job.created_at), moment(job.finished_at)])
    return table(["Job", "State", "User", "Cluster", "Tasks / GPUs", "Submitted", "Ended"], rows)


def state(job: Listed) -> Html:
    return badge(states.state(job))


def badge(word: str) -> Html:
    return tag("span", word, class_=f"state {word}")


def job(
    found: JobDetail,
    name: str,
    *,
    mark: str,
    spans: Sequence[Span],
    tags: Sequence[str],
    config: str | None,
    warnings: Sequence[str],
) -> Html:
    record = found.job
    return join(
        [
            tag(
                "div",
                tag("h1", record.spec.name, " ", badge(states.state(record))),
                _stop_button(record.user, name, mark) if not record.state.final else Html(""),
                class_="row",
            ),
            _why(found),
            tag("section", tag("h2", "Job"), facts(_facts(found, tags))),
            tag("section", tag("h2", "Tasks"), _tasks(found, name)),
            tag("section", tag("h2", "Attempts"), _attempts(spans)) if len(spans) > 1 else Html(""),
            tag("section", tag("h2", "Events"), _events(found)),
            _config(config, warnings),
        ]
    )


def _stop_button(user: str, name: str, mark: str) -> Html:
    return tag(
        "form",
        *_hidden(username=user, jobName=name, mark=mark),
        tag("button", "Stop this job", type="submit", class_="stop"),
        method="post",
        action="/job-stop.html",
    )


def _hidden(**fields: str) -> list[Html]:
    return [tag("input", type="hidden", name=name, value=value) for name, value in fields.items()]


def _why(found: JobDetail) -> Html:
    """Why a job waits, or how it ended and what to do about it."""
    record = found.job
    waits = shapes.waits_for(found)
    if waits:
        return tag("section", tag("h2", "Why it waits"), tag("p", waits), class_="waits")
    if not record.state.final or record.state is JobState.SUCCESS:
        return Html("")
    failed = shapes.first_failed(found)
    cluster = "" if record.placement is None else record.placement.cluster
    cause = causes.of_job(record.stop, found.tasks, cluster=cluster)
    parts = [tag("h2", "How it ended"), tag("p", record.error or states.state(record).lower())]
    if cause is not None:
        parts.append(tag("p", f"It seems that {cause.what}."))
        advice = remedies(cause, record, found.longest_seconds)
        parts.append(tag("ul", *(tag("li", remedy) for remedy in advice)))
    if failed is not None and failed.tail.strip():
        parts += [tag("p", f"The last lines of {failed.name}:", class_="soft"), tag("pre", failed.tail.rstrip("\n"))]
    return tag("section", *parts, class_="bad" if record.state is not JobState.KILLED else None)


def _facts(found: JobDetail, tags: Sequence[str]) -> list[tuple[str, str]]:
    record = found.job
    pairs = [
        ("Id", record.id),
        ("User", record.user),
        ("Virtual cluster", shapes.pool(record)),
        ("Cluster", record.placement.cluster if record.placement else "–"),
        ("Submitted", moment(record.created_at)),
        ("Started", moment(record.started_at)),
        ("Ended", moment(record.finished_at)),
        ("Retries", str(max(0, record.attempt - 1))),
    ]
    if record.wall_time_seconds is not None:
        pairs.append(("May run for", format_duration(record.wall_time_seconds)))
    if tags:
        pairs.append(("Tags", ", ".join(tags)))
    if record.spec.image:
        pairs.append(("Image", record.spec.image))
    return pairs


def _tasks(found: JobDetail, name: str) -> Html:
    rows = []
    for role in found.job.spec.roles:
        for index in range(role.count):
            report = shapes.report(found, role, index)
            placed = shapes.placed(found.job, role, index)
            labels = shapes.ports(role, placed).items() if placed else ()
            rows.append(
                [
                    report.name,
                    tag("a", "log", href=log_address(found.job.user, name, report.name)) if found.log_tasks else "–",
                    badge(states.task_state(report, found.job.state)),
                    _outcome(report),
                    (placed.address if placed else None) or "–",
                    ", ".join(f"{label} {port}" for label, port in labels) or "–",
                    moment(report.started_at),
                ]
            )
    return table(["Task", "Log", "State", "End", "Address", "Ports", "Started"], rows)


def _outcome(task: TaskReport) -> str:
    return task.outcome if task.state.ended else "–"


def _attempts(spans: Sequence[Span]) -> Html:
    rows = [[str(one.attempt - 1), one.cluster, moment(one.running_at), moment(one.stopped_at)] for one in spans]
    return table(["Attempt", "Cluster", "Started", "Ended"], rows)


def _events(found: JobDetail) -> Html:
    return table(["When", "State", "Why"], [[moment(one.at), one.to_state.label, one.why] for one in found.history])


def _config(text: str | None, warnings: Sequence[str]) -> Html:
    if text is None:
        return Html("")
    told = tag("ul", *(tag("li", warning) for warning in warnings)) if warnings else Html("")
    return tag(
        "section", tag("h2", "As it was written"), told, tag("details", tag("summary", "config"), tag("pre", text))
    )


def log(user: str, name: str, task: str, content: str, *, cut: bool, whole: str) -> Html:
    return join(
        [
            tag("h1", f"Log of {task}"),
            tag(
                "p",
                tag("a", f"{user}~{name}", href=job_address(user, name)),
                " · ",
                tag("a", "the whole log", href=whole),
                " (this link is good for a few minutes)",
                " · only its end is shown here" if cut else "",
            ),
            tag("pre", content) if content else tag("p", "Nothing was written yet.", class_="soft"),
        ]
    )


def submit(mark: str, text: str = "", problem: str = "") -> Html:
    return tag(
        "section",
        tag("h1", "Submit a job"),
        tag("p", "A job of OpenPAI's protocol, version 2 (YAML) or version 1 (JSON)."),
        tag("p", problem, class_="problem", role="alert") if problem else Html(""),
        tag(
            "form",
            *_hidden(mark=mark),
            tag("p", tag("label", "Job", for_="job"), tag("textarea", text, name="job", id="job", spellcheck="false")),
            tag("button", "Submit", type="submit"),
            method="post",
            action="/submit.html",
        ),
    )


def leave(mark: str) -> Html:
    return tag(
        "form",
        *_hidden(mark=mark),
        tag("button", "Log out", type="submit", class_="plain"),
        method="post",
        action="/logout.html",
    )


def message(title: str, text: str) -> Html:
    return tag("section", tag("h1", title), tag("p", text), tag("p", tag("a", "Home", href="/index.html")))


def job_address(user: str, name: str) -> str:
    return f"/job-detail.html?{urlencode({'username': user, 'jobName': name})}"


def log_address(user: str, name: str, task: str) -> str:
    return f"/job-log.html?{urlencode({'username': user, 'jobName': name, 'task': task})}"


def list_address(**query: str) -> str:
    return f"/job-list.html?{urlencode({name: value for name, value in query.items() if value})}"
