"""The pages that OpenPAI's clients open: behind a log-in, escaped, and changed by nobody's tricks."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest
import urllib3

from paddlecloud.model.user import Role, Scope
from paddlecloud.server.app import utc_now
from paddlecloud.server.dialects.openpai.portal.html import Html, join, tag
from tests.unit.server.openpai.asking import FORM, PASSWORD, Pai
from tests.waiting import wait_until

SCRIPT = "<script>alert(1)</script>"


class Browser:
    """What a browser does with cookies and forms, and no more."""

    def __init__(self, pai: Pai) -> None:
        self.pai = pai
        self.cookie = ""

    def get(self, path: str, **headers: str) -> urllib3.BaseHTTPResponse:
        return self._send("GET", path, None, headers)

    def post(self, path: str, fields: dict[str, str], **headers: str) -> urllib3.BaseHTTPResponse:
        return self._send("POST", path, urlencode(fields), {"Content-Type": FORM, **headers})

    def login(self, name: str = "carl", password: str = PASSWORD, back: str = "") -> urllib3.BaseHTTPResponse:
        answer = self.post("/login.html", {"username": name, "password": password, "next": back})
        if answer.status == 303:
            self.cookie = answer.headers["Set-Cookie"].partition(";")[0]
        return answer

    def mark(self, path: str = "/index.html") -> str:
        found = re.search(r'name="mark" value="([0-9a-f]+)"', self.get(path).data.decode())
        assert found
        return found[1]

    def _send(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> urllib3.BaseHTTPResponse:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookie:
            sent["Cookie"] = self.cookie
        server = self.pai.server
        return server.pool.request(method, server.url + path, body=body, headers=sent, redirect=False)


@pytest.fixture
def browser(pai: Pai) -> Browser:
    made = Browser(pai)
    made.login()
    return made


@pytest.fixture(scope="module")
def carl(pai: Pai) -> str:
    return pai.login()


@pytest.mark.parametrize(
    "path",
    ["/index.html", "/job-list.html", "/job-detail.html?username=carl&jobName=x", "/submit.html", "/job-log.html"],
)
def test_every_page_is_behind_a_login_and_comes_back(pai: Pai, path: str) -> None:
    stranger = Browser(pai)
    sent_away = stranger.get(path)
    assert sent_away.status == 303
    assert sent_away.headers["Location"] == f"/login.html?{urlencode({'next': path})}"
    form = stranger.get(sent_away.headers["Location"])
    assert form.status == 200
    assert stranger.login(back=path).headers["Location"] == path
    assert b"Log in" not in stranger.get("/index.html").data


def test_a_session_is_a_cookie_that_scripts_and_other_pages_do_not_get(pai: Pai) -> None:
    cookie = Browser(pai).login().headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Max-Age=43200" in cookie
    assert "Secure" not in cookie, "this server is not encrypted"


def test_a_cookie_is_good_for_pages_alone_and_a_token_for_none(pai: Pai, browser: Browser, carl: str) -> None:
    session = browser.cookie.partition("=")[2]
    assert pai.refused("GET", "/v2/jobs", token=session) == (401, "UnauthorizedUserError")
    by_cookie = pai.send("GET", "/v2/jobs", token="", headers={"Cookie": browser.cookie})
    assert by_cookie.status == 401
    other = Browser(pai)
    other.cookie = f"paddlecloud_session={carl}"
    assert other.get("/index.html").status == 303


@pytest.mark.parametrize(
    "back",
    [
        "https://evil.example/x.html",
        "//evil.example/x.html",
        "///evil.example/x.html",
        "/\\evil.example/x.html",
        "x",
        "/v1/jobs",
        "/a\n.html",
    ],
)
def test_a_login_leads_nowhere_else(pai: Pai, back: str) -> None:
    assert Browser(pai).login(back=back).headers["Location"] == "/index.html"


def test_a_wrong_password_is_told_and_nothing_typed_is_believed(pai: Pai) -> None:
    answer = Browser(pai).login(name=SCRIPT, password="wrong")
    assert answer.status == 400
    assert "Set-Cookie" not in answer.headers
    assert SCRIPT not in answer.data.decode()
    assert b"is wrong" in answer.data


def test_pages_may_load_nothing_run_nothing_and_be_framed_by_nobody(browser: Browser) -> None:
    answer = browser.get("/index.html")
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["Cache-Control"] == "no-store"
    assert "<script" not in answer.data.decode()
    assert "style=" not in answer.data.decode()
    style = browser.get("/portal.css")
    assert style.headers["Content-Type"].startswith("text/css")
    assert b"prefers-color-scheme: dark" in style.data


def test_a_job_says_its_state_its_tasks_and_its_log(pai: Pai, browser: Browser) -> None:
    job = pai.server.run(name="shown", count=2, token=pai.server.token("carl", Scope.WRITE))
    pai.server.say(job, "trainer-0", b"step 1\n" + SCRIPT.encode() + b"\n")
    page = browser.get("/job-detail.html?username=carl&jobName=shown").data.decode()
    for word in ("shown", "RUNNING", "trainer-0", "trainer-1", job, "Stop this job"):
        assert word in page
    log = browser.get("/job-log.html?username=carl&jobName=shown&task=trainer-0").data.decode()
    assert "step 1" in log
    assert SCRIPT not in log
    whole = re.search(r'href="(/log-manager/[^"]+)"', log)
    assert whole
    assert b"step 1" in browser.get(whole[1].replace("&amp;", "&")).data
    assert browser.get("/job-log.html?username=carl&jobName=shown&task=../../x").status == 404
    listed = browser.get("/job-list.html?state=RUNNING&keyword=sho").data.decode()
    assert "shown" in listed
    assert "1 to 1 of 1" in listed


def test_a_job_is_stopped_by_its_own_page_alone(pai: Pai, browser: Browser) -> None:
    job = pai.server.run(name="stopped", token=pai.server.token("carl", Scope.WRITE))
    address = "/job-detail.html?username=carl&jobName=stopped"
    stop = {"username": "carl", "jobName": "stopped"}
    assert browser.post("/job-stop.html", stop).status == 403
    assert browser.post("/job-stop.html", {**stop, "mark": "0" * 64}).status == 403
    mark = browser.mark(address)
    assert browser.post("/job-stop.html", {**stop, "mark": mark}, Origin="https://evil.example").status == 403
    assert browser.post("/job-stop.html", {**stop, "mark": mark}, Sec_Fetch_Site="cross-site").status == 403
    assert pai.server.state(job) == "running"
    assert browser.post("/job-stop.html", {**stop, "mark": mark}).headers["Location"] == address
    pai.server.reaches(job, "killed")
    wait_until(lambda: "STOPPED" in browser.get(address).data.decode(), "the page says so")
    assert "Stop this job" not in browser.get(address).data.decode()


def test_why_a_job_failed_and_what_to_do_stands_on_its_page(pai: Pai) -> None:
    root = Browser(pai)
    pai.server.users.add("boss", Role.ADMIN, PASSWORD, utc_now())
    root.login("boss")
    job = pai.server.run(name="lost", token=pai.server.bob)
    pai.server.finish(job, exit_code=127)
    pai.server.reaches(job, "failed")
    page = root.get("/job-detail.html?username=bob&jobName=lost").data.decode()
    assert "How it ended" in page
    assert "no such command" in page
    assert "<li>" in page


def test_nobody_sees_a_job_of_another(pai: Pai, browser: Browser) -> None:
    pai.server.run(name="hers")
    for path in ("job-detail.html?username=ann&jobName=hers", "job-log.html?username=ann&jobName=hers&task=trainer-0"):
        answer = browser.get(f"/{path}")
        assert answer.status == 404
        assert "Job ann~hers is not found." in answer.data.decode()
    assert "jobName=hers" not in browser.get("/job-list.html?username=ann").data.decode()
    stop = {"username": "ann", "jobName": "hers", "mark": browser.mark()}
    assert browser.post("/job-stop.html", stop).status == 404


@pytest.mark.parametrize("name", [SCRIPT, "a&b", '"><img src=x>', "ünï", "a'b"])
def test_a_name_is_text_wherever_it_stands(pai: Pai, browser: Browser, name: str) -> None:
    job = pai.server.submit(name=name, token=pai.server.token("carl", Scope.WRITE))
    for path in ("/job-list.html", "/index.html", f"/job-detail.html?username=carl&jobName={job}"):
        page = browser.get(path).data.decode()
        assert page.count("<script") == page.count("<img") == 0, path
    assert f"/job-detail.html?username=carl&amp;jobName={job}" in browser.get("/job-list.html").data.decode()


def test_a_job_is_submitted_from_a_page(pai: Pai, browser: Browser) -> None:
    text = (
        "protocolVersion: 2\nname: pasted\ntype: job\nprerequisites: [{name: i, type: dockerimage, uri: u}]\n"
        "taskRoles:\n  main: {dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}, commands: [echo]}\n"
    )
    mark = browser.mark("/submit.html")
    wrong = browser.post("/submit.html", {"mark": mark, "job": f"<b>: {SCRIPT}"})
    assert wrong.status == 400
    assert SCRIPT not in wrong.data.decode()
    assert browser.post("/submit.html", {"job": text}).status == 403
    made = browser.post("/submit.html", {"mark": mark, "job": text})
    assert made.headers["Location"] == "/job-detail.html?username=carl&jobName=pasted"
    page = browser.get(made.headers["Location"]).data.decode()
    assert "As it was written" in page
    assert "main-0" in page


def test_who_logs_out_is_out(browser: Browser) -> None:
    assert browser.post("/logout.html", {}).status == 403
    left = browser.post("/logout.html", {"mark": browser.mark()})
    assert left.status == 303
    assert browser.get("/index.html").status == 303, "the cookie is no good any more, even if it is kept"


@pytest.mark.parametrize("path", ["/job-event.html?username=carl&jobName=x", "/virtual-clusters.html", "/home.html"])
def test_older_addresses_lead_somewhere(browser: Browser, path: str) -> None:
    assert browser.get(path).status in (200, 303)


@pytest.mark.parametrize("query", ["offset=x", "offset=-1", "state=%00", "keyword=%FF", "jobName=" + "x" * 3000])
def test_no_query_makes_a_page_stumble(browser: Browser, query: str) -> None:
    for page in ("/job-list.html", "/job-detail.html", "/job-log.html"):
        assert browser.get(f"{page}?{query}").status < 500


def test_elements_escape_all_but_html() -> None:
    assert tag("a", "<b>", tag("i", "&"), href='"x"') == '<a href="&quot;x&quot;">&lt;b&gt;<i>&amp;</i></a>'
    assert tag("input", type="text", value="", disabled=True, hidden=False) == '<input type="text" value="" disabled>'
    assert join(["<", Html("<br>")]) == "&lt;<br>"
