// The lit surface of a solid, which turns: drag or arrow keys turn it, wheel, pinch, + and - zoom, the slider grows it.
// Returns a function that takes the numbers of later frames; nothing where there is no WebGL.
function turningSolid(box, data) {
  const canvas = box.querySelector("canvas"), slider = box.querySelector("input"), label = box.querySelector(".step");
  const gl = canvas.getContext("webgl", { antialias: true, preserveDrawingBuffer: true });
  if (!gl || !gl.getExtension("OES_element_index_uint")) return null;
  const [ny, nz, nx] = data.shape, faces = data.faces;
  let born, colours, last;
  const centre = faces.map(function (f) { return (f[0] + f[f.length - 1]) / 2; });
  const radius = Math.hypot.apply(null, faces.map(function (f) { return f[f.length - 1] - f[0]; })) / 2;
  const place = faces.map(function (f, axis) { return f.map(function (v) { return (v - centre[axis]) / radius; }); });
  function take(next) {
    data = next;
    born = Uint8Array.from(atob(data.born), function (c) { return c.charCodeAt(0); });
    colours = data.colours.map(function (c) { return [1, 3, 5].map(function (k) { return parseInt(c.substr(k, 2), 16) / 255; }); });
    last = data.colours.length;
    slider.max = last;
  }
  take(data);

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

  // Faces of solid cells towards others; corners move to the middle of the faces that meet there.
  function surface(until) {
    const solid = function (y, z, x) {
      if (y < 0 || z < 0 || x < 0 || y >= ny || z >= nz || x >= nx) return 0;
      const b = born[(y * nz + z) * nx + x];
      return b <= until ? b : 0;
    };
    const known = new Map(), points = [], normals = [], tints = [], counts = [], quads = [];
    const cell = [0, 0, 0];
    for (cell[0] = 0; cell[0] < ny; cell[0]++) for (cell[1] = 0; cell[1] < nz; cell[1]++) for (cell[2] = 0; cell[2] < nx; cell[2]++) {
      const b = solid(cell[0], cell[1], cell[2]);
      if (!b) continue;
      for (let axis = 0; axis < 3; axis++) for (let side = 0; side < 2; side++) {
        const next = cell.slice();
        next[axis] += side ? 1 : -1;
        if (solid(next[0], next[1], next[2])) continue;
        const u = (axis + 1) % 3, v = (axis + 2) % 3, corners = [], middle = [0, 0, 0];
        [[0, 0], [1, 0], [1, 1], [0, 1]].forEach(function (offset) {
          const node = cell.slice();
          node[axis] += side; node[u] += offset[0]; node[v] += offset[1];
          const key = (node[0] * (nz + 1) + node[1]) * (nx + 1) + node[2];
          let number = known.get(key);
          if (number === undefined) {
            number = counts.length;
            known.set(key, number);
            points.push(0, 0, 0); normals.push(0, 0, 0); tints.push(0, 0, 0); counts.push(0);
          }
          corners.push(number);
          for (let k = 0; k < 3; k++) middle[k] += place[k][node[k]] / 4;
        });
        corners.forEach(function (number) {
          for (let k = 0; k < 3; k++) { points[3 * number + k] += middle[k]; tints[3 * number + k] += colours[b - 1][k]; }
          normals[3 * number + axis] += side ? 1 : -1;
          counts[number]++;
        });
        quads.push(corners[0], corners[1], corners[2], corners[0], corners[2], corners[3]);
      }
    }
    for (let k = 0; k < points.length; k++) { const n = counts[Math.floor(k / 3)]; points[k] /= n; tints[k] /= n; }
    return { points: points, normals: normals, tints: tints, quads: quads };
  }
  // The box around the cells.
  const ends = place.map(function (p) { return [p[0], p[p.length - 1]]; }), frame = { points: [], quads: [] };
  for (let k = 0; k < 8; k++) frame.points.push(ends[0][k >> 2], ends[1][k >> 1 & 1], ends[2][k & 1]);
  for (let k = 0; k < 8; k++) [1, 2, 4].forEach(function (bit) { if (!(k & bit)) frame.quads.push(k, k | bit); });
  frame.normals = frame.points.map(function () { return 0; });
  frame.tints = frame.points.map(function () { return 0.5; });

  function upload(mesh) {
    const stored = { count: mesh.quads.length };
    ["points", "normals", "tints"].forEach(function (name) {
      stored[name] = gl.createBuffer();
      gl.bindBuffer(gl.ARRAY_BUFFER, stored[name]);
      gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(mesh[name]), gl.STATIC_DRAW);
    });
    stored.quads = gl.createBuffer();
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, stored.quads);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, new Uint32Array(mesh.quads), gl.STATIC_DRAW);
    return stored;
  }
  function draw(stored, mode, lit) {
    [["points", "place"], ["normals", "normal"], ["tints", "colour"]].forEach(function (pair) {
      const where = gl.getAttribLocation(program, pair[1]);
      gl.bindBuffer(gl.ARRAY_BUFFER, stored[pair[0]]);
      gl.enableVertexAttribArray(where);
      gl.vertexAttribPointer(where, 3, gl.FLOAT, false, 0, 0);
    });
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, stored.quads);
    gl.uniform1f(at.lit, lit);
    gl.drawElements(mode, stored.count, gl.UNSIGNED_INT, 0);
  }

  let around = 0.62, above = 0.42, zoom = 0.98, shown = null, lines = upload(frame), waiting = false;
  function paint() {
    waiting = false;
    const size = Math.round(canvas.clientWidth * (window.devicePixelRatio || 1));
    if (size && canvas.width !== size) canvas.width = canvas.height = size;
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST);
    const s = Math.sin(around), c = Math.cos(around), r = Math.sin(above), f = Math.cos(above);
    // Columns: the directions on the screen of the axes of the grid; the first one points upwards.
    gl.uniformMatrix3fv(at.turn, false, [0, f, r, -s, -r * c, f * c, c, -r * s, f * s]);
    gl.uniform1f(at.zoom, zoom);
    draw(lines, gl.LINES, 0);
    draw(shown, gl.TRIANGLES, 1);
  }
  function ask() { if (!waiting) { waiting = true; requestAnimationFrame(paint); } }
  function grow(until) {
    if (shown) ["points", "normals", "tints", "quads"].forEach(function (name) { gl.deleteBuffer(shown[name]); });
    shown = upload(surface(until));
    label.textContent = "step " + data.steps[until - 1] + (data.times[until - 1] && ", " + data.times[until - 1]);
    slider.setAttribute("aria-valuetext", label.textContent);
    ask();
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
    const does = {
      ArrowLeft: [0.1, 0], ArrowRight: [-0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1],
      "+": 1.15, "=": 1.15, "-": 1 / 1.15
    }[e.key];
    if (e.key === "Escape") spinning = false;
    if (!does) return;
    e.preventDefault();
    spinning = false;
    if (Array.isArray(does)) turn(does[0], does[1]); else scale(does);
  });
  slider.addEventListener("input", function () { grow(+slider.value); });
  window.addEventListener("resize", ask);
  box.classList.add("turns");
  slider.value = last;
  grow(last);
  spin();
  return function (next) {
    const newest = +slider.value === last;
    take(next);
    if (newest) slider.value = last;
    grow(+slider.value);
  };
}
document.querySelectorAll(".solid").forEach(function (box) {
  const stored = box.querySelector("script[type='application/json']");
  if (stored) turningSolid(box, JSON.parse(stored.textContent));
});
