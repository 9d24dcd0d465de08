// Another image with the same logits: a walk on the level set of a function, towards a goal.
//
// 64 pixels go to 10 logits, so that where the Jacobian has rank 10 the images with the same logits
// form a surface of 54 dimensions. Each step solves the function's linearisation, and repeats that
// with the same Jacobian until the values are those of the start. One function, as engine.js.
function minivitLevel(solver) {
  "use strict";
  const { dot, norm, plus, minus, slope, columns, leastSquares } = solver;
  const HELD = 1e-8; // by so much a value may differ from that of the start
  const REPEATS = 12; // of a correction with the same Jacobian
  const SHORTEST = 2 ** -8; // fraction of the way to the goal that a step aims at
  const NEARER = 5e-3; // by less than this fraction no step is worth its while

  const clip = (x) => x.map((v) => Math.min(1, Math.max(0, v)));
  const largest = (x) => Math.max(...x.map(Math.abs));

  /**
   * From x, numbers in [0, 1], towards a goal, as near as g(x) and [0, 1] allow: each point on the way
   * has `x`, the `value` g(x), `off`, its largest difference from the value at the start, and `away`,
   * the distance from the goal.
   */
  function* walk(g, x, goal) {
    const start = g(x);
    let value = start, away = norm(minus(goal, x)), length = 1;
    yield { x, value, off: 0, away };
    while (length >= SHORTEST) {
      const jacobian = columns(slope(g, x, value), x.length), before = away;
      for (; length >= SHORTEST; length /= 2) {
        const found = held(g, jacobian, plus(x, minus(goal, x), length), x, value, start);
        if (!found || !(norm(minus(goal, found.x)) < (1 - 1e-9) * before)) continue;
        ({ x, value } = found);
        away = norm(minus(goal, x));
        yield { x, value, off: found.off, away };
        break;
      }
      if (!(away < (1 - NEARER) * before)) return;
      length = Math.min(1, 2 * length);
    }
  }

  /** The point near `aim` with g as at the start; null if corrections do not lead to one. */
  function held(g, jacobian, aim, x, value, start) {
    let off = Infinity;
    for (let k = 0; k < REPEATS; k++) {
      const next = nearest(k ? x : aim, jacobian, plus(product(jacobian, x), minus(start, value)));
      const there = g(next), error = largest(minus(there, start));
      if (!(k == 0 || error < off / 2)) return null;
      [x, value, off] = [next, there, error];
      if (off < HELD) return { x, value, off };
    }
    return null;
  }

  /** J v, of a matrix that is given by its columns. */
  const product = (jacobian, v) =>
    jacobian.reduce((sum, column, k) => plus(sum, column, v[k]), new Float64Array(jacobian[0].length));

  /**
   * The point y of the box [0, 1] nearest to an aim with J y = b: it is clip(aim + J^T u), and u is
   * found by Newton's method, for which pixels at an end of their range do not move.
   */
  function nearest(aim, jacobian, b) {
    const at = (u) => clip(plus(aim, jacobian.map((column) => dot(column, u))));
    let u = new Float64Array(b.length), y = at(u), left = minus(b, product(jacobian, y));
    for (let k = 0; k < 30 && norm(left) > 1e-12 * (1 + norm(b)); k++) {
      const free = jacobian.filter((_, j) => y[j] > 0 && y[j] < 1);
      const square = Array.from(b, (_, c) => // J J^T of the free pixels
        Float64Array.from(b, (_, d) => free.reduce((sum, column) => sum + column[c] * column[d], 0)));
      const step = leastSquares(square, left).mix;
      let t = 1, better = null;
      for (; t > 1e-3 && !better; t /= 2) {
        const trial = plus(u, step, t), there = at(trial), rest = minus(b, product(jacobian, there));
        if (norm(rest) < norm(left)) better = [trial, there, rest];
      }
      if (!better) break;
      [u, y, left] = better;
    }
    return y;
  }

  return { walk };
}
