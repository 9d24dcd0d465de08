// What a training of a small vision transformer needs: first weights, the gradient of the loss, AdamW.
// Models are as engine.js has them, the recipe is chapter 7's. `gradients` has the layers of gradient.js.
function minivitTraining(engine, gradients, numbers) {
  "use strict";
  const { linear, layerNorm, attention, mlp, plus, columnSums } = gradients;
  const CONFIG = { image_size: [8, 8], patch_size: [2, 2], channels: 1, classes: 10, dim: 16, depth: 2,
    heads: 4, mlp_ratio: 2, pool: "mean" };
  const WARM_UP = 0.1, DECAY = 0.05, LONGEST = 1; // of all steps; weight decay; length of the gradient
  const BETA1 = 0.9, BETA2 = 0.999, EPS = 1e-8; // AdamW's, torch's defaults

  // ---- A model before its training, as minivit draws it

  /** `removed`: pairs of a part and a list of blocks, null for all. */
  function untrained({ seed = 0, removed = [], config = CONFIG, ...about }) {
    const { dim, depth, mlp_ratio: ratio, patch_size: [high, wide], image_size: [height, width] } = config;
    const uniform = numbers.uniforms(seed), normal = numbers.normals(seed + 1e6), layers = {};
    const filled = (length, draw) => new Float64Array(length).map(draw);
    const zeros = () => 0, ones = () => 1;
    const map = (name, to, from, draw, bias = zeros) => (layers[name] =
      { weight: filled(to * from, draw), bias: filled(to, bias), shape: [to, from] });
    const between = (bound) => () => bound * (2 * uniform() - 1);
    const xavier = (to, from) => between(Math.sqrt(6 / (to + from)));
    const norm = (name) => (layers[name] =
      { weight: filled(dim, ones), bias: filled(dim, zeros), shape: [dim] });
    map("patch_embedding.projection", dim, high * wide, () => normal() / Math.sqrt(high * wide));
    layers["patch_embedding.projection"].shape = [dim, 1, high, wide];
    const places = (height / high) * (width / wide), hidden = ratio * dim;
    layers.positions = { table: filled(places * dim, () => 0.02 * normal()) };
    for (let i = 0; i < depth; i++) {
      norm(`blocks.${i}.norm1`);
      map(`blocks.${i}.attention.qkv`, 3 * dim, dim, xavier(3 * dim, dim));
      map(`blocks.${i}.attention.out`, dim, dim, between(1 / Math.sqrt(dim)));
      norm(`blocks.${i}.norm2`);
      map(`blocks.${i}.mlp.up`, hidden, dim, xavier(hidden, dim), () => 1e-6 * normal());
      map(`blocks.${i}.mlp.down`, dim, hidden, xavier(dim, hidden), () => 1e-6 * normal());
    }
    norm("norm");
    map("head", config.classes, dim, zeros); // so that it begins at chance
    return { family: "ViT", config, layers, removed, ...about };
  }

  // ---- The loss and its gradient

  /**
   * The mean cross-entropy of a batch, its gradient by layer, as model.layers is built, and the logits
   * [images, classes]. `images`: [height * width] each, normalised.
   */
  function lossAndGradient(model, images, labels) {
    const { config, layers } = model, { dim, depth, classes } = config, gradient = {};
    const into = (name) => (gradient[name] ??= {}), gone = engine.goneFrom(model, {});
    const places = engine.patchesOf(model), n = places.length, rows = images.length * n;
    const pixels = Float64Array.from(images.flatMap((image) => places.flat().map((j) => image[j])));
    const ways = []; // back through each layer, in the order of the way forward
    const through = ([y, back]) => {
      ways.push(back);
      return y;
    };
    const embedding = "patch_embedding.projection";
    let x = through(linear(pixels, rows, layers[embedding], into(embedding))); // [rows, dim]
    if (!gone("positions")) {
      const { table } = layers.positions; // [n, dim], added to every image
      x = through([x.map((v, j) => v + table[j % table.length]), (dy) => {
        into("positions").table = columnSums(dy, table.length);
        return dy;
      }]);
    }
    for (let i = 0; i < depth; i++) for (const [part, norm] of [["attention", "norm1"], ["mlp", "norm2"]]) {
      if (gone(part, i) && !gone("residual", i)) continue; // nothing is added
      const name = `blocks.${i}.${part}`, normName = `blocks.${i}.${norm}`, steps = [];
      let y = x;
      const on = ([out, back]) => {
        steps.unshift(back);
        y = out;
      };
      if (!gone(norm, i)) on(layerNorm(y, rows, layers[normName], into(normName)));
      if (!gone(part, i) && part == "attention") on(attention(y, images.length, name, model, into));
      if (!gone(part, i) && part == "mlp") on(mlp(y, rows, name, layers, into));
      const branch = (dy) => steps.reduce((d, back) => back(d), dy);
      // y = x + f(x): the derivative goes back through the branch, and past it as it is
      x = through(gone("residual", i) ? [y, branch] : [plus(x, y), (dy) => plus(dy, branch(dy))]);
    }
    if (!gone("norm")) x = through(layerNorm(x, rows, layers.norm, into("norm")));
    const pooled = new Float64Array(images.length * dim); // the mean of each image's tokens
    x.forEach((v, j) => (pooled[Math.floor(j / (n * dim)) * dim + (j % dim)] += v / n));
    ways.push((dy) => x.map((_, j) => dy[Math.floor(j / (n * dim)) * dim + (j % dim)] / n));
    const logits = through(linear(pooled, images.length, layers.head, into("head")));
    const d = logits.slice(); // of the loss by the logits: (probabilities - what is true) / images
    let loss = 0;
    labels.forEach((label, b) => {
      engine.softmax(d, b * classes, classes);
      loss -= Math.log(d[b * classes + label]) / images.length;
      d[b * classes + label] -= 1;
    });
    ways.reduceRight((dy, back) => back(dy), d.map((v) => v / images.length));
    return { loss, gradient, logits };
  }

  // ---- Steps

  /** The fraction of the peak rate at step t of `steps`, counted from 0: a warm-up, then a cosine. */
  function schedule(t, steps) {
    const rising = Math.round(WARM_UP * steps);
    if (t < rising) return (t + 1) / (rising + 1);
    return (1 + Math.cos((Math.PI * (t - rising)) / (steps - rising))) / 2;
  }

  /** One step of AdamW number t, from 1, in place. `moments` has m and v of every tensor. */
  function adamw(layers, gradient, moments, t, rate) {
    const all = Object.entries(gradient).flatMap(([name, parts]) =>
      Object.entries(parts).map(([part, g]) => ({ name, part, g, theta: layers[name][part] })));
    const length = Math.sqrt(all.reduce((sum, { g }) => g.reduce((s, v) => s + v * v, sum), 0));
    const clip = Math.min(1, LONGEST / (length + 1e-6));
    for (const { name, part, g, theta } of all) {
      const decays = part == "weight" && !/norm\d?$/.test(name); // matrices alone
      const { m, v } = (moments[`${name}.${part}`] ??= { m: g.map(() => 0), v: g.map(() => 0) });
      for (let j = 0; j < g.length; j++) {
        m[j] = BETA1 * m[j] + (1 - BETA1) * clip * g[j];
        v[j] = BETA2 * v[j] + (1 - BETA2) * (clip * g[j]) ** 2;
        if (decays) theta[j] *= 1 - rate * DECAY;
        theta[j] -= (rate * m[j] / (1 - BETA1 ** t)) / (Math.sqrt(v[j] / (1 - BETA2 ** t)) + EPS);
      }
    }
  }
  return { untrained, lossAndGradient, schedule, adamw };
}
