// The behaviour of the page: the theme, the chosen SIP, the interval, and what a click shows.
// Bokeh draws; this file moves numbers from the data of the page into the sources of its figures.
"use strict";

const page = JSON.parse(document.getElementById("data-json").textContent);
const element = (id) => document.getElementById(id);

// --- themes: colours of all texts and lines that Bokeh draws on its canvases ---

const THEMES = {
  light: {text: "#1b1f24", soft: "#57606a", line: "#d0d7de"},
  dark: {text: "#e6edf3", soft: "#9da7b1", line: "#363d46"},
};
const TEXT = ["title_text_color", "axis_label_text_color", "major_label_text_color",
  "label_text_color"];
const LINES = ["axis_line_color", "major_tick_line_color", "minor_tick_line_color"];

function setTheme(name) {
  const colours = THEMES[name];
  document.documentElement.dataset.theme = name;
  element("theme").textContent = name === "dark" ? "Light" : "Dark";
  for (const model of Bokeh.documents[0].all_models) {
    const set = (names, colour) => {
      for (const each of names) if (each in model.properties) model[each] = colour;
    };
    set(TEXT, colours.text);
    set(LINES, colours.soft);
    set(["grid_line_color"], colours.line);
    if (model.type === "Title") model.text_color = colours.text;
    // Labels on boxes of a colour of their own are white in both themes.
    if (model.type === "Text" && model.text_color.value !== "white")
      model.text_color = {value: colours.text};
  }
}

function startTheme() {
  const preferred = window.matchMedia("(prefers-color-scheme: dark)");
  const now = () => document.documentElement.dataset.theme;
  setTheme(preferred.matches ? "dark" : "light");
  preferred.addEventListener("change", () => setTheme(preferred.matches ? "dark" : "light"));
  element("theme").addEventListener("click", () => setTheme(now() === "dark" ? "light" : "dark"));
}

// --- small helpers of texts and tables ---

function cell(kind, text) {
  const made = document.createElement(kind);
  made.textContent = text;
  // A dash stands for a number that there is not.
  if (/^(-|[-–]?[\d,.]+( ?[%a-zA-Z/]+)?)$/.test(text)) made.className = "number";
  // Names of links and files may be broken anywhere, words may not.
  else if (text.length > 16) made.className = "long";
  return made;
}

// A table; `choose` is called with the index of the row that is clicked.
function table(head, rows, choose) {
  const made = document.createElement("table");
  const top = made.createTHead().insertRow();
  head.forEach((text, column) => {
    const made = cell("th", text);
    // Above numbers, which are to the right.
    if (rows.length) made.className = cell("td", String(rows[0][column])).className;
    top.append(made);
  });
  const body = made.createTBody();
  rows.forEach((row, index) => {
    const line = body.insertRow();
    for (const text of row) line.append(cell("td", String(text)));
    if (choose) {
      line.className = "choice";
      line.addEventListener("click", () => choose(index));
    }
  });
  return made;
}

function show(id, ...children) { element(id).replaceChildren(...children); }

// --- selection: one component or link at a time, over all figures ---

const SELECTABLE = ["boxes", "slices", "links"];
const model = (name) => Bokeh.documents[0].get_model_by_name(name);

function startSelection() {
  for (const name of SELECTABLE) {
    const source = model(name);
    source.selected.properties.indices.change.connect(() => {
      const [index] = source.selected.indices;
      if (index === undefined) return;
      for (const other of SELECTABLE)
        if (other !== name) model(other).selected.indices = [];
      select(name, index);
    });
  }
}

function select(name, index) {
  const data = model(name).data;
  const row = Object.fromEntries(Object.keys(data).map((key) => [key, data[key][index]]));
  element("selected").textContent = row.name;
  const facts = name === "links"
    ? [["link", row.name], ["bandwidth", row.bandwidth]]
    : [["kind", row.kind], ["position", `${row.x} mm, ${row.y} mm`]];
  show("details", table(["", ""], facts));
  if (page.run) selectInRun(name, row);
}

