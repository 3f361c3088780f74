// Starts the page: controls, their effects, and the first drawing.

function drawAll() {
  drawLoads();
  drawPathOnMap();
  drawDetails();
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
  drawLegend();
  chooseSip(0);
}

function start() {
  document.body.classList.add(page.run ? "run-page" : "topology");
  if (page.sips === 1) document.body.classList.add("single");
  startTheme();
  startSelection();
  startFinding();
  startLabels();
  if (page.run) startRun();
  document.body.dataset.ready = "yes";
}

const figures = JSON.parse(element("figures-json").textContent);
Bokeh.embed.embed_items(figures.documents, figures.items).then(start);
