// Fields in sections and lines along the flow, as triangles for scene.js, and their controls.

// The plane of cells number `index` across an axis; cells without a colour are left out.
function sectionMesh(volumes, field, cells, axis, index, place) {
  const shape = volumes.centres.map(function (c) { return c.length; }), u = (axis + 1) % 3, v = (axis + 2) % 3;
  const at = place(axis, volumes.centres[axis][index]), tone = field.colours.map(sceneColour);
  const edges = volumes.edges.map(function (e, k) { return e.map(function (x) { return place(k, x); }); });
  const mesh = { points: [], normals: [], tints: [], corners: [] }, cell = [0, 0, 0];
  cell[axis] = index;
  for (cell[u] = 0; cell[u] < shape[u]; cell[u]++) for (cell[v] = 0; cell[v] < shape[v]; cell[v]++) {
    const colour = tone[cells[(cell[0] * shape[1] + cell[1]) * shape[2] + cell[2]]], first = mesh.points.length / 3;
    if (!colour) continue;
    [[0, 0], [1, 0], [1, 1], [0, 1]].forEach(function (offset) {
      const point = [0, 0, 0];
      point[axis] = at; point[u] = edges[u][cell[u] + offset[0]]; point[v] = edges[v][cell[v] + offset[1]];
      mesh.points.push(point[0], point[1], point[2]);
      mesh.normals.push(0, 0, 0);
      mesh.tints.push(colour[0], colour[1], colour[2]);
    });
    mesh.corners.push(first, first + 1, first + 2, first, first + 2, first + 3);
  }
  return mesh;
}

