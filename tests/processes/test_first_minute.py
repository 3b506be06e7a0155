"""The first minute with the real command: a link that is printed, used once, and not printed again."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPCookieProcessor, Request, build_opener, urlopen

from tests.processes.conftest import wait_for
from tests.unmeasured import without_coverage
from tests.web.test_probes import free_port

COMMAND = (sys.executable, "-W", "error", "-m", "fairlane", "--url", "sqlite:///shop.db")
SHOP = """
from fairlane import Fairlane

app = Fairlane("sqlite:///shop.db")

@app.task
def hi() -> None: ...
"""


def run(folder: Path, *words: str, text: str = "") -> str:
    """Run a command to its end, and return what it printed."""
    done = subprocess.run(  # noqa: S603 (our own command)
        [*COMMAND, *words],
        cwd=folder,
        env=without_coverage(),
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@contextmanager
def running(folder: Path, *words: str) -> Iterator[Path]:
    """Run a command beside the test; what it prints is in a file."""
    out, log = folder / "out.txt", folder / "log.txt"
    with out.open("w") as printed, log.open("w") as logged:
        process = subprocess.Popen(  # noqa: S603 (our own command)
            [*COMMAND, *words], cwd=folder, env=without_coverage(), stdout=printed, stderr=logged
        )
        try:
            yield out
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0, log.read_text()


def test_the_printed_link_lets_its_first_user_in_and_nobody_else(tmp_path: Path) -> None:
    """With a user nothing is printed; the store knows no secret in clear."""
    run(tmp_path, "migrate")
    with running(tmp_path, "web", "--port", "0") as out:
        wait_for(lambda: "link=fl_" in out.read_text())
        (link,) = re.findall(r"http://127\.0\.0\.1:\d+/sign-in\?link=fl_\S+", out.read_text())
        place = urlsplit(link)
        url, secret = f"http://{place.netloc}", place.query.partition("=")[2]
        form = urlencode({"link": secret}).encode()

        def use() -> str:
            request = Request(f"{url}/sign-in", form, {"origin": url})  # noqa: S310 (our own server)
            return str(build_opener(HTTPCookieProcessor()).open(request).read())

        assert "<title>Overview" in use()
        try:
            use()
        except HTTPError as error:
            status, page = error.code, error.read().decode()
        assert (status, "was used before" in page) == (403, True)
        with urlopen(f"{url}/readyz") as answer:  # noqa: S310 (our own server)
            assert json.load(answer) == {"status": "ok"}
    assert secret.encode() not in (tmp_path / "shop.db").read_bytes()
    assert "fl_" not in (tmp_path / "log.txt").read_text()
    run(
        tmp_path,
        "users",
        "add",
        "ann",
        "--role",
        "admin",
        "--password-file",
        "-",
        text="correct horse battery\n",
    )
    with running(tmp_path, "web", "--port", "0") as out:
        wait_for(lambda: "the web is served at" in (tmp_path / "log.txt").read_text())
    assert out.read_text() == ""


def test_worker_and_scheduler_answer_probes_by_option(tmp_path: Path) -> None:
    """Together they make an installation that is well; alone neither is."""
    (tmp_path / "shop.py").write_text(SHOP)
    run(tmp_path, "migrate")
    for_worker, for_scheduler = free_port(), free_port()

    def said(port: int, path: str) -> tuple[int, str]:
        try:
            with urlopen(f"http://127.0.0.1:{port}{path}") as answer:
                return answer.status, json.load(answer)["status"]
        except HTTPError as error:
            return error.code, json.load(error)["status"]
        except OSError:
            return 0, ""

    with running(tmp_path, "scheduler", "shop:app", "--health-port", str(for_scheduler)):
        wait_for(lambda: said(for_scheduler, "/readyz") == (200, "ok"))
        assert said(for_scheduler, "/health") == (503, "failing")
        with running(
            tmp_path,
            "worker",
            "shop:app",
            "--no-duties",
            "--processes",
            "0",
            "--health-port",
            str(for_worker),
        ):
            wait_for(lambda: said(for_worker, "/readyz") == (200, "ok"))
            wait_for(lambda: said(for_scheduler, "/health") == (200, "ok"))
            wait_for(lambda: said(for_worker, "/health") == (200, "ok"))
        wait_for(lambda: said(for_scheduler, "/health") == (503, "failing"))
        assert said(for_worker, "/livez") == (0, "")
