// Equations in many unknowns, solved without a matrix where that can be: x + f(x) = y, g(x) = y,
// least squares. Numbers have 64 bits; one function, as engine.js.
function minivitSolve() {
  "use strict";
  const SOLVED = 2 ** -39; // relative error that counts as none: 1.8e-12, minivit's for float64
  const ROUNDING = 2 ** -50;
  const PATIENCE = 50; // iterations without a smaller error, after which one way is given up
  const NEWTON = 10; // steps at most: where trained branches took more, they led to other tokens
  const HALVINGS = 12; // of a step that makes the error no smaller
  const TINY = 1e-7; // the step of a difference quotient, relative to the point

  const dot = (a, b) => { let s = 0; for (let j = 0; j < a.length; j++) s += a[j] * b[j]; return s; };
  const norm = (a) => Math.sqrt(dot(a, a));
  const plus = (a, b, t = 1) => a.map((v, j) => v + t * b[j]); // a + t b
  const minus = (a, b) => plus(a, b, -1);
  const relative = (a, b) => norm(minus(a, b)) / norm(b);

  /** x with x + f(x) = y, or as near as it came: `x`, `residuals` of all iterates, `newton`. */
  function undone(f, y) {
    const first = fixedPoint(f, y);
    if (first.error <= SOLVED) return { ...first, newton: 0 };
    const second = newton((x) => plus(x, f(x)), y, first.x, krylov, NEWTON);
    return { ...second, residuals: [...first.residuals, ...second.residuals], newton: second.steps };
  }

  /** x <- y - f(x), from x = y: converges where f brings points nearer to each other (Banach). */
  function fixedPoint(f, y) {
    const residuals = [];
    let x = y, best = { x, error: Infinity }, since = 0;
    while (since < PATIENCE && !(best.error < ROUNDING)) {
      const next = minus(y, f(x)), error = norm(minus(next, x)) / norm(y); // y - f(x) - x
      if (Number.isNaN(error)) break;
      residuals.push(error);
      since = error < best.error ? 0 : since + 1;
      if (!since) best = { x, error };
      x = next;
    }
    return { ...best, residuals };
  }

  /**
   * Newton's method for g(x) = y: each step solves J s = y - g(x), J the Jacobian of g at x, and is
   * halved until it helps. `solve` gets the function v -> J v and the right side.
   */
  function newton(g, y, x, solve, most) {
    let value = g(x), error = relative(value, y), steps = 0;
    const residuals = [error], path = [x];
    while (steps < most && error > ROUNDING) {
      const step = solve(slope(g, x, value), minus(y, value));
      let k = 0, found;
      for (; k < HALVINGS; k++) {
        const trial = plus(x, step, 2 ** -k), there = g(trial), away = relative(there, y);
        if (away < (1 - 0.01 / 2 ** k) * error) { found = [trial, there, away]; break; }
      }
      if (!found) break;
      [x, value, error] = found;
      residuals.push(error);
      path.push(x);
      steps++;
    }
    return { x, error, residuals, path, steps };
  }

  /** v -> J v, J the Jacobian of g at x: (g(x + h v) - g(x)) / h, Knoll & Keyes (2004). */
  function slope(g, x, value) {
    return (v) => {
      const h = (TINY * (1 + norm(x))) / norm(v);
      return minus(g(plus(x, v, h)), value).map((d) => d / h);
    };
  }

  /** All of J, a column for each of n numbers. */
  const columns = (push, n) =>
    Array.from({ length: n }, (_, k) => push(Float64Array.from({ length: n }, (_, j) => (j == k ? 1 : 0))));

  /** J s = r to three digits by GMRES, Saad & Schultz (1986): s among r, J r, J^2 r, ... */
  function krylov(push, r) {
    const size = norm(r), basis = [r.map((v) => v / size)], columns = [];
    const right = () => Float64Array.from(basis, (_, j) => (j ? 0 : size));
    let mix = [];
    while (columns.length < 100) {
      let next = push(basis[columns.length]);
      const column = basis.map((q) => { // orthogonal to those before, by Gram & Schmidt
        const along = dot(q, next);
        next = plus(next, q, -along);
        return along;
      });
      const length = norm(next);
      columns.push([...column, length]);
      basis.push(next.map((v) => v / (length || 1)));
      const small = columns.map((c) => Float64Array.from(basis, (_, j) => c[j] ?? 0));
      const solved = leastSquares(small, right());
      mix = solved.mix;
      if (solved.left < 1e-3 * size) break;
    }
    return mix.reduce((s, m, k) => plus(s, basis[k], m), new Float64Array(r.length));
  }

  /** min |sum_k mix_k column_k - b|, by Gram & Schmidt: `mix`, and what is `left` of b. */
  function leastSquares(columns, b) {
    const q = columns.map((c) => c.slice()), n = q.length, along = new Float64Array(n);
    const triangle = q.map(() => new Float64Array(n));
    for (let k = 0; k < n; k++) {
      triangle[k][k] = norm(q[k]);
      q[k] = q[k].map((v) => v / (triangle[k][k] || 1));
      for (let j = k + 1; j < n; j++) q[j] = plus(q[j], q[k], -(triangle[k][j] = dot(q[k], q[j])));
      b = plus(b, q[k], -(along[k] = dot(q[k], b)));
    }
    const mix = along.slice();
    for (let k = n - 1; k >= 0; k--) {
      for (let j = k + 1; j < n; j++) mix[k] -= triangle[k][j] * mix[j];
      mix[k] /= triangle[k][k] || Infinity;
    }
    return { mix, left: norm(b) };
  }

  return { SOLVED, dot, norm, plus, minus, relative, undone, newton, slope, columns, leastSquares };
}
