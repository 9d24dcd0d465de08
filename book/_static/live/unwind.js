// The exact way back: from the tokens after a block to the image. minivit.inversion.unwind, small.
//
// A block adds twice: z = x + attention(norm(x)), y = z + mlp(norm(z)). To undo it is to solve
// y = x + f(x) for x, for the MLP and then for attention. Nothing here is trained, and nothing looks
// at the image that is sought. Numbers have 64 bits; one function, as engine.js.
function minivitUnwind(engine, solver) {
  "use strict";
  const { SOLVED, plus, relative, undone, newton, columns, leastSquares } = solver;
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
    const kernels = Array.from({ length: numbers }, (_, k) =>
      Float64Array.from({ length: dim }, (_, d) => weight[d * numbers + k]));
    const without = (switches.removed ?? []).some(([part]) => part == "positions");
    const table = without ? null : model.layers.positions?.table;
    const places = engine.patchesOf(model), first = tokens.length / dim - places.length;
    const image = new Float64Array(places.length * numbers);
    places.forEach((indices, place) => {
      const at = (place + first) * dim;
      const token = tokens.slice(at, at + dim).map((v, d) => v - bias[d] - (table?.[at + d] ?? 0));
      const { mix } = leastSquares(kernels, token);
      indices.forEach((j, k) => { // pixel by pixel; a weight's numbers stand channel by channel
        image[j] = mix[(k % channels) * rows * across + Math.floor(k / channels)];
      });
    });
    return image;
  }

  /** The image whose tokens after block i are these, near a guess: Gauss & Newton's method. */
  function toPixels(model, tokens, i, guess, switches) {
    const solve = (push, r) => leastSquares(columns(push, guess.length), r).mix;
    return newton(after(model, i, switches), tokens, guess, solve, 20);
  }

  return { unwind, read };
}
