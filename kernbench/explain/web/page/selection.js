// The selection: one component or link at a time, over all figures.

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

// What is selected: the name of its source, and its row there.
let selected = null;

function select(name, index) {
  const data = model(name).data;
  const row = Object.fromEntries(Object.keys(data).map((key) => [key, data[key][index]]));
  selected = {name, row};
  element("selected").textContent = row.name;
  if (page.run) rowsOfSelection();
  drawDetails();
}

// What the details show is of the chosen SIP and of the interval, and follows both.
function drawDetails() {
  if (!selected) return;
  const {name, row} = selected;
  const facts = name === "links"
    ? [["link", row.name], ["bandwidth", row.bandwidth]]
    : [["kind", row.kind], ["position", `${row.x} mm, ${row.y} mm`]];
  if (page.run) facts.unshift(["part of", `SIP ${chosen.sip}`]);
  const found = !page.run ? [] : name === "links" ? linkDetails(row.name) : componentDetails(row);
  show("details", table(["", ""], facts), ...found);
}

// A field with the names of all components and links chooses what a click would.
function startFinding() {
  const found = new Map();
  for (const name of SELECTABLE)
    model(name).data.name.forEach((each, index) => found.set(each, [name, index]));
  element("names").replaceChildren(...[...found.keys()].map((name) => new Option(name, name)));
  element("find").addEventListener("change", () => {
    const at = found.get(element("find").value.trim());
    if (at) choose(...at);
  });
}

function choose(name, index) { model(name).selected.indices = [index]; }

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
