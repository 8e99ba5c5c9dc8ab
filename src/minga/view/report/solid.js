// The surface of a solid as triangles: the faces of its cells towards others. Corners move to the middle of the faces
// that meet there, which rounds cubes off. `born` is 1 + the number of the frame in which a cell becomes solid, or 0.
function solidSurface(solid, born, colours, until, place) {
  const [ny, nz, nx] = solid.shape;
  const at = function (y, z, x) {
    if (y < 0 || z < 0 || x < 0 || y >= ny || z >= nz || x >= nx) return 0;
    const b = born[(y * nz + z) * nx + x];
    return b <= until ? b : 0;
  };
  const faces = solid.faces.map(function (f, axis) { return f.map(function (v) { return place(axis, v); }); });
  const known = new Map(), points = [], normals = [], tints = [], counts = [], corners = [], cell = [0, 0, 0];
  for (cell[0] = 0; cell[0] < ny; cell[0]++) for (cell[1] = 0; cell[1] < nz; cell[1]++) for (cell[2] = 0; cell[2] < nx; cell[2]++) {
    const b = at(cell[0], cell[1], cell[2]);
    if (!b) continue;
    for (let axis = 0; axis < 3; axis++) for (let side = 0; side < 2; side++) {
      const next = cell.slice();
      next[axis] += side ? 1 : -1;
      if (at(next[0], next[1], next[2])) continue;
      const u = (axis + 1) % 3, v = (axis + 2) % 3, around = [], middle = [0, 0, 0];
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
        around.push(number);
        for (let k = 0; k < 3; k++) middle[k] += faces[k][node[k]] / 4;
      });
      around.forEach(function (number) {
        for (let k = 0; k < 3; k++) { points[3 * number + k] += middle[k]; tints[3 * number + k] += colours[b - 1][k]; }
        normals[3 * number + axis] += side ? 1 : -1;
        counts[number]++;
      });
      corners.push(around[0], around[1], around[2], around[0], around[2], around[3]);
    }
  }
  for (let k = 0; k < points.length; k++) { const n = counts[Math.floor(k / 3)]; points[k] /= n; tints[k] /= n; }
  return { points: points, normals: normals, tints: tints, corners: corners };
}
