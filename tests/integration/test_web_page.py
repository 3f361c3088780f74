"""The page of `kernbench web` in Chromium: clicks, brush, filters, themes; its numbers are those of
the run; it logs no error and requests nothing.
"""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from kernbench.explain.records import open_run
from kernbench.explain.web.run_page import run_page
from runtime.model.addresses import AddressMap
from tests.support.browser import browser, missing_browser, open_page
from tests.support.hand_made_runs import a_slot_and_its_credit
from tests.support.run_tables import tables, write_run
from tests.support.web_runs import LINK, write_page_run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing_browser()), reason=missing_browser() or "a browser is here"),
    pytest.mark.xdist_group("chromium"),
]
MODEL = "const model = (name) => Bokeh.documents[0].get_model_by_name(name);"
PLACE = """
const view = Bokeh.index.find_one(model(arguments[0]));
const box = view.canvas_view.el.getBoundingClientRect();
return [box.left + view.frame.x_scale.compute(arguments[1]),
        box.top + view.frame.y_scale.compute(arguments[2])];
"""


@pytest.fixture(scope="module", name="page")
def _page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = write_page_run(tmp_path_factory.mktemp("web") / "run")
    page = directory / "web.html"
    page.write_text(run_page(open_run(directory)))
    return page


@pytest.fixture(scope="module", name="chromium")
def _chromium() -> Generator[Any]:
    with browser() as driver:
        yield driver


@pytest.fixture(name="opened")
def _opened(chromium: Any, page: Path) -> Generator[Any]:
    # What other tests have opened is theirs.
    chromium.get_log("performance")
    open_page(chromium, page)
    yield chromium
    severe = [line for line in chromium.get_log("browser") if line["level"] != "INFO"]
    assert severe == []


def run(driver: Any, script: str, *arguments: object) -> Any:
    return driver.execute_script(MODEL + script, *arguments)


def point(driver: Any, figure: str, x: float, y: float) -> tuple[float, float]:
    run(driver, "Bokeh.index.find_one(model(arguments[0])).el.scrollIntoView()", figure)
    left, top = run(driver, PLACE, figure, x, y)
    return left, top


def mouse(driver: Any, kind: str, x: float, y: float) -> None:
    pressed = 0 if kind == "mouseMoved" else 1
    event = {"type": kind, "x": x, "y": y, "button": "left", "buttons": pressed, "clickCount": 1}
    driver.execute_cdp_cmd("Input.dispatchMouseEvent", event)


def click(driver: Any, figure: str, x: float, y: float) -> None:
    left, top = point(driver, figure, x, y)
    mouse(driver, "mouseMoved", left, top)
    mouse(driver, "mousePressed", left, top)
    mouse(driver, "mouseReleased", left, top)


def wait_for(driver: Any, script: str) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(driver, 20).until(lambda each: run(each, script))


def details(driver: Any) -> str:
    return driver.find_element("id", "details").text


def test_the_page_requests_nothing_else(opened: Any, page: Path) -> None:
    messages = [json.loads(line["message"])["message"] for line in opened.get_log("performance")]
    urls = {
        each["params"]["request"]["url"]
        for each in messages
        if each["method"] == "Network.requestWillBeSent"
        # The first page of the browser is its own.
        and each["params"]["documentURL"].startswith("file:")
    }
    assert {url for url in urls if not url.startswith("data:")} == {page.as_uri()}


def test_a_kernel_with_markup_in_its_name_leaves_the_page_whole(
    chromium: Any, tmp_path: Path
) -> None:
    directory = write_page_run(tmp_path / "run", kernel="<!--<script>")
    page = directory / "web.html"
    page.write_text(run_page(open_run(directory)))
    open_page(chromium, page)
    script = "return JSON.stringify(JSON.parse(document.getElementById('data-json').textContent))"
    assert "<!--<script>" in run(chromium, script)


def test_a_click_on_a_pe_shows_its_counters_and_waits(opened: Any) -> None:
    # PE 0 of cube 0 is at (1, 1) mm; its lower left part has no link above it.
    click(opened, "sip", 0.55, 1.45)
    wait_for(opened, "return document.getElementById('selected').textContent === 'cube0.pe0'")
    text = details(opened)
    assert "pe_dma 2 3.000 6,144 0.300" in text
    assert "pe_gemm 1 2.000 2,048 0.500" in text
    assert "dot engine 1 2.000 k.py:4" in text
    # The timeline has its engines: kernels, the two engines and two causes of waits.
    rows = run(opened, "return model('bars').data.row")
    assert set(rows) - {"critical path"} == {
        "kernels",
        "pe_gemm",
        "pe_dma",
        "waits for engine",
        "waits for operand",
    }