// Tubes of six sides around the lines of the flow, coloured by the speed.
function flowMesh(flow, ends, place) {
  const sides = 6, thick = 0.006, mesh = { points: [], normals: [], tints: [], corners: [] };
  const values = new Uint16Array(sceneBytes(flow.points).buffer), tone = flow.colours.map(sceneColour);
  let first = 0;
  flow.lengths.forEach(function (length) {
    const line = [], speeds = [];
    for (let k = first; k < first + length; k++) {
      line.push(ends.map(function (e, axis) { return place(axis, e[0] + values[4 * k + axis] / 65535 * (e[1] - e[0])); }));
      speeds.push(values[4 * k + 3] / 65535);
    }
    first += length;
    let across = null;
    line.forEach(function (point, k) {
      const before = line[Math.max(k - 1, 0)], after = line[Math.min(k + 1, length - 1)];
      const along = unit(minus(after, before));
      // The direction across the line turns with it as little as possible, so that tubes are not twisted.
      const start = across || (Math.abs(along[0]) < 0.9 ? [1, 0, 0] : [0, 1, 0]);
      across = unit(minus(start, along.map(function (a) { return a * dot(start, along); })));
      const other = [along[1] * across[2] - along[2] * across[1], along[2] * across[0] - along[0] * across[2], along[0] * across[1] - along[1] * across[0]];
      const colour = tone[Math.min(tone.length - 1, Math.floor(speeds[k] * tone.length))], ring = mesh.points.length / 3;
      for (let side = 0; side < sides; side++) {
        const c = Math.cos(2 * Math.PI * side / sides), s = Math.sin(2 * Math.PI * side / sides);
        const normal = across.map(function (a, n) { return c * a + s * other[n]; });
        normal.forEach(function (n, axis) {
          mesh.normals.push(n);
          mesh.points.push(point[axis] + thick * n);
          mesh.tints.push(colour[axis]);
        });
        if (k === length - 1) continue;
        const next = (side + 1) % sides;
        mesh.corners.push(ring + side, ring + next, ring + sides + side, ring + next, ring + sides + next, ring + sides + side);
      }
    });
  });
  return mesh;

  function minus(a, b) { return a.map(function (x, k) { return x - b[k]; }); }
  function dot(a, b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
  function unit(a) { const size = Math.sqrt(dot(a, a)) || 1; return a.map(function (x) { return x / size; }); }
}

// Controls of the parts of a scene. `stage` has place(axis, value), put(name, mesh or null, lit) and show(name, yes).
// Returns a function that takes later data.
function sceneControls(box, data, stage) {
  const panel = document.createElement("div");
  panel.className = "parts";
  box.querySelector(".controls, .frames").after(panel);
  const solid = tick("solid"), flow = tick("flow lines");
  const field = choice("section"), axis = choice("across"), slide = document.createElement("input"), said = document.createElement("span");
  slide.type = "range"; slide.min = 0; slide.step = 1;
  slide.setAttribute("aria-label", "position of the section");
  said.className = "step quiet";
  const legends = { section: legend(), flow: legend() };
  panel.append(solid.label, flow.label, field.label, axis.label, slide, said, legends.section, legends.flow);
  let cells = [], known = "";

  function tick(text) {
    const label = document.createElement("label"), input = document.createElement("input");
    input.type = "checkbox"; input.checked = true;
    label.append(input, " " + text);
    return { label: label, input: input };
  }
  function choice(text) {
    const label = document.createElement("label"), input = document.createElement("select");
    label.append(text + " ", input);
    return { label: label, input: input };
  }
  function legend() {
    const whole = document.createElement("div"), name = document.createElement("div"), bar = document.createElement("div"), ends = document.createElement("div");
    whole.className = "key"; name.className = "quiet"; bar.className = "gradient"; ends.className = "ends";
    ends.append(document.createElement("span"), document.createElement("span"));
    whole.append(name, bar, ends);
    return whole;
  }
  function explain(whole, part, when) {
    whole.hidden = !part;
    if (!part) return;
    whole.children[0].textContent = part.label + ", " + when + (part.clipped ? "; " + part.clipped : "");
    const last = part.colours.length; // states have a colour each, numbers a smooth scale
    const stops = part.states ? part.colours.map(function (c, k) { return c + " " + 100 * k / last + "% " + 100 * (k + 1) / last + "%"; }) : part.colours;
    whole.children[1].style.background = "linear-gradient(to right, " + stops.join(", ") + ")";
    whole.children[2].children[0].textContent = part.low;
    whole.children[2].children[1].textContent = part.high;
  }
  function options(select, texts, chosen) {
    select.replaceChildren.apply(select, texts.map(function (text, k) { return new Option(text, k, false, k === chosen); }));
  }

  function showSection() {
    const volumes = data.volumes, number = volumes ? +field.input.value - 1 : -1, across = +axis.input.value;
    const shown = number >= 0 ? volumes.fields[number] : null;
    [axis.label, slide, said].forEach(function (part) { part.hidden = !shown; });
    explain(legends.section, shown, volumes ? volumes.when : "");
    if (!shown) { stage.put("section", null, 0); return; }
    const centres = volumes.centres[across], index = Math.min(+slide.value, centres.length - 1);
    slide.max = centres.length - 1;
    const place = data.axes[across] + ": " + (+centres[index].toPrecision(4));
    said.textContent = place;
    slide.setAttribute("aria-valuetext", place);
    cells[number] = cells[number] || sceneBytes(shown.cells);
    stage.put("section", sectionMesh(volumes, shown, cells[number], across, index, stage.place), 0);
  }
  function showAcross() {
    const centres = data.volumes ? data.volumes.centres[+axis.input.value] : [0];
    slide.max = centres.length - 1;
    slide.value = data.volumes && data.volumes.across === +axis.input.value ? data.volumes.index : Math.floor(centres.length / 2);
    showSection();
  }
  function showFlow() {
    const shown = data.flow && flow.input.checked;
    explain(legends.flow, shown ? data.flow : null, data.flow ? data.flow.when : "");
    stage.put("flow", shown ? flowMesh(data.flow, data.ends, stage.place) : null, 1);
  }
  function take(next) {
    data = next;
    cells = [];
    solid.label.hidden = !data.solid;
    flow.label.hidden = !data.flow;
    field.label.hidden = !data.volumes;
    const names = data.volumes ? data.volumes.fields.map(function (one) { return one.label; }) : [];
    if (known !== names.join()) { // later frames of a run have the same fields
      known = names.join();
      options(field.input, ["none"].concat(names), data.solid ? 0 : Math.min(1, names.length));
      options(axis.input, data.axes, data.volumes ? data.volumes.across : 2);
      showAcross();
    } else showSection();
    showFlow();
  }

  flow.input.checked = !data.solid;
  field.input.addEventListener("change", showSection);
  axis.input.addEventListener("change", showAcross);
  slide.addEventListener("input", showSection);
  flow.input.addEventListener("change", showFlow);
  solid.input.addEventListener("change", function () { stage.show("solid", solid.input.checked); });
  take(data);
  return take;
}
