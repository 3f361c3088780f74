"""Makes the screenshots of `docs/web.md` from the directory of a run.

    python -m tests.renew_screenshots RUN docs/screenshots

It needs Chromium and Selenium. PNG files have a palette of 160 colours, so that they stay small.
"""

import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kernbench.explain.records import open_run
from kernbench.explain.web.run_page import run_page
from runtime.core.errors import UsageError
from tests.support.browser import browser, missing_browser, open_page

WIDTHS = (1280, 1920)
COLOURS = 160
_SELECT = """
const model = (name) => Bokeh.documents[0].get_model_by_name(name);
const path = model("path_boxes").data, boxes = model("boxes").data;
// A PE of the critical path; without one, PE 0 of the last cube.
const at = boxes.name.findIndex((_, row) => boxes.kind[row] === "PE" &&
  path.x.length && boxes.x[row] === path.x[0] && boxes.y[row] === path.y[0]);
model("boxes").selected.indices = [at < 0 ? boxes.kind.lastIndexOf("PE") : at];
"""
_DRAWN = """
const done = arguments[0];
requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 500)));
"""


def main(arguments: list[str]) -> int:
    """Write `web_<width>_<theme>.png` for both widths and themes."""
    if len(arguments) != 2:
        raise UsageError(
            "renew_screenshots: expected the directory of a run and one for the figures"
        )
    if missing := missing_browser():
        raise UsageError(f"renew_screenshots: {missing}")
    run, figures = map(Path, arguments)
    with TemporaryDirectory() as directory:
        page = Path(directory) / "web.html"
        page.write_text(run_page(open_run(run)), encoding="utf-8")
        for width in WIDTHS:
            with browser(width) as driver:
                for dark in (False, True):
                    open_page(driver, page, dark=dark)
                    name = f"web_{width}_{'dark' if dark else 'light'}.png"
                    write_picture(figures / name, _screenshot(driver, width))
    return 0


def _screenshot(driver: Any, width: int) -> bytes:
    """The whole page, with a PE selected."""
    driver.execute_script(_SELECT)
    height = driver.execute_script("return document.documentElement.scrollHeight")
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.execute_async_script(_DRAWN)
    image: bytes = driver.get_screenshot_as_png()
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    return image


def write_picture(path: Path, image: bytes) -> None:
    """Write a PNG file with a small palette, and print its size."""
    # Bokeh itself needs Pillow.
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(BytesIO(image)) as opened:
        opened.convert("RGB").quantize(COLOURS).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size:,} B")


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except UsageError as error:
        sys.exit(str(error))