def test_a_click_on_a_link_shows_the_sums_of_its_rows(opened: Any) -> None:
    x0, x1, y0, y1 = run(
        opened,
        "const at = model('links').data.name.indexOf(arguments[0]), d = model('links').data;"
        "return [d.x0[at], d.x1[at], d.y0[at], d.y1[at]]",
        LINK,
    )
    click(opened, "sip", (x0 + x1) / 2, (y0 + y1) / 2)
    script = f"return document.getElementById('selected').textContent === '{LINK}'"
    wait_for(opened, script)
    text = details(opened)
    # Busy for 1,000 + 512 + 64 ps of 8,192 ps; 868 B in 4 packets; queued for 35 ps.
    assert "busy, ns 1.576 1.576" in text
    assert "busy 19.24 % 19.24 %" in text
    assert "bytes 868 868" in text
    assert "packets 4 4" in text
    assert "queued, ns 0.035 0.035" in text
    assert "pe_dma load 1 0.300" in text


def test_the_details_are_whole_and_words_are_not_broken(opened: Any) -> None:
    click(opened, "sip", 0.55, 1.45)
    wait_for(opened, "return document.getElementById('selected').textContent === 'cube0.pe0'")
    height = "const each = document.getElementById('details');"
    assert run(opened, f"{height} return each.scrollHeight - each.clientHeight") == 0
    line = "[...document.querySelectorAll('#details td')].find((td) => td.textContent === 'engine')"
    # One line of text, whose height is that of a number beside it.
    heights = f"const cell = {line}; return [cell, cell.nextSibling].map((td) => td.clientHeight)"
    word, number = run(opened, heights)
    assert word == number


def test_a_click_on_the_host_shows_its_streams(opened: Any) -> None:
    x, y = run(
        opened,
        "const d = model('boxes').data, at = d.name.indexOf('host'); return [d.x[at], d.y[at]]",
    )
    click(opened, "sip", x, y)
    wait_for(opened, "return document.getElementById('selected').textContent === 'host'")
    # Two commands: from 0 to 500 ps, and behind it from 500 to 2,000 ps.
    assert "stream 0 2 2.000" in details(opened)
    assert "waits in stream 0 1 0.400" in details(opened)
    assert {"stream 0", "waits in stream 0"} <= set(run(opened, "return model('bars').data.row"))


def test_the_routes_of_the_critical_path_are_outlined_on_both_maps(
    chromium: Any, tmp_path: Path
) -> None:
    topology = open_run(write_run(tmp_path / "empty", [tables()] * 2, 0)).topology
    slot = AddressMap(topology).pe_tcm_addr(1, 0, 0, 0)
    records = open_run(write_run(tmp_path / "run", a_slot_and_its_credit(slot), 1000))
    page = tmp_path / "web.html"
    page.write_text(run_page(records))
    open_page(chromium, page)
    outlined = (
        "const d = model(arguments[1]).data, o = model(arguments[0]).data;"
        "return d.name.filter((_, at) =>"
        "  o.x0.some((x, row) => x === d.x0[at] && o.y0[row] === d.y0[at] &&"
        "    o.x1[row] === d.x1[at] && o.y1[row] === d.y1[at]))"
    )
    # Slots go there, credits come back.
    links = set(run(chromium, outlined, "path_sip_links", "sip_links"))
    assert links == {"SIP 0 -> SIP 1", "SIP 1 -> SIP 0"}
    inside = set(run(chromium, outlined, "path_links", "links"))
    assert {"cube0.pe0->cube0.router.r0c0", "cube0.router.r0c0->cube0.pe0"} <= inside
    assert not any(name.startswith("cube0.pe1") for name in inside)
    chromium.find_element("id", "show-path").click()
    assert run(chromium, outlined, "path_sip_links", "sip_links") == []


def test_the_details_follow_the_sip_and_the_interval(opened: Any) -> None:
    from selenium.webdriver.support.ui import Select

    run(opened, "choose('links', model('links').data.name.indexOf(arguments[0]))", LINK)
    assert "SIP 0" in details(opened)
    # Only the second bin: 512 ps of 1,024, 512 B in 2 packets.
    run(opened, "model('interval').setv({start: 1.1, end: 2.0})")
    wait_for(opened, "return document.getElementById('details').textContent.includes('50.00 %')")
    assert "bytes 512 868" in details(opened)
    assert "packets 2 4" in details(opened)
    Select(opened.find_element("id", "sip")).select_by_visible_text("1")
    # SIP 1 has no loads.
    assert "SIP 1" in details(opened)
    assert "bytes 0 0" in details(opened)
    opened.find_element("id", "whole").click()


