// The gradient of a vision transformer's loss, by hand, for grey images and mean pooling.
//
// Each function below gives a layer's output and the way back through it: a function that takes the
// loss's derivative with respect to the output, dy, and gives that with respect to the input, dx.
// On the way it notes the derivatives of the layer's own numbers in `grad`. What is computed forwards
// is engine.js's, but for GELU, whose error function is exact to rounding here and within 1.5e-7 there.
// A batch of images is one table of tokens, [images * tokens, dim], called [rows, dim].
function minivitGradient(engine) {
  "use strict";
  const NORM_EPS = 1e-6;
  const { transposed } = engine;
  const plus = (a, b) => a.map((v, j) => v + b[j]);
  /** a bᵀ, for a [n, d] and b [m, d]: [n, m]. */
  const times = (a, n, b, m) => engine.linear(a, n, { weight: b, shape: [m, b.length / m] });
  /** Rows and columns of x [.., d], from a first row and column on: [n, width]. */
  function cut(x, d, row, column, n, width) {
    const y = new Float64Array(n * width);
    for (let i = 0; i < n; i++) for (let c = 0; c < width; c++) {
      y[i * width + c] = x[(row + i) * d + column + c];
    }
    return y;
  }
  /** Puts y [n, width] there. */
  function paste(x, d, row, column, y, width) {
    for (let j = 0, i = row; j < y.length; i++) {
      for (let c = 0; c < width; c++) x[i * d + column + c] = y[j++];
    }
  }
  /** The rows of x [rows, d], summed: [d]. */
  function columnSums(x, d) {
    const sums = new Float64Array(d);
    for (let j = 0; j < x.length; j++) sums[j % d] += x[j];
    return sums;
  }

  /** y = x Wᵀ + b, for x [rows, from] and W [to, from]: [rows, to]. */
  function linear(x, rows, layer, grad) {
    const [to] = layer.shape, from = layer.weight.length / to;
    const back = (dy) => {
      grad.weight = times(transposed(dy, rows), to, transposed(x, rows), from); // dyᵀ x
      grad.bias = columnSums(dy, to);
      return times(dy, rows, transposed(layer.weight, to), from); // dy W
    };
    return [engine.linear(x, rows, layer), back];
  }

  /** y = u * scale + shift, where u is x with mean 0 and variance 1 in each row: [rows, d]. */
  function layerNorm(x, rows, { weight: scale, bias: shift }, grad) {
    const d = scale.length, u = new Float64Array(x.length), deviation = new Float64Array(rows);
    for (let i = 0; i < rows; i++) {
      let mean = 0, variance = 0;
      for (let k = 0; k < d; k++) mean += x[i * d + k] / d;
      for (let k = 0; k < d; k++) variance += (x[i * d + k] - mean) ** 2 / d;
      deviation[i] = Math.sqrt(variance + NORM_EPS);
      for (let k = 0; k < d; k++) u[i * d + k] = (x[i * d + k] - mean) / deviation[i];
    }
    const back = (dy) => {
      grad.weight = columnSums(dy.map((v, j) => v * u[j]), d);
      grad.bias = columnSums(dy, d);
      const dx = dy.map((v, j) => v * scale[j % d]); // du, to begin with
      for (let i = 0; i < rows; i++) { // without what moves the row's mean, and what moves its variance
        let mean = 0, along = 0;
        for (let j = i * d; j < (i + 1) * d; j++) { mean += dx[j] / d; along += (dx[j] * u[j]) / d; }
        for (let j = i * d; j < (i + 1) * d; j++) dx[j] = (dx[j] - mean - along * u[j]) / deviation[i];
      }
      return dx;
    };
    return [u.map((v, j) => v * scale[j % d] + shift[j % d]), back];
  }

  const density = (x) => Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI); // of the normal distribution
  /** Its distribution function: 1/2 + density(x) (x + x³/3 + x⁵/(3 5) + x⁷/(3 5 7) + ...). */
  function distribution(x) {
    if (Math.abs(x) > 8) return x > 0 ? 1 : 0; // to rounding
    let sum = 0;
    for (let term = x, i = 1; sum != sum + term; term *= (x * x) / (i += 2)) sum += term;
    return 0.5 + density(x) * sum;
  }

  /** y = x P(x), with the normal distribution function P, whose derivative is the density. */
  function gelu(x) {
    const p = x.map(distribution);
    return [x.map((v, j) => v * p[j]), (dy) => dy.map((v, j) => v * (p[j] + x[j] * density(x[j])))];
  }

  /** Of each image and head, z = A v with A = softmax(q kᵀ / √width); x [images * n, dim]. */
  function attention(x, images, name, { config: { dim, heads }, layers }, into) {
    const rows = x.length / dim, n = rows / images, width = dim / heads, root = Math.sqrt(width);
    const [qkv, backIn] = linear(x, rows, layers[`${name}.qkv`], into(`${name}.qkv`)); // [rows, 3 * dim]
    const z = new Float64Array(rows * dim), kept = [];
    for (let b = 0; b < images; b++) for (let h = 0; h < heads; h++) {
      const at = [b * n, h * width]; // where the head's numbers stand: first row, first column
      const [q, k, v] = [0, dim, 2 * dim].map((from) => cut(qkv, 3 * dim, at[0], from + at[1], n, width));
      const A = times(q, n, k, n).map((s) => s / root); // q kᵀ / √width: [n, n]
      for (let i = 0; i < n; i++) engine.softmax(A, i * n, n);
      paste(z, dim, ...at, times(A, n, transposed(v, n), width), width);
      kept.push({ at, q, k, v, A });
    }
    const [y, backOut] = linear(z, rows, layers[`${name}.out`], into(`${name}.out`));
    const back = (dy) => {
      const dz = backOut(dy), dqkv = new Float64Array(qkv.length);
      for (const { at, q, k, v, A } of kept) {
        const dzh = cut(dz, dim, ...at, n, width); // of one head: [n, width]
        const dv = times(transposed(A, n), n, transposed(dzh, n), width); // Aᵀ dz
        const dA = times(dzh, n, v, n); // dz vᵀ
        const ds = new Float64Array(n * n); // of the softmax: A (dA - its mean in each row, weighted by A)
        for (let i = 0; i < n * n; i += n) {
          let mean = 0;
          for (let j = i; j < i + n; j++) mean += A[j] * dA[j];
          for (let j = i; j < i + n; j++) ds[j] = (A[j] * (dA[j] - mean)) / root;
        }
        const dq = times(ds, n, transposed(k, n), width); // ds k
        const dk = times(transposed(ds, n), n, transposed(q, n), width); // dsᵀ q
        [dq, dk, dv].forEach((d, p) => paste(dqkv, 3 * dim, at[0], p * dim + at[1], d, width));
      }
      return backIn(dqkv);
    };
    return [y, back];
  }

  function mlp(x, rows, name, layers, into) {
    const [up, backUp] = linear(x, rows, layers[`${name}.up`], into(`${name}.up`));
    const [bent, backBent] = gelu(up);
    const [y, backDown] = linear(bent, rows, layers[`${name}.down`], into(`${name}.down`));
    return [y, (dy) => backUp(backBent(backDown(dy)))];
  }
  return { linear, layerNorm, attention, mlp, distribution, plus, columnSums };
}
