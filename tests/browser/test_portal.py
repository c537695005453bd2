"""Every form of every page, filled in and sent by a real browser, whose own headers the server judges."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
import urllib3
from playwright.sync_api import Browser, Page, expect

from tests.flow.lab import Lab

PASSWORD = "correct horse"
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("pages"))
    lab.configure("[clusters.local]\ncpus = 16\nmemory = '32Gi'\npolicy = 'open'\n[jobs]\ngrace = '1s'\n")
    lab.type("up")
    yield lab
    lab.close()


@pytest.fixture
def user(server: Lab) -> str:
    name = f"bao{next(NUMBERS)}"
    server.type("user", "add", name, "--password", stdin=f"{PASSWORD}\n")
    return name


@pytest.fixture
def page(server: Lab, chromium: Browser) -> Iterator[Page]:
    """A page of a browser that nobody has logged in with; what its console complains of fails the test."""
    context = chromium.new_context(base_url=server.server["url"])
    context.set_default_timeout(10_000)
    made = context.new_page()
    complaints: list[str] = []
    made.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    yield made
    context.close()
    # A refused form answers 4xx, which the console tells as well.
    assert [text for text in complaints if "status of 4" not in text] == []


def log_in(page: Page, user: str, password: str = PASSWORD) -> None:
    page.get_by_label("User name").fill(user)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()


def submit(page: Page, text: str) -> None:
    page.get_by_role("link", name="Submit").click()
    page.get_by_label("Job").fill(text)
    page.get_by_role("button", name="Submit").click()


def job_v2(name: str, command: str) -> str:
    return (
        f"protocolVersion: 2\nname: {name}\ntype: job\nprerequisites:\n  - {{name: i, type: dockerimage, uri: any}}\n"
        "taskRoles:\n  main:\n    dockerImage: i\n    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}\n"
        f"    commands:\n      - {command}\n"
    )


def path_of(page: Page) -> str:
    return urlsplit(page.url).path


def test_the_address_of_the_server_alone_is_a_page_and_leads_to_home(page: Page, user: str) -> None:
    page.goto("/")
    assert path_of(page) == "/login.html"
    log_in(page, user, "wrong horse")
    expect(page.get_by_role("alert")).to_have_text("The user name or the password is wrong.")
    expect(page.get_by_label("User name")).to_have_value(user)
    log_in(page, user)
    expect(page.get_by_role("heading", name="Home")).to_be_visible()
    page.goto("/")
    expect(page.get_by_role("heading", name="Home")).to_be_visible()
    assert path_of(page) == "/"


def test_home_shows_the_line_by_which_vs_code_reaches_ones_files(page: Page, user: str, server: Lab) -> None:
    page.goto("/")
    log_in(page, user)
    page.get_by_text("the line", exact=True).click()
    line = page.locator("details pre").inner_text()
    configuration = json.loads(f"{{{line}}}")
    answer = urllib3.request("GET", f"http://{configuration['webhdfs_uri']}/{user}?op=GETFILESTATUS&user.name={user}")
    assert answer.status == 200


def test_a_login_goes_back_to_the_page_that_was_asked_for_and_a_logout_ends_it(page: Page, user: str) -> None:
    page.goto("/submit.html")
    log_in(page, user)
    assert path_of(page) == "/submit.html"
    page.get_by_role("button", name="Log out").click()
    assert path_of(page) == "/login.html"
    page.goto("/job-list.html")
    assert path_of(page) == "/login.html"


def test_a_job_in_yaml_is_submitted_watched_and_stopped(page: Page, user: str) -> None:
    page.goto("/index.html")
    log_in(page, user)
    submit(page, job_v2("stopped_by_hand", "echo begun; sleep 600"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("stopped_by_hand")
    address = page.url
    _reloaded_until(page, "RUNNING")
    page.get_by_role("link", name="log").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Log of main-0")
    page.goto(address)
    page.get_by_role("button", name="Stop this job").click()
    assert page.url == address
    _reloaded_until(page, "STOPPED")
    expect(page.get_by_role("button", name="Stop this job")).to_have_count(0)


def test_a_job_in_json_is_submitted_and_its_log_is_read(page: Page, user: str) -> None:
    role = {"name": "demo", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 64, "gpuNumber": 0, "command": "echo couplet"}
    page.goto("/submit_v1.html")
    log_in(page, user)
    submit(page, json.dumps({"jobName": "in.json", "image": "any", "taskRoles": [role]}))
    expect(page.get_by_role("heading", level=1)).to_contain_text("in.json")
    _reloaded_until(page, "SUCCEEDED")
    page.get_by_role("link", name="log").first.click()
    expect(page.locator("pre")).to_contain_text("couplet")
    page.get_by_role("link", name="the whole log").click()
    expect(page.locator("body")).to_contain_text("couplet")


def test_a_job_that_is_refused_keeps_what_was_typed_and_is_sent_again(page: Page, user: str) -> None:
    page.goto("/submit.html")
    log_in(page, user)
    text = job_v2("typed_again", "echo again")
    submit(page, text.replace("type: job", "typ: job"))
    expect(page.get_by_role("alert")).to_contain_text("type must be job")
    expect(page.get_by_label("Job")).to_have_value(text.replace("type: job", "typ: job"))
    page.get_by_label("Job").fill(text)
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("typed_again")


def test_the_list_of_jobs_is_filtered_by_its_form(page: Page, user: str) -> None:
    page.goto("/index.html")
    log_in(page, user)
    for name, command in (("good", "echo good"), ("poor", "exit 3")):
        submit(page, job_v2(name, command))
        _reloaded_until(page, "SUCCEEDED" if name == "good" else "FAILED")
    page.get_by_role("link", name="Jobs").click()
    expect(page.locator("tbody tr")).to_have_count(2)
    page.get_by_label("State").select_option("FAILED")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.get_by_role("link", name="poor")).to_be_visible()
    expect(page.get_by_label("State")).to_have_value("FAILED")
    page.get_by_label("State").select_option("")
    page.get_by_label("Name or cluster").fill("goo")
    page.get_by_label("User").fill(user)
    page.get_by_role("button", name="Show").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="good").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("good")


def test_a_form_of_another_origin_is_refused(page: Page, user: str, server: Lab) -> None:
    url = server.server["url"]
    form = f'<form method="post" action="{url}/login.html"><input name="username"><button>Win a prize</button></form>'
    page.route("http://prizes.example/", lambda route: route.fulfill(body=form, content_type="text/html"))
    page.goto("http://prizes.example/")
    page.get_by_role("button").click()
    expect(page.get_by_role("heading", name="This was not done")).to_be_visible()
    expect(page.locator("main")).to_contain_text("comes from http://prizes.example")


def _reloaded_until(page: Page, state: str) -> None:
    """The page renews itself every quarter of a minute; a person in a hurry reloads it."""
    for _ in range(600):
        if page.locator("h1 .state").inner_text() == state:
            return
        page.wait_for_timeout(100)
        page.reload()
    pytest.fail(f"never {state}: {page.locator('main').inner_text()[:600]}")