// Names of PEs are written when the map is enlarged so far that they fit.
function startLabels() {
  const figure = model("sip"), labels = figure.select_one("titles_text");
  const fit = () => {
    const shown = Math.abs(figure.x_range.end - figure.x_range.start);
    labels.visible = shown < page.label_mm;
  };
  figure.x_range.change.connect(fit);
  fit();
}

// --- a run: integers of picoseconds, rows of tables as columns ---

const ns = (ps) => (ps / 1000).toLocaleString("en-US",
  {minimumFractionDigits: 3, maximumFractionDigits: 3});
const whole = (number) => number.toLocaleString("en-US");
const percent = (share) => `${(100 * share).toFixed(2)} %`;
const COUNTERS = ["nbytes", "busy_ps", "queued_ps", "packets"];
const chosen = {sip: 0, component: null};

// The interval of the brush, and the bins of loads that it touches.
function interval() {
  const range = model("interval"), bin = page.load_bin_ps;
  const from = Math.max(0, Math.round(range.start * 1000));
  const to = Math.min(page.total_ps, Math.round(range.end * 1000));
  const first = Math.floor(from / bin), last = Math.max(first, Math.ceil(to / bin) - 1);
  const begin_ps = first * bin, end_ps = Math.min((last + 1) * bin, page.total_ps);
  return {from, to, first, last, begin_ps, end_ps, width: end_ps - begin_ps};
}

// The sums of all counters between two bins, by SIP and link.
function sums(first, last) {
  const rows = page.loads, links = page.load_names.length;
  const found = Object.fromEntries(
    COUNTERS.map((name) => [name, new Float64Array(page.sips * links)]));
  for (let row = 0; row < rows.bin.length; row++) {
    if (rows.bin[row] < first || rows.bin[row] > last) continue;
    const at = rows.sip[row] * links + rows.link[row];
    for (const name of COUNTERS) found[name][at] += rows[name][row];
  }
  return found;
}

// The sums of one link, or of all channels of a memory; null where nothing was recorded.
function sumsOf(found, sip, names) {
  const links = page.load_names.length, total = {};
  for (const counter of COUNTERS)
    total[counter] = names.reduce((sum, at) => sum + found[counter][sip * links + at], 0);
  return total;
}

const loadIndex = new Map(page.run ? page.load_names.map((name, at) => [name, at]) : []);
// Loads of a component: a name that goes on with a digit is that of another one.
const loadsAt = (prefix) => page.load_names.flatMap(
  (name, at) => name.startsWith(prefix) && !/^\d/.test(name.slice(prefix.length)) ? [at] : []);
let inInterval, inRun;

function loadText(total, width) {
  if (!total.packets) return "none in the interval";
  return `${percent(total.busy_ps / width)}, ${whole(total.nbytes)} B, queued ` +
    `${ns(total.queued_ps)} ns`;
}

// Colour links, HBM slices and links between SIPs by their share of the interval.
function drawLoads() {
  const now = interval();
  inInterval = sums(now.first, now.last);
  const put = (name, share) => {
    const source = model(name), data = source.data;
    for (let row = 0; row < data.name.length; row++) {
      const {total, parts} = share(row);
      data.busy[row] = total ? 100 * total.busy_ps / (parts * now.width) : 0;
      data.load[row] = total ? loadText(total, parts * now.width) : "not recorded";
      if (data.width) data.width[row] = total?.packets ? 2 + data.busy[row] / 40 : 0.8;
    }
    source.change.emit();
  };
  put("links", (row) => {
    const at = loadIndex.get(model("links").data.name[row]);
    return {total: at === undefined ? null : sumsOf(inInterval, chosen.sip, [at]), parts: 1};
  });
  put("slices", (row) => {
    const at = loadsOfSlice[row];
    return {total: sumsOf(inInterval, chosen.sip, at), parts: page.channels};
  });
  if (page.sips > 1) put("sip_links", (row) => {
    const [sip, port] = page.ports[row], at = loadIndex.get(port);
    return {total: at === undefined ? null : sumsOf(inInterval, sip, [at]), parts: 1};
  });
  element("interval").textContent = `Interval ${ns(now.from)} to ${ns(now.to)} ns; loads are of ` +
    `the bins ${ns(now.begin_ps)} to ${ns(now.end_ps)} ns.`;
  drawBusiest(now.width);
}

