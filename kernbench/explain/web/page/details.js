// What a click shows of a component or link of a run.

// The timeline has the rows of a selected component; a link has none.
function rowsOfSelection() {
  if (chosenComponent()) element("rows").value = "component";
  else if (element("rows").value === "component") element("rows").value = "engines";
  drawTimeline();
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
