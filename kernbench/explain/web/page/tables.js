// Tables and texts of the page.

function cell(kind, text) {
  const made = document.createElement(kind);
  // Names of links and files may be broken between their parts.
  const parts = text.split(/(?<=\/|->)/);
  made.append(...parts.flatMap((part, at) => at ? [document.createElement("wbr"), part] : [part]));
  // A dash stands for a number that there is not.
  if (/^(-|[-–]?[\d,.]+( ?[%a-zA-Z/]+)?)$/.test(text)) made.className = "number";
  return made;
}

// A table; `choices` has for a row what a click on it does, or the key Enter where it has the focus.
function table(head, rows, choices = []) {
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
    const choose = choices[index];
    if (!choose) return;
    line.className = "choice";
    line.tabIndex = 0;
    line.addEventListener("click", choose);
    line.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(); });
  });
  return made;
}

function show(id, ...children) { element(id).replaceChildren(...children); }

function heading(text) {
  const made = document.createElement("h2");
  made.textContent = text;
  return made;
}

function note(text) {
  const made = document.createElement("p");
  made.className = "note";
  made.textContent = text;
  return made;
}

function fill(id, options) {
  element(id).replaceChildren(...options.map(([value, text]) => new Option(text, value)));
}

const ns = (ps) => (ps / 1000).toLocaleString("en-US",
  {minimumFractionDigits: 3, maximumFractionDigits: 3});
const whole = (number) => number.toLocaleString("en-US");
const percent = (share) => `${(100 * share).toFixed(2)} %`;

// The rows of a table of columns which `accepts`.
function rowsOf(columns, accepts) {
  const names = Object.keys(columns), found = [];
  for (let at = 0; at < columns[names[0]].length; at++) {
    const row = Object.fromEntries(names.map((name) => [name, columns[name][at]]));
    if (accepts(row)) found.push(row);
  }
  return found;
}