let loadsOfSlice = [];

function drawBusiest(width) {
  const links = page.load_names.length;
  const order = page.load_names.map((_, at) => at)
    .filter((at) => inInterval.busy_ps[chosen.sip * links + at] > 0)
    .sort((a, b) => inInterval.busy_ps[chosen.sip * links + b] -
      inInterval.busy_ps[chosen.sip * links + a] || a - b).slice(0, 10);
  const rows = order.map((at) => {
    const total = sumsOf(inInterval, chosen.sip, [at]);
    return [page.load_names[at], percent(total.busy_ps / width), whole(total.nbytes),
      ns(total.queued_ps)];
  });
  const choose = (row) => {
    const at = model("links").data.name.indexOf(page.load_names[order[row]]);
    if (at >= 0) model("links").selected.indices = [at];
  };
  show("busiest", table([`of SIP ${chosen.sip}`, "busy", "bytes", "queued, ns"], rows, choose));
}

// The strip above the timeline: the mean and the largest load of the links of the SIP.
function drawLoadStrip() {
  const rows = page.loads, bin = page.load_bin_ps;
  const bins = Math.ceil(page.total_ps / bin);
  const sum = new Float64Array(bins), most = new Float64Array(bins), used = new Set();
  for (let row = 0; row < rows.bin.length; row++) {
    if (rows.sip[row] !== chosen.sip || page.load_kinds[rows.link[row]] !== "link") continue;
    const at = Math.min(rows.bin[row], bins - 1);
    const share = 100 * rows.busy_ps[row] / Math.min(bin, page.total_ps - at * bin);
    used.add(rows.link[row]);
    sum[at] += share;
    most[at] = Math.max(most[at], share);
  }
  const left = Array.from(sum, (_, at) => at * bin / 1000);
  const right = left.map((begin) => Math.min(begin + bin / 1000, page.total_ps / 1000));
  const mean = Array.from(sum, (each) => each / Math.max(used.size, 1));
  model("load_mean").data = {left, right, mean};
  model("load_busiest").data = {left, right, busiest: Array.from(most)};
}

// --- timeline ---

function colourOf(engine) {
  const colours = page.colours;
  if (engine === "kernels") return colours.kernels;
  if (engine.startsWith("waits")) return colours.waits;
  if (["pe_gemm", "pe_math", "pe_fetch_store"].includes(engine)) return colours.compute;
  if (engine === "pe_dma") return colours.memory;
  if (/^(pe_ipcq|ucie)/.test(engine)) return colours.communication;
  return colours.launch;
}

const MOST_LINES = 40;
const pathColours = () => ({
  compute: page.colours.compute, memory: page.colours.memory, queue: page.colours.waits,
  communication: page.colours.communication, launch: page.colours.launch,
  issue: page.colours.kernels, host: page.colours.launch,
});

function drawTimeline() {
  const bars = {left: [], right: [], bottom: [], top: [], colour: [], row: [], what: [],
    time: [], share: []};
  const labels = [];
  const bar = (begin, end, height, colour, what, share) => {
    const line = labels.length - 1;
    bars.left.push(begin / 1000);
    bars.right.push(end / 1000);
    bars.bottom.push(line + 0.92);
    bars.top.push(line + 0.92 - 0.84 * height);
    bars.colour.push(colour);
    bars.row.push(labels[line]);
    bars.what.push(what);
    bars.time.push(`${ns(begin)} to ${ns(end)} ns`);
    bars.share.push(share);
  };
  if (element("show-path").checked) drawPathRow(labels, bar);
  const kind = element("rows").value;
  const lines = kind === "component" ? componentLines(bar) : engineLines(kind, bar);
  for (const [label, draw] of lines.slice(0, MOST_LINES)) {
    labels.push(label);
    draw();
  }
  const figure = model("timeline");
  figure.title.text = lines.length > MOST_LINES
    ? `Timeline: ${MOST_LINES} of ${lines.length} rows; choose an engine to see others`
    : "Timeline";
  figure.height = 80 + 24 * labels.length;
  figure.y_range.start = labels.length;
  figure.y_range.end = 0;
  const [axis] = figure.left;
  axis.major_label_overrides = new Map(labels.map((label, at) => [at + 0.5, label]));
  axis.ticker.ticks = labels.map((_, at) => at + 0.5);
  model("bars").data = bars;
}

