// The page's other half: a worker that holds one model and answers one question after another.
// Like engine.js one function, of whose text the worker is made.
function minivitWorker(engine, unwinding, level) {
  "use strict";
  let model = null, way = null, walk = null; // see unwind.js, level.js

  const answers = {
    open: ({ stored }) => {
      model = engine.open(stored);
      const { layers, tensors, ...said } = model;
      const numbers = tensors.map(([, shape]) => shape.reduce((a, b) => a * b, 1));
      return { ...said, parameters: numbers.reduce((a, b) => a + b, 0) };
    },
    /** What the model answers, as it is and with the switches. */
    run: ({ bytes, switches, touched }) => {
      const image = engine.normalised(model, bytes), start = performance.now();
      const after = engine.forward(model, image, switches);
      const milliseconds = performance.now() - start;
      return {
        milliseconds,
        before: touched ? engine.forward(model, image).logits : after.logits,
        ...after,
        states: null, // of no use to the page
        lens: engine.lens(model, after, switches).map((row) => engine.softmax(row)),
        rollout: after.attention.length ? engine.rollout(model, after) : [],
      };
    },
    /** What one head computes for a token: its query, all keys and values, and scores before softmax. */
    head: ({ bytes, switches, block, head, token }) => {
      let x = engine.forward(model, engine.normalised(model, bytes), switches).states[block], found = {};
      for (const add of engine.branches(model, block, switches)) {
        found = add(x);
        if (found.qkv) break;
        x = x.map((v, j) => v + found.out[j]);
      }
      if (!found.qkv) return null; // this block's attention has been switched off
      const { dim, heads } = model.config, width = dim / heads, n = x.length / dim;
      const part = (j, which) => found.qkv.slice((3 * j + which) * dim + head * width, (3 * j + which) * dim + (head + 1) * width);
      const all = (which) => Array.from({ length: n }, (_, j) => part(j, which));
      return { query: part(token, 0), keys: all(1), values: all(2) };
    },
    deletion: ({ bytes, switches, places }) =>
      engine.deletion(model, engine.normalised(model, bytes), switches, places),
    /** The way back from the tokens after a block begins: what they show. */
    back: ({ bytes, switches, block }) => {
      const trace = engine.forward(model, engine.normalised(model, bytes), switches);
      const tokens = trace.states[block + 1], image = unwinding.read(model, tokens, switches);
      way = { trace, stages: unwinding.unwind(model, tokens, block, switches) };
      return { image, ...away(image, trace.seen) };
    },
    /** Its next stage, compared with what was there; null after the last. */
    stage: () => {
      const { value } = way.stages.next(), { states, seen } = way.trace;
      if (!value) return null;
      const { tokens, ...told } = value, there = states[value.block];
      const off = tokens ? Math.hypot(...tokens.map((v, j) => v - there[j])) / Math.hypot(...there) : null;
      return { ...told, off, ...away(value.image, seen) };
    },
    /** A walk begins to another image with the same logits, from what the model sees to a goal. */
    same: ({ bytes, switches: { order, covered, ...held }, goal }) => {
      const { seen } = engine.forward(model, engine.normalised(model, bytes), { order, covered });
      const { mean, std } = model.preprocess, c = mean.length;
      const look = (x) => engine.forward(model, engine.normalised(model, x.map((v) => 255 * v)), held);
      const start = seen.map((v, j) => v * std[j % c] + mean[j % c]); // from 0 to 1
      const points = level.walk((x) => look(x).logits, start, Float64Array.from(goal, (v) => v / 255));
      walk = { points, last: (x) => look(x).states.at(-1), tokens: look(start).states.at(-1) };
    },
    /** The walk's next point, and how far its last tokens are from the first image's; null at the end. */
    nearer: () => {
      const { value } = walk.points.next();
      if (!value) return null;
      const tokens = walk.last(value.x), apart = tokens.map((v, j) => v - walk.tokens[j]);
      return { ...value, tokens: Math.hypot(...apart) / Math.hypot(...walk.tokens) };
    },
  };

  /** How far an image is from another: of pixels from 0 to 1 the largest difference, and PSNR. */
  function away(image, seen) {
    const { std } = model.preprocess;
    const differences = image.map((v, j) => Math.abs(v - seen[j]) * std[j % std.length]);
    const square = differences.reduce((sum, d) => sum + d * d, 0) / image.length;
    return { largest: Math.max(...differences), decibels: -10 * Math.log10(square) };
  }

  onmessage = ({ data: { ask, ...given } }) => {
    try {
      postMessage({ answer: answers[ask](given) });
    } catch (error) {
      postMessage({ error: error.message });
    }
  };
}
