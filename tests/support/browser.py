"""Opens a page in Chromium without a screen, for tests and screenshots.

Chromium runs with its own empty profile and makes no connection of its own; the page is a file.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any

CHROMIUM, DRIVER = "chromium", "chromedriver"
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
)
READY_S = 60


def missing_browser() -> str:
    """Why no browser can be driven on this machine; empty if one can."""
    missing = [name for name in (CHROMIUM, DRIVER) if which(name) is None]
    return f"{' and '.join(missing)} not found on this machine" if missing else ""


@contextmanager
def browser(width: int = 1280, height: int = 900) -> Generator[Any]:
    """A driver of Selenium for a window of this size, closed at the end."""
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    with TemporaryDirectory(prefix="kernbench-chromium-") as profile:
        options = ChromeOptions()
        options.binary_location = which(CHROMIUM) or CHROMIUM
        for flag in (*_FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver: Any = Chrome(options=options, service=ChromeService(which(DRIVER)))
        try:
            yield driver
        finally:
            driver.quit()


def open_page(driver: Any, path: Path, *, dark: bool = False) -> None:
    """Load the page and wait until its figures are drawn."""
    from selenium.webdriver.support.ui import WebDriverWait

    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    driver.get(path.resolve().as_uri())
    WebDriverWait(driver, READY_S).until(
        lambda each: each.execute_script("return document.body.dataset.ready") == "yes"
    )
