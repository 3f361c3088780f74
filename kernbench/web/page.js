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
  if (/^[-–]?[\d,.]+( ?[%a-zA-Z/]+)?$/.test(text)) made.className = "number";
  return made;
}

// A table; `choose` is called with the index of the row that is clicked.
function table(head, rows, choose) {
  const made = document.createElement("table");
  const top = made.createTHead().insertRow();
  for (const text of head) top.append(cell("th", text));
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

function start() {
  document.body.classList.add(page.run ? "run-page" : "topology");
  if (page.sips === 1) document.body.classList.add("single");
  startTheme();
  startSelection();
  startLabels();
  document.body.dataset.ready = "yes";
}

const figures = JSON.parse(element("figures-json").textContent);
Bokeh.embed.embed_items(figures.documents, figures.items).then(start);
