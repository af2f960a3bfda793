"use strict";
// The page of one run: its record is unpacked from the file of its table.
let index;
window.addIndex = (length, digests, titles) => { index = { length, digests, titles }; };
const quoted = line => line.replace(/:(-?\d{16,})(?=[,}\]])/g, ':"$1"');  // longer than a number of JavaScript

async function findRun(digest) {
  if (!index) await load("data/runs/index.js");
  const { length, digests, titles } = index, short = digest.slice(0, length);
  for (const [name, all] of Object.entries(digests)) {
    let at = all.indexOf(short);
    while (at % length > 0) at = all.indexOf(short, at + 1);
    if (at < 0) continue;
    for (const line of await unpacked(name)) {
      if (!line.includes(`"digest":"${digest}`)) continue;
      const record = JSON.parse(quoted(line));
      if (record.digest.startsWith(digest)) return { name, record, line, title: titles[name] };
    }
  }
}
const list = pairs => `<dl class="about">${Object.entries(pairs).map(([name, value]) => `<dt>${text(name)}</dt><dd>${text(String(value))}</dd>`).join("")}</dl>`;
const section = (title, body) => `<section><h2>${title}</h2>${body}</section>`;
const copied = content => `<div class="copied"><button class="copy" type="button">Copy</button><pre tabindex="0">${text(content)}</pre></div>`;
const shown = value => value === undefined ? "·" : Number(value.toPrecision(6));

function traceOf(record, metric) {
  const ends = { queries: record.queries, step: record.gradient_steps, observe: record.observe, test: record.test };
  return [...record.trace, ends].flatMap(point => ["test", "observe"].map(split => ({
    split, queries: point.queries, step: point.step, value: mean(point[split][metric]) })).filter(point => point.value !== undefined));
}
function chartOf(points, metric) {
  const x = new Set(points.map(point => point.queries)).size > 1 ? "queries" : "step";
  return { description: `${metric} along the run`, data: { values: points }, height: 260, mark: { type: "line", point: true, tooltip: true }, encoding: {
    x: { field: x, type: "quantitative", axis: { tickCount: 8 }, title: x === "queries" ? "queries of the metric" : "fine-tuning steps" }, y: { field: "value", type: "quantitative", scale: { zero: false }, title: metric },
    color: { field: "split", type: "nominal", scale: { domain: ["test", "observe"], range: [colour("--outputs-and-labels"), colour("--metric-values")] }, legend: { orient: "top", title: null } } } };
}
async function showRun() {
  const digest = location.hash.slice(1), place = $("#run");
  if (!/^[0-9a-f]{8,32}$/.test(digest)) return;
  const found = await findRun(digest);
  if (!found) { place.innerHTML = `<h1>No such run</h1><p>These pages hold no record with the digest ${text(digest)}.</p>`; return; }
  const { name, record, line, title } = found, { spec } = record, metric = spec.metric.name;
  const { digest: ofSpec, ...plain } = JSON.parse(quoted(line)).spec, raw = JSON.stringify(plain, null, 1);
  const cell = [spec.block, spec.row, spec.column].map(encodeURIComponent).join("/");
  const metrics = Object.keys({ ...record.test, ...record.observe }), points = traceOf(record, metrics[0]);
  const results = metrics.map(each => `<tr><th scope="row">${text(each)}</th><td class="n">${shown(mean(record.observe[each]))}</td><td class="n">${shown(mean(record.test[each]))}</td></tr>`).join("");
  const repeat = $("#repeat").innerHTML.replace("COMMIT", record.environment.commit.replace("-changed", "")).replace("SPEC", () => text(raw)).replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
  place.innerHTML = `<p class="crumbs"><a href="index.html#tables">Tables</a> / <a href="${name}.html">${name}</a> / <a href="${name}.html#${cell}">${text(spec.row)}</a></p>
    <h1>${text(spec.row)} on ${text(spec.column)}</h1><p class="lead">${text(title)}: ${text(spec.block)}, replicate ${spec.replicate}; ${record.status}${record.message ? `: ${text(record.message)}` : ""}</p>
    <div class="scroll" tabindex="0" role="region" aria-label="Results"><table><thead><tr><th scope="col">metric</th><th scope="col" class="n">observe</th><th scope="col" class="n">test</th></tr></thead><tbody>${results}</tbody></table></div>
    ${section("What it took", list({ "metric queries": number(record.queries), "shared with other runs": number(record.shared_queries), "evaluated on": Object.entries(record.queried).map(([split, n]) => `${split} ${number(n)}`).join(", ") || "nothing",
      "fine-tuning steps": number(record.gradient_steps), seconds: Object.entries(record.seconds).map(([what, n]) => `${what} ${number(n)}`).join(", ") }))}
    ${points.length > 2 ? section("The way there", `<div class="chart" data-chart="trace"></div>`) : ""}
    ${section("Data and network", list(record.data))}${section("Seeds", list(record.seeds))}${section("Environment", list(record.environment))}
    ${section("Spec", copied(raw))}${section("Repeat it", `<p>In a checkout with its <code>.venv</code>, which <code>./reproduce.sh list</code> makes:</p>${copied(repeat)}`)}
    ${section("Record", `<p>One line of <code>results/${text(spec.experiment)}/${text(spec.tier)}/records.jsonl</code>; digest <code>${record.digest}</code>, of the spec <code>${ofSpec.slice(0, 12)}</code>.</p>${copied(line)}`)}`;
  document.title = `${spec.row} on ${spec.column} · metricopt results`;
  for (const button of $$(".copy", place)) button.onclick = async () => {
    await navigator.clipboard.writeText(button.nextElementSibling.textContent);
    button.textContent = "Copied";
  };
  data.trace = chartOf(points, metrics[0]);
  drawAll();
}
addEventListener("hashchange", showRun);
showRun();
