"""A report in headless Chromium: its headings, what it fetches, how it looks."""

import html
import json
import re
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import revelu
from conftest import PATIENCE_SECONDS
from revelu.cli.exit_codes import ExitCode

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium: apt-get install chromium"),
]

# Without a sandbox it runs as root, too; it opens our own page alone.
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--virtual-time-budget=2000",
]
WIDTH, HEIGHT = 1000, 2400
NARROW = 390


class Recorder(ThreadingHTTPServer):
    """A proxy for everything that a browser fetches; it serves one page, and writes down all."""

    daemon_threads = True

    def __init__(self, page):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.page, self.asked = page, []


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        """Be quiet."""

    def do_GET(self):
        self.server.asked.append(self.path)
        known = self.path.endswith("/report.html")
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        if known:
            self.wfile.write(self.server.page)

    def do_CONNECT(self):
        self.server.asked.append(self.path)
        self.send_error(502)


def browse(page, folder, *flags):
    """Open a page; return what was printed, and what it fetched from this test's hosts."""
    server = Recorder(page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        proxy = f"--proxy-server=http://127.0.0.1:{server.server_address[1]}"
        done = subprocess.run(
            [
                BROWSER,
                *FLAGS,
                f"--user-data-dir={folder / 'profile'}",
                proxy,
                *flags,
                "http://page.test/report.html",
            ],
            capture_output=True,
            timeout=PATIENCE_SECONDS,
            check=True,
            cwd=folder,
        )
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    # What the browser asks its maker is none of the page's.
    ours = [path for path in server.asked if ".test" in path]
    return done.stdout.decode(), ours


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("browser")


@pytest.fixture(scope="module")
def report(folder):
    """The page of an audit."""
    revelu.zoo.random_network([64, 3, 3], seed=3).save(folder / "truth.npz")
    from conftest import COMMAND

    done = subprocess.run(
        [*COMMAND, "audit", "truth.npz", "--max-seconds", "60", "--report", "report.html"],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode in {ExitCode.CERTIFIED, ExitCode.EXHAUSTED}, done.stderr
    return (folder / "report.html").read_bytes()


def test_headings_are_there_and_nothing_is_fetched(report, folder):
    dom, fetched = browse(report, folder, "--dump-dom")
    for heading in ("What each kind of answers gives away", "Advice", "Pictures", "Ledger"):
        assert f"{heading}</h2>" in dom
    assert "Critical: gives away its weights" in dom
    assert "a thief needs" in dom
    assert "</svg>" in dom
    assert fetched == ["http://page.test/report.html"]


def test_the_recorder_sees_what_is_fetched(folder):
    page = b'<html><body><img src="http://elsewhere.test/a.png"></body></html>'
    fetched = browse(page, folder, "--dump-dom")[1]
    assert "http://elsewhere.test/a.png" in fetched


def test_the_pages_own_policy_stops_what_would_be_fetched(report, folder):
    smuggled = b'<img src="http://elsewhere.test/a.png"><script>document.title = "run"</script>'
    page = report.replace(b"</main>", smuggled + b"</main>")
    assert page != report
    dom, fetched = browse(page, folder, "--dump-dom")
    assert fetched == ["http://page.test/report.html"]
    assert "<title>run</title>" not in dom


@pytest.mark.parametrize("dark", [False, True])
def test_screenshots_are_pictures_of_the_page(report, folder, dark):
    from matplotlib.image import imread

    path = folder / f"{'dark' if dark else 'light'}.png"
    scheme = "--blink-settings=preferredColorScheme=" + ("0" if dark else "1")
    browse(report, folder, f"--screenshot={path}", f"--window-size={WIDTH},{HEIGHT}", scheme)
    picture = imread(path)[..., :3]
    assert picture.shape == (HEIGHT, WIDTH, 3)
    # The margin is paper, and a good part of the page is not.
    margin, grey = picture[:, :10].mean(), picture.mean(axis=2)
    assert margin < 0.2 if dark else margin > 0.9
    drawn = np.abs(grey - margin) > 0.05
    assert 0.03 < drawn.mean() < 0.6
    assert drawn.any(axis=1).mean() > 0.4


def test_it_is_read_on_a_telephone(report, folder):
    from matplotlib.image import imread

    path = folder / "narrow.png"
    browse(report, folder, f"--screenshot={path}", f"--window-size={NARROW},{HEIGHT}")
    picture = imread(path)[..., :3]
    assert picture.shape == (HEIGHT, NARROW, 3)
    # What is too wide would reach the edge, which is paper.
    margin = picture[:, :4].mean(axis=(0, 1))
    assert np.abs(picture[:, -4:] - margin).max() < 0.02
    assert (np.abs(picture.mean(axis=2) - margin.mean()) > 0.05).any(axis=1).mean() > 0.4


def test_it_prints_on_a4(report, folder):
    browse(report, folder, f"--print-to-pdf={folder / 'page.pdf'}", "--no-pdf-header-footer")
    printed = (folder / "page.pdf").read_bytes()
    assert printed.startswith(b"%PDF")
    sizes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", printed)
    assert {(round(float(w)), round(float(h))) for w, h in sizes} == {(595, 842)}


def measured(report, folder, script, *flags):
    """What a script finds on a page whose policy lets it run."""
    page = re.sub(rb'<meta http-equiv="Content-Security-Policy"[^>]*>', b"", report)
    assert page != report
    told = f"<script>document.title = JSON.stringify({script})</script></body>".encode()
    dom = browse(page.replace(b"</body>", told), folder, "--dump-dom", *flags)[0]
    return json.loads(html.unescape(re.search(r"<title>(.*?)</title>", dom, re.DOTALL)[1]))


def test_no_plot_is_cut_and_captions_are_lines_on_a_telephone(report, folder):
    script = """{
        width: innerWidth,
        plots: [...document.querySelectorAll('figure svg')].filter(x => x.checkVisibility())
            .map(x => x.getBoundingClientRect().right - x.closest('figure')
                .getBoundingClientRect().right),
        scrolled: [...document.querySelectorAll('figure div')]
            .map(x => x.scrollWidth - x.clientWidth),
        caption: document.querySelector('section[aria-labelledby=ledger] caption')
            .getBoundingClientRect().height}"""
    found = measured(report, folder, script, f"--window-size={NARROW},{HEIGHT}")
    assert found["width"] <= 500
    assert found["plots"]
    assert max(found["plots"]) <= 0
    assert max(found["scrolled"]) <= 0
    # Two lines of 1.55 times 15 pixels, and the space below.
    assert found["caption"] < 70


def test_folds_are_left_out_on_paper_and_said_to_be(report, folder):
    printed = report.replace(b"@media print", b"@media screen")
    assert printed != report
    script = """{
        folds: [...document.querySelectorAll('details, summary, .fold')]
            .map(x => x.getBoundingClientRect().height),
        said: document.querySelector('.paper').getBoundingClientRect().height}"""
    found = measured(printed, folder, script)
    assert found["folds"]
    assert max(found["folds"]) == 0
    assert found["said"] > 0
    assert measured(report, folder, script)["said"] == 0
