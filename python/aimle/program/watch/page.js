"use strict";
// The page of `aimle watch`: asks for what has changed, and draws it. Values from runs become text
// nodes and attributes only, never markup.

const SVG = "http://www.w3.org/2000/svg";
const COLOURS = 8;
const MANY = 24; // more curves than these are drawn thinner
const FAST = 1000, SLOW = 3000; // milliseconds between questions, with and without running runs
const STATES = ["running", "waiting", "finished", "interrupted", "failed"];

const page = {
  version: 0,
  runs: new Map(), // by id, in the server's order
  charts: {},
  folder: "",
  chosen: "", // the id of the run whose details are shown
  colours: new Map(), // by experiment and label: a label keeps its colour
  waiting: null,
};

const at = (id) => document.getElementById(id);

function filled(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const element = (name, attributes = {}, ...children) =>
  filled(document.createElement(name), attributes, children);
const drawn = (name, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, name), attributes, children);

// ---- Words and numbers ----------------------------------------------------------------------------

function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

function short(value) {
  if (typeof value !== "number") return "";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e5 && size >= 1e-3) return String(Number(value.toPrecision(4)));
  return value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e"); // 3.59e6, 1e-7
}

function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 48 * 3600) return `${(whole / 3600).toFixed(1)} h`;
  return `${Math.round(whole / 86400)} days`;
}

function share(run) {
  if (run.state === "finished") return 1;
  if (!run.epochs) return 0;
  return Math.min(1, (run.epoch + (run.steps ? run.step / run.steps : 0)) / run.epochs);
}

function timeLeft(run) {
  if (run.state !== "running") return "";
  if (run.steps && run.step === run.steps) return "evaluating";
  if (run.seconds_left === null) return "";
  return `${duration(run.seconds_left - (Date.now() / 1000 - run.written))} left`;
}

function shownName(run) {
  return run.name === "." ? page.folder : run.name;
}

// ---- Which runs are shown ------------------------------------------------------------------------

function isShown(run) {
  const state = at("state").value, text = at("filter").value.trim().toLowerCase();
  if (state && run.state !== state) return false;
  return !text || `${run.name} ${run.label} ${run.experiment}`.toLowerCase().includes(text);
}

function byExperiment() {
  const groups = new Map();
  for (const run of page.runs.values()) {
    if (!isShown(run)) continue;
    if (!groups.has(run.experiment)) groups.set(run.experiment, []);
    groups.get(run.experiment).push(run);
  }
  for (const runs of groups.values()) {
    runs.sort((a, b) => a.name.localeCompare(b.name, undefined, {numeric: true}));
  }
  return groups;
}

/** The colour of a run: one for each label, or for each run if all have the same label. */
function colour(run, runs) {
  const isOneLabel = runs.every((other) => other.label === runs[0].label);
  const key = `${run.experiment}\n${isOneLabel ? run.id : run.label}`;
  if (!page.colours.has(key)) {
    const taken = [...page.colours.keys()].filter((k) => k.startsWith(`${run.experiment}\n`));
    page.colours.set(key, taken.length % COLOURS);
  }
  return `var(--c${page.colours.get(key)})`;
}

// ---- Curves ---------------------------------------------------------------------------------------

/** The points [epoch, value] of a metric; between epochs from the live values, if it has some. */
function points(run, metric) {
  const live = [];
  const column = run.live.names.indexOf(metric === "train_loss" ? "loss" : metric);
  if (column > 0 && run.steps > 0) {
    for (const point of run.live.points) {
      if (point[column] !== null) live.push([point[0] / run.steps, point[column]]);
    }
  }
  const epochs = run.curves.epoch || [], values = run.curves[metric] || [];
  const measured = [];
  for (let i = 0; i < values.length; ++i) {
    if (values[i] !== null) measured.push([epochs[i], values[i]]);
  }
  return live.length > measured.length ? live : measured;
}

/** Round numbers within [low, high]. */
function ticks(low, high, wanted) {
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) || power;
  const result = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + 1e-9 * step; ++n) {
    result.push(n * step);
  }
  return result;
}

