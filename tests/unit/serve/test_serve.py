"""The page of a run that goes on: what it shows, whom it answers, and the one act that it can start."""

from __future__ import annotations

import json
import re
import sys
import threading
import urllib.request
from pathlib import Path

import pytest
import uvicorn
from starlette.testclient import TestClient

from orchestrator.schema.adapter import Claim, EngineIdentity, Rule
from orchestrator.schema.cell import (
    Cell,
    EngineConfig,
    EosPolicy,
    Method,
    MethodKind,
    ModelConfig,
    Sampling,
    Workload,
)
from orchestrator.schema.errors import SpecmatrixError, StoreError
from orchestrator.schema.record import (
    SCHEMA_VERSION,
    AttemptRecord,
    Engagement,
    MatrixRecord,
    Place,
    RunHeader,
    SessionRecord,
    SetRecord,
)
from orchestrator.schema.status import Status
from orchestrator.serve import server
from orchestrator.serve.app import make_app
from orchestrator.serve.guard import loopback
from orchestrator.store.directory import RunDirectory
from orchestrator.store.running import RUNNING, Running, announced, own_pid, running_now

PORT = 4711
BASE = f"http://127.0.0.1:{PORT}"
UTC = "2026-11-29T10:00:{:02d}.000Z"
GREEDY = Sampling("greedy", 0.0, 7, 0, 1.0, 0.0, 1.0, 0.0, 0.0)
HOSTILE = "<script>alert(1)</script>\u202e\x1b[31m"
CHILD = """\
import sys
print("would measure", sys.argv[1:], file=sys.stderr)
sys.stdin.read()
sys.exit(3)
"""
"""Stands in for ``specmatrix rerun``: it says its arguments and waits until its input is closed."""


def cells():
    engine, model = EngineConfig("e", "fake"), ModelConfig("m", "/models/m")
    short = Workload("short", "demo-short", 16, EosPolicy.STOP)
    methods = (Method("none", MethodKind.NONE), Method("draft-k4", MethodKind.DRAFT, 4, "d"))
    return tuple(Cell(engine, model, method, GREEDY, short) for method in methods)


@pytest.fixture
def run(tmp_path):
    """A run of two cells with one of two sets done."""
    path = tmp_path / "reports" / "r1"
    (tmp_path / "matrix.yaml").write_text("version: 1\n", encoding="utf-8")
    header = RunHeader(
        SCHEMA_VERSION, "0", "r1", UTC.format(0), str(tmp_path / "matrix.yaml"), "", {}, "specmatrix run", {}
    )
    directory = RunDirectory.create(path, header)
    base, draft = cells()
    rows = [
        {
            "id": cell.id,
            "fingerprint": f"{number:016d}",
            "block": cell.block_id,
            "role": cell.role.value,
            "baseline": base.id,
            "settings": cell.settings() | {"workload": {"name": "short"}},
        }
        for number, cell in enumerate((base, draft))
    ]
    prints = {row["id"]: row["fingerprint"] for row in rows}
    claims = {cell.id: Claim(Rule.GREEDY_MATCH, True, "test") for cell in (base, draft)}
    with directory.lock():
        directory.append(
            MatrixRecord("", tuple(rows), {"e": EngineIdentity()}, claims, {"language": "en"}, UTC.format(1))
        )
        directory.append(AttemptRecord(base.block_id, 1, prints, 2, 1, "abba", 1, UTC.format(2)))
        for order, cell in enumerate((base, draft)):
            directory.append(session(cell, prints[cell.id], 0, order))
        directory.append(SetRecord(base.block_id, 1, 0, 0, prints, UTC.format(9)))
    return directory


def session(cell, fingerprint, set_index, order, status=Status.OK, reason=""):
    place = Place(cell.id, fingerprint, cell.block_id, 1, set_index, 0, order)
    return SessionRecord(
        place, status, reason, "", Engagement.OFF, (), (), 0, "cells/x", (), UTC.format(3), UTC.format(5)
    )


def client_of(directory, **options):
    site = server.make_site(directory, PORT, None, options.pop("language", "en"))
    child = Path(directory.path.parent.parent / "child.py")
    child.write_text(CHILD, encoding="utf-8")
    site.rerunner.command = (sys.executable, str(child))
    return site, TestClient(make_app(site), base_url=options.pop("base_url", BASE), follow_redirects=False)


@pytest.fixture
def site_and_client(run):
    site, client = client_of(run)
    with client:
        yield site, client


def form(site, cell, **changes):
    return {"token": site.gate.token, "cell": cell} | changes


DRAFT = "e/m/draft-k4/greedy/short"


def test_the_page_shows_progress_cells_and_files_without_a_script(site_and_client, run):
    _, client = site_and_client
    (run.path / "report.html").write_text("<p>report</p>", encoding="utf-8")
    page = client.get("/").text
    assert "2 of 4 sessions" in page
    assert "Nothing is being measured now" in page
    assert page.count("measure again</a>") == 2
    assert 'href="report.html"' in page
    assert re.search(r'<noscript><meta http-equiv="refresh"', page)
    assert "http" not in re.sub(r"http-equiv", "", page)
    assert client.get("/report.html").text == "<p>report</p>"