def test_a_busy_channel_chooses_its_slice_by_mouse_and_by_keyboard(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    rows = opened.find_elements("css selector", "#busiest tbody tr")
    names = [row.find_element("css selector", "td").text for row in rows]
    assert set(names) == {LINK, "cube0.pe0.hbm_ctrl.pc0", "ucie.sip1"}
    # The port between SIPs is on no map of a SIP.
    assert rows[names.index("ucie.sip1")].get_attribute("class") == ""
    selected = "return document.getElementById('selected').textContent"
    rows[names.index("cube0.pe0.hbm_ctrl.pc0")].send_keys(Keys.ENTER)
    assert run(opened, selected) == "cube0.pe0.hbm_ctrl"
    rows = opened.find_elements("css selector", "#busiest tbody tr")
    rows[names.index(LINK)].click()
    assert run(opened, selected) == LINK


def test_a_name_in_the_field_selects_what_it_names(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    field = opened.find_element("id", "find")
    field.send_keys("cube0.pe0", Keys.ENTER)
    wait_for(opened, "return document.getElementById('selected').textContent === 'cube0.pe0'")
    assert "pe_gemm 1 2.000 2,048 0.500" in details(opened)
    assert run(opened, "return model('timeline').title.text") == "Timeline of cube0.pe0 of SIP 0"
    # A link has no rows of its own: the timeline has those of the SIP.
    field.clear()
    field.send_keys(LINK, Keys.ENTER)
    rows = "return document.getElementById('rows').value"
    assert run(opened, rows) == "engines"
    field.clear()
    field.send_keys("absent", Keys.ENTER)
    assert run(opened, "return document.getElementById('selected').textContent") == LINK


def test_rows_of_a_component_are_empty_until_one_is_selected(opened: Any) -> None:
    from selenium.webdriver.support.ui import Select

    Select(opened.find_element("id", "rows")).select_by_visible_text("selected component")
    assert set(run(opened, "return model('bars').data.row")) == {"critical path"}
    title = "return model('timeline').title.text"
    assert run(opened, title) == "Timeline: no component is selected"


def test_an_interval_has_the_loads_of_its_bins_alone(opened: Any) -> None:
    run(opened, "model('interval').setv({start: 1.1, end: 2.0})")
    busy = "const d = model('links').data; return d.busy[d.name.indexOf(arguments[0])]"
    wait_for(opened, "return document.getElementById('interval').textContent.includes('2.048')")
    # Only the second bin: busy for 512 of 1,024 ps.
    assert run(opened, busy, LINK) == 50.0
    opened.find_element("id", "whole").click()
    wait_for(opened, "return document.getElementById('interval').textContent.includes('8.192')")
    assert run(opened, busy, LINK) == pytest.approx(100 * 1576 / 8192)


def test_the_brush_is_moved_by_the_mouse(opened: Any) -> None:
    run(opened, "model('interval').setv({start: 2, end: 4})")
    left, top = point(opened, "loads", 3, 50)
    right, _ = point(opened, "loads", 5, 50)
    mouse(opened, "mouseMoved", left, top)
    mouse(opened, "mousePressed", left, top)
    for step in range(1, 6):
        event = {"type": "mouseMoved", "x": left + (right - left) * step / 5, "y": top}
        opened.execute_cdp_cmd("Input.dispatchMouseEvent", event | {"button": "left", "buttons": 1})
    mouse(opened, "mouseReleased", right, top)
    wait_for(opened, "return model('interval').start > 3.5")
    start, end = run(opened, "return [model('interval').start, model('interval').end]")
    assert (start, end) == (pytest.approx(4, abs=0.1), pytest.approx(6, abs=0.1))


def test_filters_choose_the_sip_and_the_engine(opened: Any) -> None:
    from selenium.webdriver.support.ui import Select

    Select(opened.find_element("id", "engine")).select_by_visible_text("pe_dma")
    rows = "return [...new Set(model('bars').data.row)]"
    assert run(opened, rows) == ["critical path", "pe_dma"]
    Select(opened.find_element("id", "engine")).select_by_visible_text("all")
    Select(opened.find_element("id", "sip")).select_by_visible_text("1")
    assert run(opened, rows) == ["critical path", "kernels", "host"]
    # SIP 1 has no loads.
    assert run(opened, "return Math.max(...model('links').data.busy)") == 0
    opened.find_element("id", "show-path").click()
    assert run(opened, rows) == ["kernels", "host"]


def test_the_theme_is_that_of_the_system_until_it_is_switched(opened: Any, page: Path) -> None:
    theme = "return document.documentElement.dataset.theme"
    colour = "return model('sip').title.text_color"
    assert (run(opened, theme), run(opened, colour)) == ("light", "#1b1f24")
    open_page(opened, page, dark=True)
    assert (run(opened, theme), run(opened, colour)) == ("dark", "#e6edf3")
    opened.find_element("id", "theme").click()
    assert (run(opened, theme), run(opened, colour)) == ("light", "#1b1f24")


def test_nothing_is_wider_than_the_window(opened: Any, page: Path) -> None:
    for width in (390, 1280, 1920):
        # A window of Chromium cannot be as narrow as a telephone.
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        open_page(opened, page)
        width_px = run(opened, "return document.documentElement.scrollWidth")
        assert width_px <= width
    opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
