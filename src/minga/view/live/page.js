// Renews the page from the run's state, about once a second while somebody looks; less often when nothing answers.
"use strict";

const at = (id) => document.getElementById(id);
const make = (tag, text = "", name = "") => {
  const node = document.createElement(tag);
  node.textContent = text;
  if (name) node.className = name;
  return node;
};
const SVG = "http://www.w3.org/2000/svg";
const drawing = (tag, attributes) => {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
};

const LOOK = 1000, HIDDEN = 10000, OVER = 15000, LONGEST_WAIT = 30000;
const STATES = { starting: "starting", running: "running", finishing: "drawing pictures", finished: "finished", waiting: "waiting to continue", stopped: "stopped", failed: "failed", lost: "lost" };
const CATEGORIES = ["compute", "boundary", "pack", "send", "wait", "reduce", "call", "balance", "output", "checkpoint", "other"];
const LINES = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6", "--line-7", "--line-8"];

let state = null;
let failures = 0;
let timer = 0;
let shownKey = "";
let frozen = null; // number, step and time of the stored frame that was chosen with the slider, null for the newest picture
let speeds = []; // [wall seconds of the run, steps done, updates of all cells], to say how fast it is now
let rates = { step: [], values: [] };

// Numbers -------------------------------------------------------------------------------------------------------------
const whole = (n) => Math.round(n).toLocaleString("en").replaceAll(",", "\u202f");
function short(n) {
  if (typeof n !== "number") return String(n);
  if (Number.isInteger(n) && Math.abs(n) < 1e7) return whole(n);
  if (n !== 0 && (Math.abs(n) >= 1e6 || Math.abs(n) < 1e-3)) return n.toExponential(3).replace("e+", "e");
  return String(Number(n.toPrecision(5)));
}
function prefixed(n) {
  for (const [limit, prefix] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (n >= limit) return `${(n / limit).toPrecision(3)} ${prefix}`;
  return n.toPrecision(3) + " ";
}
function bytes(n) {
  for (const [limit, unit] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]])
    if (n >= limit) return `${(n / limit).toPrecision(3)} ${unit}`;
  return `${n} B`;
}
function duration(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const all = Math.round(seconds), two = (n) => String(n).padStart(2, "0");
  const hours = Math.floor(all / 3600), minutes = Math.floor(all / 60) % 60;
  return hours ? `${whole(hours)}:${two(minutes)}:${two(all % 60)} h` : `${minutes}:${two(all % 60)} min`;
}
function roughly(seconds) {
  if (seconds < 5) return "a few seconds";
  if (seconds < 90) return `about ${Math.ceil(seconds / 5) * 5} s`;
  if (seconds < 5400) return `about ${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `about ${(seconds / 3600).toPrecision(2)} h`;
  return `about ${Math.round(seconds / 86400)} days`;
}

// Progress ------------------------------------------------------------------------------------------------------------
function remaining(progress) {
  const now = [progress.seconds, progress.step, progress.updates ?? progress.step];
  const last = speeds.at(-1);
  if (last && now[1] < last[1]) { // another run in the same directory
    speeds = [];
    rates = { step: [], values: [] };
  }
  if (!speeds.length || now[1] > speeds.at(-1)[1]) speeds.push(now);
  while (speeds.length > 2 && speeds.at(-1)[0] - speeds[1][0] > 30) speeds.shift();
  const first = speeds.length > 1 ? speeds[0] : [0, 0];
  const spent = now[0] - first[0];
  if (now[0] < 2 || spent <= 0 || now[1] <= first[1]) return null;
  return Math.max(0, ((progress.steps - now[1]) * spent) / (now[1] - first[1]) - (progress.age || 0));
}

function counted(progress) {
  return progress.cells === null ? "steps per second" : "cell updates per second"; // the cells of an unbounded plane are not counted
}
function showProgress() {
  const progress = state.progress, kind = progress.state;
  const share = progress.steps ? progress.step / progress.steps : kind === "finished" ? 1 : 0;
  const percent = Math.floor(100 * share);
  document.title = `${kind === "running" ? `${percent} % · ` : ""}${state.name} · minga`;
  at("name").textContent = state.name;
  at("state").textContent = STATES[kind] || kind;
  at("state").dataset.state = kind;
  at("done").style.width = `${100 * share}%`;
  at("bar").setAttribute("aria-valuenow", percent);
  at("step").textContent = kind === "starting" ? "–" : `step ${whole(progress.step)}`;
  at("steps").textContent = kind === "starting" ? "kernels are compiled, fields are filled" : `of ${whole(progress.steps)}, ${percent} %`;
  const rate = state.result.cells_per_second || progress.rate, seconds = state.result.seconds || progress.seconds;
  at("rate").textContent = rate ? prefixed(rate) : "–";
  at("rate-word").textContent = counted(progress) + (state.result.seconds ? "" : ", output included");
  at("spent").textContent = seconds ? duration(seconds) : "–";
  at("spent-word").textContent = state.result.seconds ? "in steps" : "since the first step";
  const left = kind === "running" ? remaining(progress) : null;
  const silent = kind === "running" && progress.age > 15;
  at("left").textContent = state.over || kind === "finishing" ? "–" : left === null ? "too early to say" : roughly(left);
  at("left-word").textContent = state.over ? ended(progress, state.result) : silent ? `left; no news for ${duration(progress.age)}` : state.stops ? "left at most: it may end sooner" : "left, at this speed";
  at("reason").hidden = !progress.reason;
  at("reason").textContent = progress.reason || "";
  at("reason").dataset.state = kind;
  at("report").hidden = !state.report;
  at("run").textContent = state.run;
  at("digest").textContent = state.result.digest ? `digest ${state.result.digest}` : "";
  if (speeds.length > 1 && speeds.at(-1)[1] > (rates.step.at(-1) ?? -1)) {
    const [before, now] = speeds.slice(-2);
    rates.step.push(now[1]);
    rates.values.push(((now[2] - before[2]) * (progress.cells ?? 1)) / (now[0] - before[0]));
    if (rates.step.length > 600) rates = { step: rates.step.filter((_, i) => i % 2), values: rates.values.filter((_, i) => i % 2) };
  }
}
function ended(progress, result) {
  return progress.state === "failed" ? "the run has failed" : progress.state === "lost" ? "the run was lost" : (result.ended && result.ended.text) || "the run is over";
}
function showAbout() {
  const items = state.about.map(([word, value]) => {
    const item = make("div");
    item.append(make("dt", word), make("dd", value));
    return item;
  });
  at("about").replaceChildren(...items);
}

// The field -----------------------------------------------------------------------------------------------------------
const frameOf = (place) => [...state.frames[place], state.times[place]];
const moment = ([, step, time]) => `step ${whole(step)}${time && `, ${time}`}`;
function showField() {
  const picture = state.picture, frames = state.frames;
  const names = [...at("fields").options].map((option) => option.value);
  if (names.join("\n") !== state.fields.join("\n"))
    at("fields").replaceChildren(...state.fields.map((name) => new Option(name, name)));
  at("choice").hidden = state.fields.length < 2;
  if (!picture) return;
  at("fields").value = picture.field;
  at("field-name").textContent = picture.field;
  at("frames").hidden = frames.length < 2;
  at("slider").max = frames.length - 1;
  if (frozen === null) at("slider").value = frames.length - 1;
  if (frames.length) at("slider").setAttribute("aria-valuetext", moment(frameOf(at("slider").value)));
  at("newest").disabled = frozen === null;
  const query = new URLSearchParams(frozen === null ? { key: picture.key } : { field: picture.field, index: frozen[0] });
  const address = (frozen === null ? "picture?" : "frame?") + query;
  const words = frozen === null ? `step ${whole(picture.step)}${picture.live ? ", as it is now" : ", stored"}` : `${moment(frozen)}, stored`;
  if (address !== shownKey) load(address, words, picture);
}
function load(address, words, picture) {
  shownKey = address;
  const next = new Image();
  next.onload = () => {
    if (shownKey !== address) return; // another one was wanted meanwhile
    const image = at("picture");
    image.src = next.src;
    image.alt = `${picture.field}, ${words}`;
    image.dataset.field = picture.field;
    image.hidden = false;
    image.style.aspectRatio = String(picture.aspect);
    at("easel").style.width = `min(100%, calc(78vh * ${picture.aspect}))`;
    image.style.imageRendering = next.naturalWidth < image.clientWidth * devicePixelRatio ? "pixelated" : "auto";
    at("no-picture").hidden = true;
    at("shown").textContent = words;
    showLegend(picture);
    document.dispatchEvent(new CustomEvent("picture"));
  };
  next.onerror = () => { if (shownKey === address) shownKey = ""; };
  next.src = address;
}
function showLegend(picture) {
  const items = [];
  if (picture.states) {
    for (const [value, colour] of picture.legend) {
      const box = drawing("svg", { viewBox: "0 0 1 1" });
      box.append(drawing("rect", { width: 1, height: 1, fill: colour }));
      const item = make("span");
      item.append(box, value);
      items.push(item);
    }
  } else {
    const box = drawing("svg", { viewBox: `0 0 ${picture.legend.length} 1`, preserveAspectRatio: "none", class: "scale" });
    picture.legend.forEach(([, colour], k) => box.append(drawing("rect", { x: k, width: 1.05, height: 1, fill: colour })));
    const item = make("span");
    item.append(picture.legend[0][0], box, picture.legend.at(-1)[0]);
    items.push(item);
  }
  at("legend").replaceChildren(...items);
  at("legend").hidden = false;
}

// Three dimensions ----------------------------------------------------------------------------------------------------
let sceneFrames = 0, renewScene = null;
async function showScene() {
  if (!state.scene || state.scene === sceneFrames || document.hidden) return;
  sceneFrames = state.scene;
  try {
    const answer = await fetch("scene", { signal: AbortSignal.timeout(15000) });
    if (!answer.ok) throw new Error(await answer.text());
    const data = await answer.json();
    if (!data) return;
    at("scene").hidden = false;
    if (renewScene) renewScene(data);
    else renewScene = turningScene(at("scene"), data);
    if (!renewScene) at("scene").hidden = true; // no WebGL here
  } catch {
    sceneFrames = 0; // asked again with the next state
  }
}

// Curves --------------------------------------------------------------------------------------------------------------
function showCurves() {
  const { step, curves } = state.series;
  const figures = curves.map(([name, lines]) => figure(name, step, lines));
  if (rates.step.length > 1) figures.push(figure(`${counted(state.progress)}, since this page is open`, rates.step, [["", rates.values]]));
  at("curves").replaceChildren(...figures.filter(Boolean));
  at("curves-note").textContent = curves.length ? "" : state.over ? "no series were kept" : "observables are added at every frame";
}
function figure(name, steps, lines) {
  const numbers = lines.flatMap(([, values]) => values).filter((value) => typeof value === "number");
  if (!numbers.length) return null;
  const low = Math.min(...numbers), high = Math.max(...numbers);
  const span = high - low || 1, level = high === low, from = steps[0], width = steps.at(-1) - from || 1;
  const plot = drawing("svg", { viewBox: "0 0 1000 100", preserveAspectRatio: "none", role: "img" });
  plot.append(drawing("title", {}));
  plot.firstChild.textContent = `${name} from step ${from} to step ${steps.at(-1)}`;
  lines.forEach(([, values], k) => {
    const points = values
      .map((value, i) => (typeof value === "number" ? `${(1000 * (steps[i] - from)) / width},${level ? 50 : 96 - (92 * (value - low)) / span}` : ""))
      .filter(Boolean);
    if (points.length === 1) points.push(points[0].replace(/^[^,]*/, "1000"));
    const line = drawing("polyline", { points: points.join(" ") });
    line.style.stroke = `var(${LINES[k % LINES.length]})`;
    plot.append(line);
  });
  const caption = make("figcaption");
  const now = lines.map(([label, values]) => `${label ? `${label}: ` : ""}${short(values.at(-1))}`);
  caption.append(make("span", name), make("b", now.length > 4 ? `${now.length} numbers` : now.join("   ")));
  const ends = make("div", "", "ends"), below = make("div", "", "below"), box = make("div", "", "plot");
  ends.append(make("span", short(high)), make("span", level ? "" : short(low)));
  below.append(make("span", whole(from)), make("span", `step ${whole(steps.at(-1))}`));
  box.append(plot, ends, below);
  const whole_figure = make("figure");
  whole_figure.append(caption, box);
  return whole_figure;
}

// The ledger ----------------------------------------------------------------------------------------------------------
function showLedger() {
  const { ranks, count, levels, messages, bytes: volume } = state.ledger;
  at("no-ledger").hidden = count > 0;
  const among = levels.filter((level) => level.messages).map((level) => `${whole(level.messages)} ${level.name}`);
  at("traffic").textContent = count && messages ? `${whole(messages)} messages${among.length ? ` (${among.join(", ")})` : ""}, ${bytes(volume)}` : "";
  const sums = ranks.map((entry) => Object.values(entry.seconds || {}).reduce((sum, value) => sum + value, 0));
  const longest = Math.max(...sums, 1e-9);
  const used = new Set();
  at("ranks").replaceChildren(
    ...ranks.map((entry, k) => {
      const row = make("div", "", "rank"), stack = make("div", "", "stack");
      for (const [name, seconds] of Object.entries(entry.seconds || {}).sort((a, b) => order(a[0]) - order(b[0]))) {
        if (!(seconds > 0)) continue;
        used.add(name);
        const part = make("i");
        part.style.width = `${(100 * seconds) / longest}%`;
        part.style.background = colourOf(name);
        part.title = `${name} ${duration(seconds)}`;
        stack.append(part);
      }
      const busy = sums[k] ? Math.round((100 * (entry.seconds.compute || 0)) / sums[k]) : 0;
      row.append(make("span", `rank ${entry.rank}`), stack, make("span", `${busy} % computing, ${duration(sums[k])}`));
      row.title = `${entry.host || ""}: ${whole(entry.messages || 0)} messages, ${bytes(entry.bytes || 0)}`;
      return row;
    }),
  );
  if (count > ranks.length) at("ranks").append(make("p", `${ranks.length} of ${whole(count)} ranks are shown.`, "quiet"));
  at("categories").replaceChildren(
    ...[...used].sort((a, b) => order(a) - order(b)).map((name) => {
      const item = make("li"), box = make("i");
      box.style.background = colourOf(name);
      const seconds = ranks.reduce((sum, entry) => sum + ((entry.seconds || {})[name] || 0), 0);
      item.append(box, `${name} ${duration(seconds)}`);
      return item;
    }),
  );
}
const order = (name) => (CATEGORIES.indexOf(name) + CATEGORIES.length + 1) % (CATEGORIES.length + 1);
const colourOf = (name) => `var(--${CATEGORIES.includes(name) ? name : "other"})`;

// Asking --------------------------------------------------------------------------------------------------------------
async function ask() {
  clearTimeout(timer);
  const query = new URLSearchParams({ field: at("fields").value || "", look: document.hidden ? "0" : "1" });
  try {
    const answer = await fetch(`state?${query}`, { signal: AbortSignal.timeout(15000) });
    if (!answer.ok) throw new Error(await answer.text());
    state = await answer.json();
    failures = 0;
    show();
  } catch (error) {
    failures += 1;
    at("contact").textContent = `The page's server does not answer (${error.message}). That says nothing about the run. Trying again.`;
    at("contact").classList.add("lost");
  }
  const pause = failures ? Math.min(LONGEST_WAIT, LOOK * 2 ** failures) : state.over ? OVER : document.hidden ? HIDDEN : LOOK;
  timer = setTimeout(ask, pause);
}
function show() {
  for (const part of [showProgress, showAbout, showField, showScene, showCurves, showLedger]) part();
  document.dispatchEvent(new CustomEvent("state"));
  at("contact").textContent = state.over
    ? "The run is over; its directory holds all of this."
    : state.paint
      ? "Cells that you paint are recorded with their step in edits.jsonl. Close this page whenever you like, the run goes on."
      : "This page only reads the run's directory: close it whenever you like, the run goes on.";
  at("contact").classList.remove("lost");
  document.body.dataset.ready = "1";
}

at("slider").addEventListener("input", () => {
  const index = Number(at("slider").value);
  frozen = index === state.frames.length - 1 ? null : frameOf(index);
  showField();
});
const newest = () => { frozen = null; showField(); };
at("newest").addEventListener("click", newest);
at("frames").addEventListener("keydown", (event) => { if (event.key === "Escape") newest(); });
at("fields").addEventListener("change", () => { frozen = null; ask(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) ask(); });
ask();
