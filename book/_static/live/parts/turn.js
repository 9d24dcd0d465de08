// Chapter 8: the tokens of a ViT in another basis, and its logits, which stand still.
(globalThis.minivitParts ??= {}).turn = (() => {
  "use strict";
  const MODEL = "digits_vit", BLOCK = 2; // after which tokens are shown
  const SHOWN = 8; // channels of which each has a map
  const CELL = 10; // width of a number in the drawing

  /**
   * An orthogonal matrix [dim * dim] that turns by an angle, in degrees, in each of dim / 2 planes.
   * They are drawn at random, so that each channel is mixed with all; where the turn keeps the mean
   * of the channels, all planes are orthogonal to (1, ..., 1), and one direction more stays.
   */
  function turn(dim, degrees, keepsMean) {
    const { normals, orthonormal } = minivitNumbers(), normal = normals(1);
    const rows = Array.from({ length: dim }, () => Float64Array.from({ length: dim }, normal));
    if (keepsMean) rows[0].fill(1);
    const axes = orthonormal(rows).slice(keepsMean ? 1 : 0);
    const cos = Math.cos((degrees * Math.PI) / 180) - 1, sin = Math.sin((degrees * Math.PI) / 180);
    const matrix = new Float64Array(dim * dim).map((_, j) => (j % (dim + 1) ? 0 : 1));
    for (let p = 0; p + 1 < axes.length; p += 2) {
      const [u, v] = [axes[p], axes[p + 1]];
      for (let i = 0; i < dim; i++) for (let j = 0; j < dim; j++) {
        matrix[i * dim + j] += cos * (u[i] * u[j] + v[i] * v[j]) + sin * (v[i] * u[j] - u[i] * v[j]);
      }
    }
    return matrix;
  }

  /** a [n, k] times b [k, m]. */
  function product(a, b, k) {
    const n = a.length / k, m = b.length / k, y = new Float64Array(n * m);
    for (let i = 0; i < n; i++) for (let l = 0; l < k; l++) {
      const times = a[i * k + l];
      for (let j = 0; j < m; j++) y[i * m + j] += times * b[l * m + j];
    }
    return y;
  }

  /**
   * The model that has Q x for every token x: what writes to tokens is turned, what reads them turns
   * back. `moved`: the scale and shift of each norm go into the layer behind it before that.
   */
  function turned(model, Q, moved) {
    const { dim, depth } = model.config, layers = { ...model.layers };
    const back = Q.map((_, j) => Q[(j % dim) * dim + Math.floor(j / dim)]); // its transpose
    const write = (name) => {
      const { weight, bias, shape } = layers[name];
      layers[name] = { weight: product(Q, weight, dim), bias: product(Q, bias, dim), shape };
    };
    const read = (norm, name) => {
      let { weight, bias, shape } = layers[name];
      if (moved) {
        const { weight: scale, bias: shift } = layers[norm], shifted = product(weight, shift, dim);
        bias = bias.map((v, j) => v + shifted[j]);
        weight = weight.map((v, j) => v * scale[j % dim]);
        layers[norm] = { weight: scale.map(() => 1), bias: shift.map(() => 0), shape: [dim] };
      }
      layers[name] = { weight: product(weight, back, dim), bias, shape };
    };
    write("patch_embedding.projection");
    layers.positions = { table: product(layers.positions.table, back, dim) };
    for (let i = 0; i < depth; i++) {
      read(`blocks.${i}.norm1`, `blocks.${i}.attention.qkv`);
      write(`blocks.${i}.attention.out`);
      read(`blocks.${i}.norm2`, `blocks.${i}.mlp.up`);
      write(`blocks.${i}.mlp.down`);
    }
    read("norm", "head");
    return { ...model, layers };
  }

  /** Logits, and the tokens before each block and after the last. */
  function answer(engine, model, bytes, degrees, keepsMean, moved) {
    const there = turned(model, turn(model.config.dim, degrees, keepsMean), moved);
    const { logits, states } = engine.forward(there, engine.normalised(model, bytes));
    return { logits, states };
  }

  function mount({ h, range, percent, best, softmax, powerOfTen, handle, choice, panel, bars,
    columns, row, fold, speech, tenDigits }) {
    const engine = minivitEngine(), model = engine.open(minivitModels[MODEL]);
    const samples = minivitSamples[MODEL], { dim, image_size: [side], patch_size: [patch] } = model.config;
    const across = side / patch, n = across * across;
    let { pixels } = samples[0];
    const angle = handle({ label: "Turn", min: 0, max: 360, step: 5, value: 60, words: (v) => `${v}°` },
      () => show());
    const mean = choice("The turn", { kept: "keeps the mean of the channels", any: "is any turn" },
      "kept", () => show());
    const norm = choice("Each LayerNorm", { moved: "hands on its scale and shift", left: "is as it was" },
      "moved", () => show());
    const say = speech(), ways = ["as trained", "turned"];
    const tables = ways.map((way) => panel(`Tokens after block ${BLOCK}, ${way}`,
      `A row a token, a column a channel, ${way}`, [CELL * dim, 6 * n]));
    const maps = panel(`Channels 1 to ${SHOWN} as maps of the patches: as trained above, turned below`,
      `Maps of the patches, of ${SHOWN} channels, as trained and turned`, [CELL * dim, 2 * CELL * dim / SHOWN]);
    const said = bars("What it says", model.classes, true);
    const digits = tenDigits(samples, (chosen) => {
      pixels = chosen;
      show();
    });

    function show() {
      const before = engine.forward(model, engine.normalised(model, pixels));
      const after = answer(engine, model, pixels, angle.value, mean.value == "kept", norm.value == "moved");
      const states = [before, after].map((trace) => trace.states[BLOCK]);
      const top = Math.max(...states[0].map(Math.abs)); // one scale for both, which the first decides
      const paint = (context, colour, v, x, y, width, height) => {
        context.globalAlpha = Math.min(1, Math.sqrt(Math.abs(v) / top));
        context.fillStyle = v < 0 ? colour.second : colour.first;
        context.fillRect(x, y, width, height);
      };
      tables.forEach((table, way) => table.draw((context, colour) => states[way].forEach((v, j) =>
        paint(context, colour, v, CELL * (j % dim), 6 * Math.floor(j / dim), CELL, 6))));
      const wide = maps.width / SHOWN, unit = (wide - CELL) / across;
      maps.draw((context, colour) => states.forEach((tokens, way) => {
        for (const k of range(SHOWN)) for (const i of range(n)) {
          const x = k * wide + (i % across) * unit, y = way * wide + Math.floor(i / across) * unit;
          paint(context, colour, tokens[i * dim + k], x, y, unit, unit);
        }
        context.globalAlpha = 1;
        context.strokeStyle = colour.line;
        for (const k of range(SHOWN)) context.strokeRect(k * wide, way * wide, wide - CELL, wide - CELL);
      }));
      const chances = softmax([...after.logits]);
      said.show(chances);
      const most = (a, b) => a.reduce((gap, v, j) => Math.max(gap, Math.abs(v - b[j])), 0);
      const tokens = most(states[1], states[0]), logits = most(after.logits, before.logits);
      const words = logits == 0 ? "0" : logits < 1e-9 ? `${powerOfTen(logits)}, which is rounding`
        : logits.toFixed(2);
      say.say(`Numbers of tokens have moved by up to ${tokens.toFixed(1)}, logits by up to ${words}. The `
        + `model says ${model.classes[best(chances)]}, ${percent(Math.max(...chances))}.`);
    }
    const element = h("div", {}, row(angle.element), fold("Turns that change the model",
      row(mean.element), row(norm.element)), say.element, ...tables.map((one) => one.element), maps.element,
      columns(said.element, digits));
    return { show, element };
  }
  const needs = ["../engine.js", `../models/${MODEL}.js`];
  return { title: "One model in any basis", needs, compute: { turn, answer }, mount };
})();
