"use strict";
// What pages do: theme, filters, sorting, the runs of a cell, charts, and one run.
const $ = (query, root = document) => root.querySelector(query);
const $$ = (query, root = document) => [...root.querySelectorAll(query)];
const number = value => Number(value).toLocaleString("en-US");
const text = value => Object.assign(document.createElement("i"), { textContent: value }).innerHTML;
const data = window.metricopt ?? {};
if (data.table) {  // a line of values per cell becomes an object
  const { names } = data.table;
  data.table.cells = data.table.cells.map(values => Object.fromEntries(
    names.map((name, place) => [name, values[place] === "" ? undefined : values[place] ?? undefined])));
}

// Theme: of the system, light or dark. Charts are drawn anew in its colours.
const themes = ["system", "light", "dark"], page = document.documentElement;
function setTheme(name) {
  page.dataset.theme = name;
  $("#theme").textContent = `Theme: ${name}`;
  try { localStorage.theme = name; } catch { /* a browser that keeps nothing */ }
}
$("#theme").onclick = () => { setTheme(themes[(themes.indexOf(page.dataset.theme) + 1) % 3]); drawAll(); };
matchMedia("(prefers-color-scheme: dark)").onchange = () => drawAll();

// Filters: rows are shown by what they see, their family and their queries.
const filter = $("#filter"), rows = $$("tr[data-sees]");
function applyFilter() {
  const seen = $$("[name=sees]:checked", filter).map(box => box.value);
  const { family, budget } = filter.elements, most = budget?.value || Infinity;
  for (const row of rows) {
    const own = row.dataset, ofFamily = !family.value || own.family === family.value;
    row.hidden = !(seen.includes(own.sees) && ofFamily && Number(own.queries) <= most);
  }
  $("#shown").textContent = `${rows.filter(row => !row.hidden).length} of ${rows.length} rows`;
  drawAll();
}
filter?.addEventListener("input", applyFilter);
filter?.addEventListener("reset", () => setTimeout(applyFilter));

// Sorting: by the number of a cell, where lower is better, or by its text.
for (const button of $$("thead button")) button.onclick = () => {
  const head = button.closest("th"), table = head.closest("table"), body = $("tbody", table);
  const place = $$("thead button", table).indexOf(button);
  const turn = head.ariaSort === "ascending" ? -1 : 1;
  $$("th[aria-sort]", table).forEach(each => { each.ariaSort = "none"; });
  head.ariaSort = turn > 0 ? "ascending" : "descending";
  const key = row => row.cells[place].dataset.v ?? (place ? null : row.cells[0].textContent);
  const order = (a, b) => place ? a - b : a.localeCompare(b);
  const sorted = $$("tr", body).sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    return x === null || y === null ? (x === null) - (y === null) : turn * order(x, y);
  });
  body.append(...sorted);
};

// The records of a table lie compressed in a script of their own.
const files = {};
window.addRuns = (name, packed, size, committed) => { files[name] = { packed, size, committed }; };
const mean = values => values?.length ? values.reduce((sum, value) => sum + value, 0) / values.length : undefined;
const load = source => new Promise((done, failed) => {
  document.head.append(Object.assign(document.createElement("script"), { src: source, onload: done, onerror: failed }));
});
// Characters hold 15 bits each (`packed` in run_data.py), so a byte lies in one or two.
const bytesOf = ({ packed, size }) => Uint8Array.from({ length: size }, (_, index) => {
  const place = Math.floor(index * 8 / 15), bits = at => packed.charCodeAt(at) - 0x3400;
  return (bits(place) << 15 | bits(place + 1)) >> 22 - index * 8 % 15;
});
async function unpacked(name) {
  if (!files[name]) await load(`data/runs/${name}.js`);
  const bytes = bytesOf(files[name]);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  // Field by field (`by_field` in run_data.py), and a line of text for every record again.
  const [first, ...values] = (await new Response(stream).text()).split("\n"), names = JSON.parse(first), count = values.length / names.length;
  return Array.from({ length: count }, (_, at) => `{${names.map((name, place) => `"${name}":${values[place * count + at]}`).join(",")}}`);
}
async function runsOf(block, row, column) {
  const { name, columns } = data.table, [, , metric, source] = columns[column], lines = await unpacked(name);
  return lines.flatMap((line, place) => {
    if (!line.includes(`"row":${JSON.stringify(row)}`)) return [];
    const { spec, ...record } = JSON.parse(line);
    if (spec.block !== block || spec.row !== row || spec.column !== source) return [];
    const value = mean(record.test[metric]), seconds = record.seconds.total ?? 0;
    return [[record.digest.slice(0, 12), spec.replicate, value === undefined ? record.status : Number(value.toPrecision(6)),
      number(record.queries), number(Number(seconds.toPrecision(4))), place >= files[name].committed]];
  });
}

