// Sets cells of the run by mouse, pen, finger or keys, where the run allows it; the run records what it was asked for.
"use strict";

const fresh = at("fresh"), pen = fresh.getContext("2d");
const SEND = 120, MOST_CELLS = 2000;
let brush = 1, lastCell = null, cursor = null, sending = 0;
let wishes = new Map(), wishedField = ""; // cells of a field that were painted and not sent yet: index to state
let sent = Promise.resolve(); // the last request: they follow one another, as of two wishes for a cell the later one counts
let shownSince = []; // [time, row, column] of strokes that the picture may not show yet

const canPaint = () => state && state.paint && state.picture && at("picture").dataset.field === state.picture.field && frozen === null && state.picture.field in state.paint.states && state.picture.states;
const colourOfState = (value) => (state.picture.legend.find(([label]) => Number(label) === value) || [0, "#888888"])[1];

function showPaint() {
  const able = Boolean(canPaint());
  at("paint").hidden = fresh.hidden = !able;
  if (!able) return;
  if (state.paint.refused) at("painted").textContent = state.paint.refused;
  const [rows, columns] = state.paint.shape, states = state.paint.states[state.picture.field];
  if (fresh.width !== columns || fresh.height !== rows) [fresh.width, fresh.height] = [columns, rows];
  fresh.tabIndex = 0;
  fresh.setAttribute("role", "application");
  fresh.setAttribute("aria-label", `${state.picture.field}: paint with the pointer, or with arrow keys and space; a digit chooses a state`);
  if (at("brushes").childElementCount !== states) {
    at("brushes").replaceChildren(...Array.from({ length: states }, (_, value) => brushOf(value)));
    choose(Math.min(brush, states - 1));
  }
}
function brushOf(value) {
  const button = make("button"), box = drawing("svg", { viewBox: "0 0 1 1", "aria-hidden": "true" });
  box.append(drawing("rect", { width: 1, height: 1, fill: colourOfState(value) }));
  button.type = "button";
  button.setAttribute("role", "radio");
  button.append(box, `state ${value}`);
  button.addEventListener("click", () => choose(value));
  return button;
}
function choose(value) {
  brush = value;
  [...at("brushes").children].forEach((button, k) => {
    button.setAttribute("aria-checked", String(k === value));
    button.tabIndex = k === value ? 0 : -1; // Tab stops once, arrow keys go on
  });
}
at("brushes").addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key], buttons = at("brushes").children;
  if (!by) return;
  event.preventDefault();
  choose((brush + by + buttons.length) % buttons.length);
  buttons[brush].focus();
});

// Strokes -------------------------------------------------------------------------------------------------------------
function cellAt(event) {
  const box = fresh.getBoundingClientRect();
  const inside = (at, low, size, cells) => Math.min(cells - 1, Math.max(0, Math.floor(((at - low) / size) * cells)));
  return [inside(event.clientY, box.top, box.height, fresh.height), inside(event.clientX, box.left, box.width, fresh.width)];
}
function set(row, column) {
  if (wishes.size >= MOST_CELLS || wishedField !== state.picture.field) send();
  wishedField = state.picture.field;
  wishes.set(row * fresh.width + column, brush);
  shownSince.push([performance.now(), row, column]);
  pen.fillStyle = colourOfState(brush);
  pen.fillRect(column, row, 1, 1);
  if (!sending) sending = setTimeout(send, SEND);
}
function stroke([row, column]) {
  const [y, x] = lastCell || [row, column];
  const count = Math.max(Math.abs(row - y), Math.abs(column - x), 1);
  for (let k = lastCell ? 1 : 0; k <= count; k += 1) set(Math.round(y + ((row - y) * k) / count), Math.round(x + ((column - x) * k) / count));
  lastCell = [row, column];
}
function send() {
  clearTimeout(sending);
  sending = 0;
  if (!wishes.size) return;
  const cells = [...wishes].map(([index, value]) => [Math.floor(index / fresh.width), index % fresh.width, value]);
  const body = JSON.stringify({ field: wishedField, cells });
  wishes = new Map();
  sent = sent.then(() => post(body, cells));
}
async function post(body, cells) {
  try {
    const answer = await fetch("paint", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    at("painted").textContent = answer.ok ? `${whole(cells.length)} ${cells.length === 1 ? "cell" : "cells"} sent to the run` : (await answer.text()).trim();
  } catch (error) {
    at("painted").textContent = `not painted: the page's server does not answer (${error.message})`;
  }
}

fresh.addEventListener("pointerdown", (event) => {
  if (event.button !== 0) return;
  fresh.setPointerCapture(event.pointerId);
  lastCell = null;
  stroke((cursor = cellAt(event)));
});
fresh.addEventListener("pointermove", (event) => {
  if (!fresh.hasPointerCapture(event.pointerId)) return;
  const parts = event.getCoalescedEvents?.() ?? [];
  for (const part of parts.length ? parts : [event]) stroke((cursor = cellAt(part)));
});
fresh.addEventListener("keydown", (event) => {
  const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  cursor ??= [Math.floor(fresh.height / 2), Math.floor(fresh.width / 2)];
  if (event.key in moves) {
    cursor = cursor.map((n, axis) => Math.min([fresh.height, fresh.width][axis] - 1, Math.max(0, n + moves[event.key][axis])));
    at("painted").textContent = `row ${cursor[0]}, column ${cursor[1]}`;
  } else if (event.key === " ") set(...cursor);
  else if (event.key === "Escape") return fresh.blur();
  else return;
  event.preventDefault();
  showCursor();
});
document.addEventListener("keydown", (event) => {
  const digit = /^[0-9]$/.test(event.key) && !event.ctrlKey && !event.metaKey && !event.altKey ? Number(event.key) : -1;
  if (canPaint() && event.target.tagName !== "SELECT" && digit >= 0 && digit < at("brushes").childElementCount) choose(digit);
});
function showCursor() {
  forget();
  if (cursor && document.activeElement === fresh) {
    pen.fillStyle = "rgb(255 80 0 / 0.75)";
    pen.fillRect(cursor[1], cursor[0], 1, 1);
  }
}
function forget() { // strokes that pictures have had time to show
  shownSince = shownSince.filter(([time]) => performance.now() - time < 2500);
  pen.clearRect(0, 0, fresh.width, fresh.height);
  pen.fillStyle = colourOfState(brush);
  for (const [, row, column] of shownSince) pen.fillRect(column, row, 1, 1);
}
fresh.addEventListener("blur", forget);
at("fields").addEventListener("change", () => { send(); lastCell = null; shownSince = []; });
document.addEventListener("picture", () => { showPaint(); if (canPaint()) showCursor(); });
document.addEventListener("state", showPaint);