// A text of a piece of the critical path.
const pathText = (column, at) => page.path.texts[page.path.pieces[column][at]];

function drawPathRow(labels, bar) {
  const path = page.path.pieces, colours = pathColours();
  labels.push("critical path");
  for (let at = 0; at < path.begin_ps.length; at++) {
    const kind = pathText("kind", at);
    bar(path.begin_ps[at], path.end_ps[at], 1, colours[kind] ?? page.colours.path,
      `${kind}: ${pathText("what", at)}`, `SIP ${path.sip[at]}, ` +
      ["component", "cause", "line"].map((column) => pathText(column, at)).join(" "));
  }
}

// Rows of engines of the SIP, or of SIPs: in each bin the share of PEs whose engine is active.
function engineLines(kind, bar) {
  const cells = page.cells, tracks = page.tracks, bin = page.cell_bin_ps;
  const wanted = element("engine").value;
  const sips = kind === "sips" ? [...Array(page.sips).keys()] : [chosen.sip];
  const at = new Map();
  for (let row = 0; row < cells.bin.length; row++) {
    const key = `${cells.sip[row]} ${cells.engine[row]}`;
    if (!at.has(key)) at.set(key, []);
    at.get(key).push(row);
  }
  return sips.flatMap((sip) => page.engines
    .filter((engine) => (wanted === "" || wanted === engine) && at.has(`${sip} ${engine}`))
    .map((engine) => {
      const pes = tracks.engine.filter(
        (each, index) => each === engine && tracks.sip[index] === sip).length;
      const label = kind === "sips" ? `SIP ${sip} ${engine}` : engine;
      return [label, () => {
        for (const row of at.get(`${sip} ${engine}`)) {
          const begin = cells.bin[row] * bin, end = Math.min(begin + bin, page.total_ps);
          const share = cells.busy_ps[row] / ((end - begin) * pes);
          bar(begin, end, share, colourOf(engine), `${engine} of SIP ${sip}`,
            `${percent(share)} of ${pes} active`);
        }
      }];
    }));
}

// The engines of the selected component, operation by operation.
function componentLines(bar) {
  const tracks = page.tracks, wanted = element("engine").value, each = page.intervals;
  return tracksOf(chosen.component)
    .filter((track) => wanted === "" || wanted === tracks.engine[track])
    .map((track) => [tracks.engine[track], () => {
      for (let row = intervalBegin[track]; row < intervalBegin[track + 1]; row++) {
        const length = each.end_ps[row] - each.begin_ps[row], count = each.count[row];
        const share = length ? each.active_ps[row] / length : 1;
        const more = count > 1 ? ` and ${count - 1} more, joined` : "";
        const active = count > 1 ? `, active for ${percent(share)}` : "";
        bar(each.begin_ps[row], each.end_ps[row], share, colourOf(tracks.engine[track]),
          page.names[each.name[row]] + more, `${ns(length)} ns${active}`);
      }
    }]);
}

let intervalBegin = [];

function indexIntervals() {
  intervalBegin = new Array(page.tracks.sip.length + 1).fill(0);
  for (const track of page.intervals.track) intervalBegin[track + 1]++;
  for (let at = 1; at < intervalBegin.length; at++) intervalBegin[at] += intervalBegin[at - 1];
}

// The tracks of a component of the chosen SIP, in the order of engines.
function tracksOf(component) {
  const {cube, pe} = component ?? {cube: -1, pe: -1}, tracks = page.tracks;
  return [...tracks.sip.keys()]
    .filter((at) => tracks.sip[at] === chosen.sip && tracks.cube[at] === cube &&
      tracks.pe[at] === pe)
    .sort((a, b) => page.engines.indexOf(tracks.engine[a]) -
      page.engines.indexOf(tracks.engine[b]));
}

