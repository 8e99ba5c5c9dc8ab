// A scene in three dimensions, which turns: drag or arrow keys turn it, wheel, pinch, + and - zoom, the slider grows a solid.
function sceneBytes(text) { return Uint8Array.from(atob(text), function (c) { return c.charCodeAt(0); }); }
function sceneColour(code) { return [1, 3, 5].map(function (k) { return parseInt(code.substr(k, 2), 16) / 255; }); }

// Returns a function that takes the numbers of later frames, or null without WebGL.
function turningScene(box, data) {
  const canvas = box.querySelector("canvas"), slider = box.querySelector("input"), label = box.querySelector(".step");
  const gl = canvas.getContext("webgl", { antialias: true, preserveDrawingBuffer: true });
  if (!gl || !gl.getExtension("OES_element_index_uint")) return null;
  const radius = Math.hypot.apply(null, data.ends.map(function (e) { return e[1] - e[0]; })) / 2;
  function place(axis, value) { return (value - (data.ends[axis][0] + data.ends[axis][1]) / 2) / radius; }

  function part(kind, text) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    return shader;
  }
  const program = gl.createProgram();
  gl.attachShader(program, part(gl.VERTEX_SHADER,
    "attribute vec3 place, normal, colour; uniform mat3 turn; uniform float zoom; varying vec3 n, c;" +
    "void main() { vec3 p = turn * place * zoom; n = turn * normal; c = colour; gl_Position = vec4(p.xy, -p.z / (2.0 * max(zoom, 1.0)), 1.0); }"));
  gl.attachShader(program, part(gl.FRAGMENT_SHADER,
    "precision mediump float; varying vec3 n, c; uniform float lit;" +
    "void main() { vec3 m = normalize(n + vec3(0.0, 0.0, 1e-6)); vec3 l = normalize(vec3(0.35, 0.8, 0.5));" +
    "float d = 0.35 + 0.65 * max(dot(m, l), 0.0); float s = pow(max(reflect(-l, m).z, 0.0), 24.0) * 0.25;" +
    "gl_FragColor = vec4(mix(c, c * d + s, lit), 1.0); }"));
  gl.linkProgram(program);
  gl.useProgram(program);
  const at = {};
  ["turn", "zoom", "lit"].forEach(function (name) { at[name] = gl.getUniformLocation(program, name); });

  // The parts that are drawn, by name.
  const shown = {}, hidden = new Set();
  function put(name, mesh, lit, mode) {
    if (shown[name]) ["points", "normals", "tints", "corners"].forEach(function (part) { gl.deleteBuffer(shown[name][part]); });
    delete shown[name];
    if (mesh) {
      const stored = shown[name] = { count: mesh.corners.length, lit: lit, mode: mode || gl.TRIANGLES };
      ["points", "normals", "tints"].forEach(function (part) {
        stored[part] = gl.createBuffer();
        gl.bindBuffer(gl.ARRAY_BUFFER, stored[part]);
        gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(mesh[part]), gl.STATIC_DRAW);
      });
      stored.corners = gl.createBuffer();
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, stored.corners);
      gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, new Uint32Array(mesh.corners), gl.STATIC_DRAW);
    }
    ask();
  }
  function show(name, yes) {
    if (yes) hidden.delete(name); else hidden.add(name);
    ask();
  }
  function draw(stored) {
    [["points", "place"], ["normals", "normal"], ["tints", "colour"]].forEach(function (pair) {
      const where = gl.getAttribLocation(program, pair[1]);
      gl.bindBuffer(gl.ARRAY_BUFFER, stored[pair[0]]);
      gl.enableVertexAttribArray(where);
      gl.vertexAttribPointer(where, 3, gl.FLOAT, false, 0, 0);
    });
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, stored.corners);
    gl.uniform1f(at.lit, stored.lit);
    gl.drawElements(stored.mode, stored.count, gl.UNSIGNED_INT, 0);
  }

  let around = 0.62, above = 0.42, zoom = 0.98, waiting = false;
  function paint() {
    waiting = false;
    const size = Math.round(canvas.clientWidth * (window.devicePixelRatio || 1));
    if (size && canvas.width !== size) canvas.width = canvas.height = size;
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST);
    const s = Math.sin(around), c = Math.cos(around), r = Math.sin(above), f = Math.cos(above), up = data.down ? -1 : 1, near = data.away ? -1 : 1;
    // Columns: the directions on the screen of the axes of the grid. The first one points upwards, or downwards as depth, the
    // second one towards the viewer or away, so that x, y and z are right-handed.
    gl.uniformMatrix3fv(at.turn, false, [0, up * f, up * r, -near * s, -near * r * c, near * f * c, c, -r * s, f * s]);
    gl.uniform1f(at.zoom, zoom);
    Object.keys(shown).forEach(function (name) { if (!hidden.has(name)) draw(shown[name]); });
  }
  function ask() { if (!waiting) { waiting = true; requestAnimationFrame(paint); } }

  let born = null, colours = [], last = 0;
  function take(next) {
    data = next;
    slider.parentNode.hidden = !data.solid;
    if (!data.solid) return;
    born = sceneBytes(data.solid.born);
    colours = data.solid.colours.map(sceneColour);
    last = colours.length;
    slider.max = last;
  }
  function grow(until) {
    if (!data.solid) return;
    put("solid", solidSurface(data.solid, born, colours, until, place), 1);
    const time = data.solid.times[until - 1];
    label.textContent = "step " + data.solid.steps[until - 1] + (time && ", " + time);
    slider.setAttribute("aria-valuetext", label.textContent);
  }
  function turn(right, up) {
    around += right;
    above = Math.max(-1.57, Math.min(1.57, above + up));
    ask();
  }
  function scale(by) { zoom = Math.max(0.3, Math.min(12, zoom * by)); ask(); }

  let spinning = !matchMedia("(prefers-reduced-motion: reduce)").matches && !data.still;
  function spin() { if (spinning) { turn(0.004, 0); requestAnimationFrame(spin); } }
  const held = new Map();
  let apart = 0;
  canvas.addEventListener("pointerdown", function (e) { spinning = false; held.set(e.pointerId, e); canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener("pointermove", function (e) {
    const before = held.get(e.pointerId);
    if (!before) return;
    held.set(e.pointerId, e);
    if (held.size === 1) turn((before.clientX - e.clientX) * 0.01, (e.clientY - before.clientY) * 0.01);
    const two = Array.from(held.values());
    if (held.size !== 2) { apart = 0; return; }
    const now = Math.hypot(two[0].clientX - two[1].clientX, two[0].clientY - two[1].clientY);
    if (apart) scale(now / apart);
    apart = now;
  });
  ["pointerup", "pointercancel"].forEach(function (name) {
    canvas.addEventListener(name, function (e) { held.delete(e.pointerId); apart = 0; });
  });
  canvas.addEventListener("wheel", function (e) { e.preventDefault(); spinning = false; scale(Math.exp(-e.deltaY * 0.001)); }, { passive: false });
  canvas.addEventListener("keydown", function (e) {
    if (e.key === "Escape") spinning = false;
    const does = {
      ArrowLeft: [0.1, 0], ArrowRight: [-0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1],
      "+": 1.15, "=": 1.15, "-": 1 / 1.15
    }[e.key];
    if (!does) return;
    e.preventDefault();
    spinning = false;
    if (Array.isArray(does)) turn(does[0], does[1]); else scale(does);
  });
  slider.addEventListener("input", function () { grow(+slider.value); });
  window.addEventListener("resize", ask);
  box.classList.add("turns");

  // The box around the cells.
  const frame = { points: [], normals: new Array(24).fill(0), tints: new Array(24).fill(0.5), corners: [] };
  for (let k = 0; k < 8; k++) [k >> 2, k >> 1 & 1, k & 1].forEach(function (end, axis) { frame.points.push(place(axis, data.ends[axis][end])); });
  for (let k = 0; k < 8; k++) [1, 2, 4].forEach(function (bit) { if (!(k & bit)) frame.corners.push(k, k | bit); });
  put("box", frame, 0, gl.LINES);
  take(data);
  slider.value = last;
  grow(last);
  const renew = sceneControls(box, data, { place: place, put: put, show: show });
  spin();
  return function (next) {
    const newest = +slider.value >= last; // also before there was a solid
    take(next);
    if (newest) slider.value = last;
    grow(+slider.value);
    renew(next);
  };
}
document.querySelectorAll(".scene").forEach(function (box) {
  const stored = box.querySelector("script[type='application/json']");
  if (stored) turningScene(box, JSON.parse(stored.textContent));
});