def test_a_run_that_goes_on_is_followed_and_offers_no_button(site_and_client, run):
    _, client = site_and_client
    with run.lock():
        page = client.get("/live")
        assert "Being measured by process" in page.text
        assert "being measured" in page.text
        assert "about 4.00" in page.text.replace("\u00a0", " ")
        assert "measure again</a>" not in page.text
        same = client.get("/live", headers={"If-None-Match": page.headers["etag"]})
        assert same.status_code == 304
        run.append(session(cells()[0], f"{0:016d}", 1, 0, Status.FAILED, HOSTILE))
        after = client.get("/live", headers={"If-None-Match": page.headers["etag"]})
    assert after.status_code == 200
    assert "&lt;script&gt;" in after.text
    assert "<script>" not in after.text
    assert "\u202e" not in after.text
    assert "\x1b" not in after.text


def test_a_line_that_is_still_being_written_waits(site_and_client, run):
    _, client = site_and_client
    journal = run.path / "journal.jsonl"
    before = client.get("/live").headers["etag"]
    with journal.open("a", encoding="utf-8") as file:
        file.write('{"place": {"ce')
    assert client.get("/live").headers["etag"] == before


@pytest.mark.parametrize("path", ["/", "/live", "/rerun?cell=x", "/nothing", "/../run.json"])
def test_every_answer_carries_the_headers_and_no_cors(site_and_client, path):
    _, client = site_and_client
    answer = client.get(path, headers={"Origin": "http://evil.example"})
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", ""])
def test_a_foreign_host_name_is_refused(site_and_client, host):
    site, client = site_and_client
    for answer in (
        client.get("/", headers={"Host": host}),
        client.post("/rerun", headers={"Host": host}, data=form(site, DRAFT)),
    ):
        assert answer.status_code == 421
        assert "specmatrix" not in answer.text
    assert site.rerunner.job is None


@pytest.mark.parametrize("name", ["localhost", "[::1]"])
def test_other_names_of_this_machine_are_answered(run, name):
    _, client = client_of(run, base_url=f"http://{name}:{PORT}")
    assert client.get("/").status_code == 200


@pytest.mark.parametrize("name", ["run.lock", "..%2fmatrix.yaml", "cells", "%2e%2e", "run.json%00", ".specmatrix"])
def test_only_the_named_files_are_served(site_and_client, name):
    _, client = site_and_client
    assert client.get(f"/{name}").status_code == 404
    assert client.get("/run.json").status_code == 200
    assert client.get("/journal.jsonl").headers["content-type"].startswith("text/plain")


def test_measuring_again_asks_first_and_starts_one_child_with_the_cell_as_one_argument(site_and_client, run):
    site, client = site_and_client
    asked = client.get("/rerun", params={"cell": DRAFT})
    assert "Measure this cell again?" in asked.text
    token = re.search(r'name="token" value="([^"]+)"', asked.text)[1]
    assert site.rerunner.job is None
    done = client.post("/rerun", data={"token": token, "cell": DRAFT}, headers={"Origin": BASE})
    assert (done.status_code, done.headers["location"]) == (303, "/")
    assert site.rerunner.job.running
    assert "is being measured again" in client.get("/live").text
    second = client.post("/rerun", data=form(site, "e/m/none/greedy/short"))
    assert second.status_code == 409
    assert "wait for its end" in second.text
    process = site.rerunner._process
    process._close_stdin()
    assert process.wait(60) == 3
    page = client.get("/live").text
    assert "ended with exit status 3" in page
    launched = json.loads((site.rerunner.scratch / "launch.json").read_text(encoding="utf-8"))["argv"]
    assert launched[2:4] == ["rerun", "--matrix"]
    assert launched[-3:] == [str(run.path.resolve()), "--", DRAFT]


@pytest.mark.parametrize(
    ("changes", "headers", "status"),
    [
        ({"token": ""}, {}, 403),
        ({"token": "guessed"}, {}, 403),
        ({}, {"Origin": "http://evil.example"}, 403),
        ({}, {"Origin": "null"}, 403),
        ({}, {"Origin": "http://127.0.0.1:1"}, 403),
        ({}, {"Sec-Fetch-Site": "cross-site"}, 403),
        ({"cell": "e/m/none/greedy/other"}, {}, 404),
        ({"cell": "--failed"}, {}, 404),
        ({"cell": "*"}, {}, 404),
        ({"cell": ""}, {}, 404),
        ({"more": "x" * 20_000}, {}, 403),
    ],
)
def test_a_form_that_is_not_ours_or_names_no_cell_starts_nothing(site_and_client, changes, headers, status):
    site, client = site_and_client
    answer = client.post("/rerun", data=form(site, DRAFT) | changes, headers=headers)
    assert answer.status_code == status
    assert "Not started" in answer.text
    assert site.rerunner.job is None


def test_nothing_is_started_by_a_link(site_and_client):
    site, client = site_and_client
    assert client.get("/rerun", params=form(site, DRAFT)).status_code == 200
    assert client.put("/rerun").status_code == 405
    assert site.rerunner.job is None


