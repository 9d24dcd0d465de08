// What parts compute with: numbers that no training made, directions, patches.

/** Numbers that no training made, always the same ones, and directions. */
function minivitNumbers() {
  "use strict";
  /** A function that draws numbers from 0 to 1: mulberry32. */
  function uniforms(seed) {
    return () => {
      seed = (seed + 0x6d2b79f5) | 0;
      let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
    };
  }

  /** One that draws normal numbers of variance 1: Box and Muller's. */
  function normals(seed) {
    const uniform = uniforms(seed);
    return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  }

  const dot = (a, b) => a.reduce((sum, v, k) => sum + v * b[k], 0);
  function softmax(scores) {
    const top = Math.max(...scores), e = scores.map((s) => Math.exp(s - top)), total = e.reduce((a, b) => a + b);
    return e.map((v) => v / total);
  }

  /** What is left of a vector beside some directions. Twice, since once leaves more than rounding. */
  function beside(vector, directions) {
    const left = vector.slice();
    for (let twice = 0; twice < 2; twice++) for (const u of directions) {
      const along = dot(u, left);
      u.forEach((x, k) => (left[k] -= along * x));
    }
    return left;
  }

  /** Orthonormal vectors that span the rows: Gram and Schmidt's. */
  function orthonormal(rows) {
    const found = [];
    for (const row of rows) {
      const v = beside(row, found), length = Math.sqrt(dot(v, v));
      found.push(v.map((x) => x / length));
    }
    return found;
  }
  return { uniforms, normals, dot, softmax, beside, orthonormal };
}

/** A square image [side * side * 3] and its patches, rows of numbers in reading order. */
function minivitPatches(side, patch) {
  "use strict";
  const across = side / patch, length = 3 * patch * patch;
  /** Where number k of patch i stands in the image. */
  const at = (i, k) => {
    const y = Math.floor(i / across) * patch + Math.floor(k / (3 * patch));
    const x = (i % across) * patch + Math.floor((k % (3 * patch)) / 3);
    return 3 * (y * side + x) + (k % 3);
  };
  const cut = (image) => Array.from({ length: across * across }, (_, i) =>
    Float64Array.from({ length }, (_, k) => image[at(i, k)]));
  /** The image of patches whose numbers go from 0 to 1, as bytes. */
  function joined(rows) {
    const bytes = new Uint8ClampedArray(3 * side * side);
    rows.forEach((row, i) => row.forEach((v, k) => (bytes[at(i, k)] = 255 * v)));
    return bytes;
  }
  return { across, length, at, cut, joined };
}
