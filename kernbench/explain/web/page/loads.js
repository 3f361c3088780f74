// The loads of links: times are integers of picoseconds, rows of tables are columns.

const COUNTERS = ["nbytes", "busy_ps", "queued_ps", "packets"];
const chosen = {sip: 0};

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
  const choices = order.map((at) => choiceOf(page.load_names[at]));
  show("busiest", table([`of SIP ${chosen.sip}`, "busy", "bytes", "queued, ns"], rows, choices));
}

// What a click on a load selects: its link, the slice of a channel, the PE of a port; or nothing.
function choiceOf(load) {
  const link = model("links").data.name.indexOf(load);
  if (link >= 0) return () => choose("links", link);
  const slice = model("slices").data.name.findIndex((name) => load.startsWith(`${name}.`));
  if (slice >= 0) return () => choose("slices", slice);
  const port = /^sip \d+ cube (\d+) pe (\d+):/.exec(load);
  const box = port ? model("boxes").data.name.indexOf(`cube${port[1]}.pe${port[2]}`) : -1;
  return box >= 0 ? () => choose("boxes", box) : null;
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