// The runs of a cell, which the part of the address after # names.
const dialog = $("#runs");
async function showCell() {
  const [block, row, ...rest] = decodeURIComponent(location.hash.slice(1)).split("/");
  const column = rest.join("/");
  const cell = data.table?.cells.find(c => c.block === block && c.row === row && c.column === column);
  if (!cell) return;
  const { columns, blocks } = data.table, labels = data.table.rows, gain = cell.cost_gain;
  const [heading] = columns[column], short = value => Number(value.toPrecision(3));
  const range = cell.cost_gain_low !== undefined ? ` (95 % interval ${short(cell.cost_gain_low)} to ${short(cell.cost_gain_high)})` : "";
  const facts = {
    mean: cell.mean && `${Number(cell.mean.toPrecision(6))} over ${cell.n} ${cell.n_of}${cell.n > 1 ? "s" : ""}`,
    base: cell.base_row && labels[cell.base_row][0],
    gain: gain !== undefined && `${short(gain)}${range}, as a decrease of the cost`,
    p: cell.p_holm !== undefined && `${short(cell.p_holm)}, after Holm's correction`,
    verdict: cell.verdict, paper: cell.paper && `${cell.paper}; ${cell.paper_verdict}`, yours: cell.own,
  };
  dialog.innerHTML = `<button class="close" type="button">Close</button><h2 id="runs-title">${text(labels[row][0])}</h2>
    <p>${text(heading)}, ${text(blocks[block])}</p><dl class="about">${Object.entries(facts).filter(([, value]) => value || value === 0)
    .map(([name, value]) => `<dt>${name}</dt><dd>${text(value)}</dd>`).join("")}</dl>
    <div class="scroll" tabindex="0" role="region" aria-label="Runs"><table><thead><tr><th scope="col">run</th><th scope="col" class="n">replicate</th>
    <th scope="col" class="n">test</th><th scope="col" class="n">queries</th><th scope="col" class="n">seconds</th></tr></thead><tbody></tbody></table></div>`;
  $(".close", dialog).onclick = () => dialog.close();
  if (!dialog.open) dialog.showModal();
  const runs = await runsOf(block, row, column);
  $("tbody", dialog).innerHTML = runs.map(([digest, ...rest]) => {
    const yours = rest.pop() ? " yours" : "";
    return `<tr><td><a href="run.html#${digest}"><code>${digest}</code></a>${yours}</td>${rest.map(value => `<td class="n">${text(value)}</td>`).join("")}</tr>`;
  }).join("");
}
if (dialog) {
  dialog.onclose = () => history.replaceState(null, "", location.pathname + location.search);
  dialog.onclick = event => { if (event.target === dialog) dialog.close(); };
  addEventListener("hashchange", showCell);
}