def test_nothing_is_started_while_the_run_is_in_use_or_without_its_matrix(site_and_client, run):
    site, client = site_and_client
    with run.lock():
        assert "in use by process" in client.post("/rerun", data=form(site, DRAFT)).text
    site.rerunner.matrix = run.path / "gone.yaml"
    answer = client.post("/rerun", data=form(site, DRAFT))
    assert answer.status_code == 409
    assert "gone.yaml" in answer.text
    assert site.rerunner.job is None


def test_the_end_of_the_server_ends_the_child(run):
    site, client = client_of(run)
    with client:
        client.post("/rerun", data=form(site, DRAFT))
        process = site.rerunner._process
        assert process.poll() is None
    assert process.poll() is not None


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.2", "::", "example.org", ""])
def test_no_other_address_than_this_machines_is_served(run, host):
    with pytest.raises(SpecmatrixError, match="only this machine"):
        server.serve(run, host=host, port=0, matrix=None, language=None, say=print)


def test_loopback_addresses_are_taken():
    assert [loopback(host) for host in ("127.0.0.1", "localhost", "::1")] == ["127.0.0.1", "127.0.0.1", "::1"]


def test_without_the_extra_the_instruction_is_exact(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(SpecmatrixError, match=re.escape("pip install 'specmatrix[serve]'")):
        server.serve(run, host="127.0.0.1", port=0, matrix=None, language=None, say=print)


def test_a_taken_port_is_said(run):
    with server._listen("127.0.0.1", 0) as taken, pytest.raises(StoreError, match="leave --port out"):
        server.serve(run, host="127.0.0.1", port=taken.getsockname()[1], matrix=None, language=None, say=print)


def test_a_real_server_answers_on_the_address_that_it_printed(run, monkeypatch):
    told, servers = threading.Event(), []
    said = []
    real = uvicorn.Server.run

    def keep(self, sockets=None):
        servers.append(self)
        real(self, sockets=sockets)

    monkeypatch.setattr(uvicorn.Server, "run", keep)

    def say(text):
        said.append(text)
        told.set()

    thread = threading.Thread(
        target=server.serve,
        args=(run,),
        kwargs={"host": "127.0.0.1", "port": 0, "matrix": None, "language": "en", "say": say},
    )
    thread.start()
    try:
        assert told.wait(60)
        with urllib.request.urlopen(said[0], timeout=60) as answer:  # noqa: S310  (our own loopback address)
            assert answer.status == 200
            assert "server" not in answer.headers
            assert "2 of 4 sessions" in answer.read().decode()
    finally:
        servers[0].should_exit = True
        thread.join(60)
    assert not thread.is_alive()


def test_sessions_of_an_unfinished_set_count_as_done_and_a_failed_cell_has_none_left(site_and_client, run):
    site, _ = site_and_client
    base, draft = cells()
    with run.lock():
        run.append(session(base, f"{0:016d}", 1, 0))
        shot = site.watcher.look()
        assert (shot.done, shot.planned) == (3, 4)
        assert shot.left_s == pytest.approx(2.0)
        run.append(session(draft, f"{1:016d}", 1, 1, Status.FAILED, "it ended"))
        shot = site.watcher.look()
        assert (shot.done, shot.planned, shot.left_s) == (4, 4, None)
    assert [one.place.cell for one in shot.latest[:2]] == [draft.id, base.id]


def test_the_korean_page_is_korean_and_says_so(run):
    _, client = client_of(run, language="ko")
    page = client.get("/").text
    assert '<html lang="ko">' in page
    assert "지금은 아무것도 측정하지 않는다" in page


def now_of(pid: int, cell: str) -> Running:
    return Running(pid, cell, 2, 1, 4, 6, "2026-11-29T10:00:31.000Z")


def test_the_page_says_which_session_runs_now(run):
    draft = cells()[1]
    _, client = client_of(run)
    with client:
        with run.lock(), announced(run.path, now_of(own_pid(), draft.id)):
            text = client.get("/live").text
            assert (
                f"Now: {draft.id} · set 2 of 4 · 6 requests, warm-up included · since 10:00:31 UTC · attempt 2" in text
            )
            assert text.count("running now") == 1
        assert not (run.path / RUNNING).exists()
        assert "Now:" not in client.get("/live").text


def test_what_a_dead_process_left_behind_is_not_shown(run):
    """Without a holder nothing runs; with another holder the file is not its own; a torn file says nothing."""
    draft = cells()[1]
    with announced(run.path, now_of(own_pid() + 1, draft.id)):
        assert running_now(run.path, None) is None
        assert running_now(run.path, own_pid()) is None
        assert running_now(run.path, own_pid() + 1) == now_of(own_pid() + 1, draft.id)
        for torn in ("", "{", "[]", '{"pid": 1}', '{"pid": 1, "cell": 2, "attempt": 1, "set_index": 0, '
                     '"planned_sets": 1, "requests": 1, "since_utc": "x"}'):  # fmt: skip
            (run.path / RUNNING).write_text(torn, encoding="utf-8")
            assert running_now(run.path, 1) is None
