// The exact way back: from the tokens after a block to the image. minivit.inversion.unwind, small.
//
// A block adds twice: z = x + attention(norm(x)), y = z + mlp(norm(z)). To undo it is to solve
// y = x + f(x) for x, for the MLP and then for attention. Nothing here is trained, and nothing looks
// at the image that is sought. Numbers have 64 bits; one function, as engine.js.
function minivitUnwind(engine) {
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

  // ---- One addition undone

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
      const at = value, push = (v) => { // J v = (g(x + h v) - g(x)) / h, Knoll & Keyes (2004)
        const h = (TINY * (1 + norm(x))) / norm(v);
        return minus(g(plus(x, v, h)), at).map((d) => d / h);
      };
      const step = solve(push, minus(y, value));
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

  // ---- From block to block, and to the pixels

  /**
   * The way back from the tokens after block `last`, a stage at a time: each block but the first is
   * undone, then the first and the embedding together, over the pixels, since most tokens belong to
   * no image. A trained block may give the same for other tokens; then that search fails, and the
   * pixels are sought from tokens one block later, and so on, near the nearest image so far and near
   * what those tokens show. The forward pass decides.
   *
   * Stages have `block`; `image`, what the tokens show if they are read as the embedding's, or the
   * image found; `error`, of the stage alone; `residuals`, of its iterations, a list for each
   * addition. Those of blocks have `tokens`, and `parts`, the additions in the order in which they
   * were undone; those of pixels the `path` of images and `whole`, the error after block `last`;
   * `solved` says that it is rounding.
   */
  function* unwind(model, tokens, last, switches = {}) {
    const known = [[last, tokens]];
    for (let i = last; i > 0; i--) {
      const found = undo(model, known[0][1], i, switches);
      yield { block: i, image: read(model, found.tokens, switches), ...found };
      if (!(found.error < 1e-8)) break; // going on through it is useless
      known.unshift([i - 1, found.tokens]);
    }
    const missed = (image) => relative(after(model, last, switches)(image), tokens);
    let nearest = null, least = Infinity;
    for (const [i, there] of known) {
      let best = null;
      for (const start of [nearest, read(model, there, switches)].filter(Boolean)) {
        const { x: image, path, error, residuals } = toPixels(model, there, i, start, switches);
        const whole = missed(image), stage = { block: i, image, path, error, residuals: [residuals], whole };
        if (!best || whole < best.whole) best = stage;
        if (whole < least) [nearest, least] = [image, whole];
        if (least <= SOLVED) break;
      }
      yield { ...best, solved: best.whole <= SOLVED };
      if (best.whole <= SOLVED) return;
    }
  }

  /** The tokens before block i, from those after it: its last addition is undone first. */
  function undo(model, y, i, switches) {
    const residuals = [], newtons = [], functions = engine.branches(model, i, switches);
    let x = y;
    for (const add of [...functions].reverse()) {
      const found = undone((z) => add(z).out, x);
      x = found.x;
      residuals.push(found.residuals);
      newtons.push(found.newton);
    }
    const again = functions.reduce((z, add) => plus(z, add(z).out), x);
    const parts = functions.map(({ part }) => part).reverse();
    return { tokens: x, parts, residuals, newtons, error: relative(again, y) };
  }

  /** The function from images to the tokens after block i. */
  function after(model, i, switches) {
    const start = { ...model, config: { ...model.config, depth: i + 1 } };
    return (image) => engine.forward(start, image, switches).states[i + 1];
  }

  /** The image whose patches, embedded, come nearest to these tokens: least squares, each patch. */
  function read(model, tokens, switches = {}) {
    const { weight, bias, shape } = model.layers["patch_embedding.projection"];
    const [dim, channels, rows, across] = shape, numbers = channels * rows * across;
    const columns = Array.from({ length: numbers }, (_, k) =>
      Float64Array.from({ length: dim }, (_, d) => weight[d * numbers + k]));
    const without = (switches.removed ?? []).some(([part]) => part == "positions");
    const table = without ? null : model.layers.positions?.table;
    const places = engine.patchesOf(model), first = tokens.length / dim - places.length;
    const image = new Float64Array(places.length * numbers);
    places.forEach((indices, place) => {
      const at = (place + first) * dim;
      const token = tokens.slice(at, at + dim).map((v, d) => v - bias[d] - (table?.[at + d] ?? 0));
      const { mix } = leastSquares(columns, token);
      indices.forEach((j, k) => { // pixel by pixel; a weight's numbers stand channel by channel
        image[j] = mix[(k % channels) * rows * across + Math.floor(k / channels)];
      });
    });
    return image;
  }

  /** The image whose tokens after block i are these, near a guess: Gauss & Newton's method. */
  function toPixels(model, tokens, i, guess, switches) {
    const solve = (push, r) => { // all of J, a column for each pixel
      const unit = (k) => guess.map((_, j) => (j == k ? 1 : 0));
      return leastSquares(Array.from(guess, (_, k) => push(unit(k))), r).mix;
    };
    return newton(after(model, i, switches), tokens, guess, solve, 20);
  }

  return { unwind, read, undone };
}