// Charts: what is drawn is what the page has, without the rows that are filtered out.
const css = name => getComputedStyle(page).getPropertyValue(name).trim();
function colour(name) {  // light-dark() is resolved by the browser
  const probe = Object.assign(document.createElement("i"), { style: `color:var(${name})` });
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
const SEES = ["metric values", "loss gradients", "outputs and labels", "edited predictions", "formula", "test", "not told"];
const dye = seen => colour(seen === "not told" ? "--none" : `--${seen.replaceAll(" ", "-")}`);
const seesScale = lines => {
  const domain = SEES.filter(seen => lines.some(line => line.sees === seen));
  return { field: "sees", type: "nominal", scale: { domain, range: domain.map(dye) }, legend: { title: "sees", symbolOpacity: 1 } };
};
function draw(place, spec) {
  const soft = colour("--soft"), line = colour("--line"), ink = colour("--ink");
  const narrow = place.clientWidth < 520;
  const axis = { labelFontSize: narrow ? 11 : 12, titleFontSize: 12, labelColor: soft, titleColor: soft, gridColor: line, domainColor: line, tickColor: line, titleFontWeight: 400, labelLimit: narrow ? 175 : 240, labelOverlap: true };
  const config = { background: null, font: css("font-family") || "system-ui", view: { stroke: null }, axis, legend: { orient: narrow ? "bottom" : "top", columns: Math.max(1, Math.floor(place.clientWidth / 180)), labelFontSize: 12, titleFontSize: 12, labelColor: ink, titleColor: soft, titleFontWeight: 400 }, text: { color: ink } };
  const dark = css("color-scheme") === "dark" || (css("color-scheme") !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  // The tables hold the same numbers for who does not see a picture.
  const made = { $schema: "https://vega.github.io/schema/vega-lite/v6.json", width: "container", config, autosize: { type: "fit-x", contains: "padding" }, ...spec };
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", spec.description);
  place.innerHTML = `<div aria-hidden="true"></div>`;
  place.drawn = window.vegaEmbed(place.firstChild, made, { actions: false, renderer: "svg", logLevel: 1, tooltip: { theme: dark ? "dark" : "light" } });
}
const tip = (field, title, format) => ({ field, title, ...(format ? { type: "quantitative", format } : { type: "nominal" }) });
const own = { dash: { condition: { test: "datum.own", value: [4, 3] }, value: [1, 0] } };
const charts = {
  cells({ block, column }, shown) {
    const [heading, sign] = data.table.columns[column];
    const lines = data.table.cells.filter(c => c.block === block && c.column === column && c.mean !== undefined && shown(c.row))
      .map(c => ({ ...c, label: data.table.rows[c.row][0], sees: data.table.rows[c.row][1] || "not told", low: c.mean - (c.std ?? 0), high: c.mean + (c.std ?? 0) }))
      .sort((a, b) => sign * (a.mean - b.mean));
    const y = { field: "label", type: "nominal", sort: lines.map(line => line.label), title: null }, x = { type: "quantitative", title: heading, scale: { zero: false }, axis: { tickCount: 6 } };
    const tooltip = [tip("label", "method"), tip("mean", "mean", ".4f"), tip("std", "deviation", ".4f"), tip("queries", "queries", ",.0f"), tip("verdict", "verdict"), tip("paper", "paper")];
    return { description: `Test values of ${heading} by method`, data: { values: lines }, height: 20 * lines.length, encoding: { y, tooltip }, layer: [
      { mark: { type: "rule", strokeWidth: 2, opacity: 0.45 }, encoding: { x: { ...x, field: "low" }, x2: { field: "high" }, color: seesScale(lines) } },
      { mark: { type: "point", filled: true, size: 60, opacity: 1 }, encoding: { x: { ...x, field: "mean" }, color: seesScale(lines) } },
      { transform: [{ filter: "isValid(datum.paper)" }], mark: { type: "point", shape: "diamond", size: 70, color: colour("--ink") }, encoding: { x: { ...x, field: "paper" } } },
      { transform: [{ filter: "isValid(datum.own)" }], mark: { type: "point", shape: "triangle-up", size: 60, filled: true, color: colour("--ink") }, encoding: { x: { ...x, field: "own" } } }] };
  },
  curves({ block, column }, shown) {
    const [heading, sign] = data.table.columns[column], here = data.table.curves.filter(c => c.block === block && c.column === column);
    const flat = here.filter(c => !c.row).map(c => ({ mean: c.mean[0] })), lines = here.filter(c => c.row && shown(c.row)).flatMap(c => c.x.map((x, i) => ({
      row: c.row + (c.own ? " (yours)" : ""), label: data.table.rows[c.row][0] + (c.own ? " (yours)" : ""), sees: data.table.rows[c.row][1] || "not told",
      own: c.own, x, mean: c.mean[i], std: c.std[i], low: c.mean[i] - c.std[i], high: c.mean[i] + c.std[i], last: i === c.x.length - 1 }))).filter(line => line.x > 0);
    const near = { param: "near", empty: false }, ours = `datum.row === '${data.table.ours}'`;
    const base = { x: { field: "x", type: "quantitative", scale: { type: "log", nice: false }, axis: { tickCount: 5, format: "~s", grid: false }, title: "queries of the metric" }, detail: { field: "row" } };
    const y = { field: "mean", type: "quantitative", scale: { zero: false, padding: 24 }, title: heading }, over = { condition: [{ ...near, value: 1 }, { test: ours, value: 1 }], value: 0.45 };
    const tooltip = [tip("label", "method"), tip("x", "queries", ",.0f"), tip("mean", "mean", ".4f"), tip("std", "deviation", ".4f")];
    return { description: `${heading} on test over queries of the metric`, height: 420, data: { values: lines }, layer: [
        ...(flat.length ? [{ data: { values: flat }, mark: { type: "rule", color: colour("--none"), strokeDash: [2, 3] }, encoding: { y, tooltip: { value: "untouched network" } } }] : []),
        { mark: { type: "area", opacity: 0.15 }, transform: [{ filter: near }], encoding: { ...base, y: { ...y, field: "low" }, y2: { field: "high" }, color: seesScale(lines) } },
        { mark: "line", encoding: { ...base, y, color: seesScale(lines), opacity: over, size: { condition: [{ ...near, value: 3 }, { test: ours, value: 3 }], value: 1.3 }, strokeDash: own.dash } },
        { mark: { type: "point", filled: true, size: 34 }, encoding: { ...base, y, color: seesScale(lines), opacity: over } },
        { transform: [{ filter: { and: ["datum.last", { or: [near, ours] }] } }], mark: { type: "text", align: "right", dy: sign > 0 ? 16 : -14, fontWeight: 600 }, encoding: { ...base, y, text: { field: "label" } } },
        { params: [{ name: "near", select: { type: "point", on: "pointerover", clear: "pointerout", fields: ["row"] } }],
          mark: { type: "point", filled: true, size: 500, opacity: 0 }, encoding: { ...base, y, tooltip } }] };  // easy to hit
  },
  regret() {
    const order = data.methods.map(line => line.label), values = data.methods, labels = { field: "label", type: "nominal", sort: [...new Set(order)], title: null };
    return { description: "Mean regret of methods within budgets of queries", data: { values }, height: 22 * new Set(order).size, encoding: { y: labels }, layer: [
      { mark: { type: "line", strokeWidth: 1, color: colour("--line") }, encoding: { x: { field: "regret", type: "quantitative" }, detail: { field: "label" } } },
      { mark: { type: "point", filled: true, size: 70, opacity: 1 }, encoding: { x: { field: "regret", type: "quantitative", title: "mean regret (lower is better)", axis: { tickCount: 6 } }, color: seesScale(values),
        shape: { field: "budget", type: "nominal", title: "queries", scale: { domain: [15, 50, 500], range: ["circle", "square", "diamond"] }, legend: { direction: "horizontal", symbolFillColor: colour("--soft"), symbolStrokeColor: colour("--soft") } },
        tooltip: [tip("label", "method"), tip("budget", "queries"), tip("regret", "regret", ".4f"), tip("rank", "rank", ".1f"), tip("tables", "tables")] } }] };
  },
  trace() { return data.trace; },
};
function drawAll() {
  const pick = $("#pick"), at = pick ? { block: pick.elements.block.value, column: pick.elements.column.value } : {};
  const hidden = new Set(rows.filter(row => row.hidden).map(row => row.dataset.row));
  if (window.vegaEmbed) for (const place of $$("[data-chart]")) draw(place, charts[place.dataset.chart](at, row => !hidden.has(row)));
}
const pick = $("#pick");
if (pick) {
  const fill = () => {
    const present = new Set(data.table.cells.filter(c => c.block === pick.elements.block.value).map(c => c.column)), before = pick.elements.column.value;
    pick.elements.column.innerHTML = Object.entries(data.table.columns).filter(([name]) => present.has(name)).map(([name, [heading]]) => `<option value="${text(name)}">${text(heading)}</option>`).join("");
    if (present.has(before)) pick.elements.column.value = before;
  };
  pick.elements.block.onchange = fill;
  pick.addEventListener("change", drawAll);
  fill();
}
setTheme(page.dataset.theme || "system");
if (filter) applyFilter(); else drawAll();
if (dialog) showCell();