// --- what a click shows ---

function selectInRun(name, row) {
  const details = element("details");
  if (name === "links") {
    chosen.component = null;
    details.append(...linkDetails(row.name));
  } else {
    chosen.component = row;
    details.append(...componentDetails(row));
    element("rows").value = "component";
  }
  drawTimeline();
}

function heading(text) {
  const made = document.createElement("h2");
  made.textContent = text;
  return made;
}

function linkDetails(name) {
  const at = loadIndex.get(name);
  if (at === undefined) return [heading("No load was recorded here")];
  const now = interval();
  const parts = [[inInterval, now.width, "interval"], [inRun, page.total_ps, "whole run"]];
  const [near, far] = parts.map(([found]) => sumsOf(found, chosen.sip, [at]));
  const counters = [
    ["busy, ns", ns(near.busy_ps), ns(far.busy_ps)],
    ["busy", percent(near.busy_ps / now.width), percent(far.busy_ps / page.total_ps)],
    ["bytes", whole(near.nbytes), whole(far.nbytes)],
    ["packets", whole(near.packets), whole(far.packets)],
    ["queued, ns", ns(near.queued_ps), ns(far.queued_ps)],
  ];
  const waits = rowsOf(page.link_waits, (row) => row.sip === chosen.sip && row.link === name);
  return [
    table(["counter", "interval", "whole run"], counters),
    heading("Operations that queued here longest"),
    waits.length
      ? table(["operation", "number", "queued, ns"],
        waits.map((row) => [row.operation, whole(row.count), ns(row.waited_ps)]))
      : note("None."),
  ];
}

function note(text) {
  const made = document.createElement("p");
  made.className = "note";
  made.textContent = text;
  return made;
}

// The rows of a table of columns which `accepts`.
function rowsOf(columns, accepts) {
  const names = Object.keys(columns), found = [];
  for (let at = 0; at < columns[names[0]].length; at++) {
    const row = Object.fromEntries(names.map((name) => [name, columns[name][at]]));
    if (accepts(row)) found.push(row);
  }
  return found;
}

function componentDetails(row) {
  const here = (each) => each.sip === chosen.sip && each.cube === row.cube && each.pe === row.pe;
  const engines = rowsOf(page.tracks, here);
  const waits = rowsOf(page.waits, here);
  const port = `sip ${chosen.sip} cube ${row.cube} pe ${row.pe}:`;
  const links = [...loadsAt(row.name), ...loadsAt(port)]
    .filter((at) => inRun.packets[chosen.sip * page.load_names.length + at] > 0);
  return [
    heading("Engines, whole run"),
    engines.length ? table(
      ["engine", "number", "active, ns", "bytes", "waited, ns"],
      engines.map((each) => [each.engine, whole(each.operations), ns(each.busy_ps),
        whole(each.nbytes), ns(each.queued_ps + each.link_ps + each.memory_ps)]),
    ) : note("No operation."),
    heading("What its programs waited for"),
    waits.length ? table(
      ["call", "for", "number", "ns", "line"],
      waits.map((each) => [each.operation, each.cause, whole(each.count), ns(each.waited_ps),
        each.line]),
    ) : note("Nothing."),
    heading("Links, ports and channels, whole run"),
    links.length ? table(
      ["", "busy, ns", "bytes", "queued, ns"],
      links.map((at) => {
        const total = sumsOf(inRun, chosen.sip, [at]);
        return [page.load_names[at], ns(total.busy_ps), whole(total.nbytes), ns(total.queued_ps)];
      }),
    ) : note("No load."),
  ];
}

// --- the critical path on the map: what of it is in the SIP and in the interval ---