function logTicks(low, high) {
  const result = [];
  for (let p = Math.ceil(low - 1e-9); p <= high + 1e-9; ++p) result.push(p);
  return result.length > 1 ? result : ticks(low, high, 3);
}

/** Whether a linear axis would show only the largest values. */
function isWide(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[0] > 0 && sorted[sorted.length - 1] > 20 * sorted[Math.floor(sorted.length / 2)];
}

const WIDTH = 360, HEIGHT = 210, LEFT = 50, RIGHT = 8, TOP = 8, BOTTOM = 24;

function chart(metric, runs) {
  const lines = runs.map((run) => ({run, points: points(run, metric)}))
    .filter((line) => line.points.length > 0);
  if (lines.length === 0) return null;
  const values = lines.flatMap((line) => line.points.map((p) => p[1]));
  const isLog = isWide(values);
  const scale = isLog ? Math.log10 : (value) => value;
  let low = scale(values.reduce((a, b) => Math.min(a, b)));
  let high = scale(values.reduce((a, b) => Math.max(a, b)));
  const margin = high > low ? 0.04 * (high - low) : Math.abs(high) * 0.05 || 0.5;
  low -= margin;
  high += margin;
  const first = lines.reduce((a, l) => Math.min(a, l.points[0][0]), 1);
  const last = lines.reduce((a, l) => Math.max(a, l.points[l.points.length - 1][0]), first);
  const start = Math.min(first, last), end = last > start ? last : start + 1;
  const x = (epoch) => LEFT + (WIDTH - LEFT - RIGHT) * (epoch - start) / (end - start);
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (scale(value) - low) / (high - low));

  const svg = drawn("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
    "aria-label": `${metric} over epochs, ${count(lines.length, "run")}`,
  });
  for (const tick of isLog ? logTicks(low, high) : ticks(low, high, 4)) {
    const value = isLog ? 10 ** tick : tick, place = y(value);
    svg.append(drawn("line", {class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: place, y2: place}));
    svg.append(drawn("text", {x: LEFT - 6, y: place + 4, "text-anchor": "end"}, short(value) || "0"));
  }
  for (const tick of ticks(start, end, 5)) {
    const attributes = {x: x(tick), y: HEIGHT - 7, "text-anchor": "middle"};
    svg.append(drawn("text", attributes, short(tick)));
  }
  const floor = HEIGHT - BOTTOM;
  svg.append(drawn("line", {class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: floor, y2: floor}));
  const isChosenHere = lines.some((line) => line.run.id === page.chosen);
  lines.sort((a, b) => (a.run.id === page.chosen) - (b.run.id === page.chosen)); // on top
  for (const line of lines) {
    const places = line.points.map((p) => [x(p[0]), y(p[1])]);
    line.places = places;
    const path = places.map((p) => `${p[0].toFixed(1)} ${p[1].toFixed(1)}`).join("L");
    const alone = lines.length > MANY ? "many" : "";
    const strength = !isChosenHere ? alone : line.run.id === page.chosen ? "strong" : "faint";
    const own = drawn("path", {class: strength, d: places.length > 1 ? `M${path}` : dot(places[0])});
    own.style.stroke = colour(line.run, runs);
    svg.append(own);
  }
  const unit = element("small", {}, isLog ? " log scale, by epoch" : " by epoch");
  const figure = element("figure", {class: "chart"}, element("figcaption", {}, metric, unit), svg);
  follow(svg, metric, lines);
  return figure;
}

function dot([x, y]) {
  return `M${x - 2} ${y}a2 2 0 1 0 4 0a2 2 0 1 0 -4 0`;
}

