// The timeline: the critical path, rows of engines, or the operations of a component.

function colourOf(engine) {
  const colours = page.colours;
  if (engine === "kernels") return colours.kernels;
  if (engine.startsWith("waits")) return colours.waits;
  if (["pe_gemm", "pe_math", "pe_fetch_store"].includes(engine)) return colours.compute;
  if (engine === "pe_dma") return colours.memory;
  if (/^(pe_ipcq|ucie)/.test(engine)) return colours.communication;
  return colours.launch;
}

// What the colours of the bars mean, for both kinds of rows.
const LEGEND = [["kernels", "kernels, issue"], ["compute", "compute"], ["memory", "memory"],
  ["communication", "communication"], ["launch", "launch, host"], ["waits", "queues, waits"]];

function drawLegend() {
  show("legend", ...LEGEND.map(([colour, text]) => {
    const made = document.createElement("span"), box = document.createElement("i");
    box.style.background = page.colours[colour];
    made.append(box, text);
    return made;
  }));
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
  figure.title.text = timelineTitle(kind, lines.length);
  figure.height = 80 + 24 * labels.length;
  figure.y_range.start = labels.length;
  figure.y_range.end = 0;
  const [axis] = figure.left;
  axis.major_label_overrides = new Map(labels.map((label, at) => [at + 0.5, label]));
  axis.ticker.ticks = labels.map((_, at) => at + 0.5);
  model("bars").data = bars;
}

function timelineTitle(kind, lines) {
  const of = kind !== "component" ? "Timeline"
    : chosenComponent() ? `Timeline of ${selected.row.name} of SIP ${chosen.sip}`
      : "Timeline: no component is selected";
  return lines > MOST_LINES
    ? `${of}: ${MOST_LINES} of ${lines} rows; choose an engine to see others` : of;
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
  return tracksOf(chosenComponent())
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

// The component that is selected, null for none or a link.
function chosenComponent() { return selected && selected.name !== "links" ? selected.row : null; }

// The tracks of a component of the chosen SIP, in the order of engines.
function tracksOf(component) {
  if (!component) return [];
  const {cube, pe} = component, tracks = page.tracks;
  return [...tracks.sip.keys()]
    .filter((at) => tracks.sip[at] === chosen.sip && tracks.cube[at] === cube &&
      tracks.pe[at] === pe)
    .sort((a, b) => page.engines.indexOf(tracks.engine[a]) -
      page.engines.indexOf(tracks.engine[b]));
}