function drawPathOnMap() {
  const now = interval(), {pieces, routes, links: routeLinks} = page.path;
  const boxes = model("boxes").data;
  const found = {x: [], y: [], w: [], h: []}, places = new Set(), names = new Set();
  const between = new Set(), passed = new Set();
  if (element("show-path").checked) {
    for (let at = 0; at < pieces.begin_ps.length; at++) {
      if (pieces.end_ps[at] <= now.from || pieces.begin_ps[at] >= now.to) continue;
      if (pieces.route[at] >= 0) passed.add(pieces.route[at]);
      if (pieces.sip[at] !== chosen.sip) continue;
      if (pieces.pe[at] >= 0) places.add(`${pieces.cube[at]} ${pieces.pe[at]}`);
      names.add(pathText("component", at));
    }
    // What the data of these pieces passed, also in SIPs that only forward it.
    for (const route of passed)
      for (const [sip, links] of routes[route])
        for (const link of links) {
          if (sip === chosen.sip) names.add(routeLinks[link]);
          between.add(routeLinks[link]);
        }
    for (let row = 0; row < boxes.name.length; row++)
      if (boxes.kind[row] === "PE" && places.has(`${boxes.cube[row]} ${boxes.pe[row]}`))
        for (const key of Object.keys(found)) found[key].push(boxes[key][row]);
  }
  model("path_boxes").data = found;
  model("path_links").data = segmentsOf("links", names);
  if (page.sips > 1) model("path_sip_links").data = segmentsOf("sip_links", between);
}

// The segments of the links with these names.
function segmentsOf(source, names) {
  const links = model(source).data, lines = {x0: [], y0: [], x1: [], y1: []};
  for (let row = 0; row < links.name.length; row++)
    if (names.has(links.name[row]))
      for (const key of Object.keys(lines)) lines[key].push(links[key][row]);
  return lines;
}

function fill(id, options) {
  element(id).replaceChildren(...options.map(([value, text]) => new Option(text, value)));
}

function drawAll() {
  drawLoads();
  drawPathOnMap();
}

function chooseSip(sip) {
  chosen.sip = sip;
  element("sip").value = String(sip);
  if (page.sips > 1) model("sips").selected.indices = [sip];
  model("sip").title.text = model("sip").title.text.replace(/^(A SIP|SIP \d+)/, `SIP ${sip}`);
  drawLoadStrip();
  drawAll();
  drawTimeline();
}

function startRun() {
  indexIntervals();
  inRun = sums(0, Infinity);
  loadsOfSlice = Array.from(model("slices").data.name, (name) => loadsAt(`${name}.`));
  fill("sip", [...Array(page.sips).keys()].map((sip) => [sip, String(sip)]));
  fill("rows", [["engines", "engines of the SIP"], ["sips", "all SIPs"],
    ["component", "selected component"]]);
  fill("engine", [["", "all"], ...page.engines.map((engine) => [engine, engine])]);
  element("sip").addEventListener("change", (event) => chooseSip(Number(event.target.value)));
  for (const id of ["rows", "engine"]) element(id).addEventListener("change", drawTimeline);
  element("show-path").addEventListener("change", () => { drawPathOnMap(); drawTimeline(); });
  element("whole").addEventListener("click", () => {
    model("interval").setv({start: 0, end: page.total_ps / 1000});
  });
  if (page.sips > 1) {
    const sips = model("sips");
    sips.selected.properties.indices.change.connect(() => {
      const [sip] = sips.selected.indices;
      if (sip !== undefined && sip !== chosen.sip) chooseSip(sip);
    });
  }
  // While the brush moves, at most one drawing for each frame of the screen.
  let waiting = false;
  model("interval").change.connect(() => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; drawAll(); });
  });
  show("kernels", table(["kernel", "PEs", "programs", "FLOP", "bytes of HBM", "mean time, ns",
    "FLOP/B", "GFLOP/s per PE"], page.kernels));
  show("notes", ...page.notes.map((text) => {
    const made = document.createElement("li");
    made.textContent = text;
    return made;
  }));
  chooseSip(0);
}

function start() {
  document.body.classList.add(page.run ? "run-page" : "topology");
  if (page.sips === 1) document.body.classList.add("single");
  startTheme();
  startSelection();
  startLabels();
  if (page.run) startRun();
  document.body.dataset.ready = "yes";
}

const figures = JSON.parse(element("figures-json").textContent);
Bokeh.embed.embed_items(figures.documents, figures.items).then(start);