/** Shows the value nearest to the pointer. */
function follow(svg, metric, lines) {
  const show = (event) => {
    const box = svg.getBoundingClientRect();
    const px = (event.clientX - box.left) * WIDTH / box.width;
    const py = (event.clientY - box.top) * HEIGHT / box.height;
    let best = null, least = Infinity;
    for (const line of lines) {
      line.places.forEach(([x, y], i) => {
        const distance = (x - px) ** 2 + (y - py) ** 2;
        if (distance < least) [least, best] = [distance, {line, i}];
      });
    }
    if (!best) return;
    const [epoch, value] = best.line.points[best.i];
    const tip = at("tip");
    tip.textContent = `${shownName(best.line.run)} (${best.line.run.label}): ${metric} ` +
      `${short(value)} at epoch ${short(epoch)}`;
    tip.hidden = false;
    const left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
    const top = event.clientY + 18 + tip.offsetHeight > window.innerHeight
      ? event.clientY - 12 - tip.offsetHeight : event.clientY + 18;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${top}px`;
  };
  svg.addEventListener("pointermove", show);
  svg.addEventListener("pointerdown", show);
  svg.addEventListener("pointerleave", () => { at("tip").hidden = true; });
}

// ---- The table of runs ---------------------------------------------------------------------------

function lastOf(run, metric) {
  const known = points(run, metric);
  return known.length ? known[known.length - 1][1] : null;
}

function row(run, runs) {
  const swatch = element("span", {class: "swatch"});
  swatch.style.background = colour(run, runs);
  const bar = element("i");
  bar.style.width = `${(100 * share(run)).toFixed(1)}%`;
  const done = `${run.epoch}${run.epochs ? `/${run.epochs}` : ""}`;
  const number = (name, value) => element("td", {class: "number", "data-name": name}, value);
  return element("tr", {
    tabindex: "0", "data-id": run.id, "aria-selected": String(run.id === page.chosen),
  },
    element("td", {class: "name"}, swatch, shownName(run)),
    element("td", {class: `state ${run.state}`, title: run.message}, run.state),
    element("td", {}, element("span", {class: "progress"}, bar), `epoch ${done}`),
    number("", timeLeft(run)),
    number(`best ${run.metric}`, short(run.best)),
    number("α", short(lastOf(run, "alpha"))),
    number("λ", short(lastOf(run, "lambda"))),
  );
}

function table(runs) {
  const head = element("tr");
  const best = [...new Set(runs.map((run) => run.metric))];
  const names = ["run", "state", "progress", "left", `best ${best.length === 1 ? best[0] : ""}`,
    "α", "λ"];
  names.forEach((name, i) => {
    head.append(element("th", i > 2 ? {class: "number", scope: "col"} : {scope: "col"}, name));
  });
  const body = element("tbody", {}, ...runs.map((run) => row(run, runs)));
  const choose = (event) => {
    const own = event.target.closest("tr");
    if (!own || (event.type === "keydown" && event.key !== "Enter")) return;
    page.chosen = own.dataset.id === page.chosen ? "" : own.dataset.id;
    draw();
  };
  body.addEventListener("click", choose);
  body.addEventListener("keydown", choose);
  return element("div", {class: "runs"}, element("table", {}, element("thead", {}, head), body));
}

// ---- The details of a run ------------------------------------------------------------------------

function detail(run) {
  const made = element("section", {class: "detail"}, element("h3", {}, shownName(run)));
  const facts = [run.label, run.state];
  if (timeLeft(run)) facts.push(timeLeft(run));
  if (run.best !== null) facts.push(`best ${run.metric} ${short(run.best)}, epoch ${run.best_epoch}`);
  if (run.created) facts.push(`started ${run.created}`);
  made.append(element("p", {}, facts.join(" · ")));
  for (const note of [run.message, ...run.notes].filter(Boolean)) {
    made.append(element("p", {class: "missing"}, note));
  }
  const pictures = element("div", {class: "pictures"});
  for (const [name, version] of Object.entries(run.pictures)) {
    const source = `/pictures/${run.id}/${encodeURIComponent(name)}?${version}`;
    const title = name.replace(/\.png$/, "");
    pictures.append(element("figure", {}, element("img", {src: source, alt: title}),
      element("figcaption", {}, title)));
  }
  if (pictures.childNodes.length) made.append(pictures);
  const settings = element("ul", {class: "settings"});
  for (const [name, value] of Object.entries(run.settings)) {
    if (value === "") continue;
    settings.append(element("li", {}, element("span", {}, `${name} `), String(value)));
  }
  const folded = element("details", {}, element("summary", {}, "Settings"), settings);
  if (run.command) folded.append(element("p", {}, element("code", {}, run.command)));
  made.append(folded);
  return made;
}

// ---- The page -------------------------------------------------------------------------------------

function drawCounts() {
  const runs = [...page.runs.values()];
  const parts = STATES.map((state) => [state, runs.filter((run) => run.state === state).length])
    .filter(([, number]) => number > 0).map(([state, number]) => `${number} ${state}`);
  at("counts").textContent = [count(runs.length, "run"), ...parts].join(" · ");
  const running = runs.filter((run) => run.state === "running").length;
  document.title = running ? `${running} running · aimle watch` : "aimle watch";
}

function drawUnreadable(errors) {
  const box = at("unreadable");
  box.hidden = errors.length === 0;
  const list = element("ul", {}, ...errors.map((error) => element("li", {},
    element("code", {}, error.place), `: ${error.wrong}; ${error.remedy}`)));
  box.replaceChildren(element("strong", {}, "Could not be read:"), list);
}

/** Keeps what a reader has opened and scrolled to. */
function keepingPlace(change) {
  const scrolled = [...document.querySelectorAll(".runs")].map((box) => box.scrollTop);
  const open = document.querySelector(".detail details")?.open;
  const focused = document.activeElement?.closest?.("tr[data-id]")?.dataset.id;
  change();
  document.querySelectorAll(".runs").forEach((box, i) => { box.scrollTop = scrolled[i] || 0; });
  const folded = document.querySelector(".detail details");
  if (folded && open) folded.open = true;
  if (focused) document.querySelector(`tr[data-id="${focused}"]`)?.focus({preventScroll: true});
}

function draw() {
  drawCounts();
  at("title").textContent = page.folder;
  at("empty").hidden = page.runs.size > 0;
  at("controls").hidden = page.runs.size < 2;
  at("example").textContent = `aimle train dvae --out ${page.folder}/dvae`;
  if (!page.runs.has(page.chosen)) page.chosen = "";
  const sections = [];
  for (const [experiment, runs] of byExperiment()) {
    const charts = (page.charts[experiment] || []).map((metric) => chart(metric, runs));
    const chosen = runs.find((run) => run.id === page.chosen) || (runs.length === 1 && runs[0]);
    sections.push(element("section", {},
      element("h2", {}, experiment), table(runs),
      element("div", {class: "charts"}, ...charts.filter(Boolean)),
      ...(chosen ? [detail(chosen)] : [])));
  }
  if (page.runs.size > 0 && sections.length === 0) {
    sections.push(element("p", {}, "No run matches the filter."));
  }
  keepingPlace(() => at("experiments").replaceChildren(...sections));
}

function take(answer) {
  const before = page.version;
  page.version = answer.version;
  page.folder = answer.folder;
  page.charts = answer.charts;
  if (before === answer.version && !page.lost) return;
  const known = page.runs;
  const changed = new Map(answer.runs.map((run) => [run.id, run]));
  page.runs = new Map();
  for (const id of answer.order) {
    const run = changed.get(id) || known.get(id);
    if (run) page.runs.set(id, run);
  }
  drawUnreadable(answer.unreadable);
  draw();
}

async function poll() {
  clearTimeout(page.waiting);
  try {
    const response = await fetch(`/runs.json?since=${page.version}`);
    if (!response.ok) throw new Error(response.statusText);
    const answer = await response.json();
    if (answer.started !== page.started) { // another process: its versions are others
      page.started = answer.started;
      if (page.version !== 0) {
        page.version = 0;
        return poll();
      }
    }
    take(answer);
    page.lost = false;
    at("lost").hidden = true;
  } catch {
    page.lost = true;
    at("lost").textContent = "There is no answer from aimle watch: what you see is not current. " +
      "If it has ended, start it again and the page continues.";
    at("lost").hidden = false;
  }
  const isBusy = [...page.runs.values()].some((run) => run.state === "running");
  if (!document.hidden) page.waiting = setTimeout(poll, isBusy ? FAST : SLOW);
}

document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });
document.addEventListener("DOMContentLoaded", () => {
  at("filter").addEventListener("input", draw);
  at("state").addEventListener("change", draw);
  poll();
});
