// The page begins: its data, and the themes: colours of all that Bokeh draws on its canvases.
// Bokeh draws; these files move numbers from the data of the page into the sources of its figures.
// They are one script, in the order of `SCRIPTS` of `kernbench.explain.web.document`.
"use strict";

const page = JSON.parse(document.getElementById("data-json").textContent);
const element = (id) => document.getElementById(id);

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
