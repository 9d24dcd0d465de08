// Chapter 28: a diffusion transformer that draws digits in the page.
(globalThis.minivitParts ??= {}).draw = (() => {
  "use strict";
  const SIDE = 8, PATCH = 2, ACROSS = SIDE / PATCH, TOKENS = ACROSS ** 2; // pixels, patches
  const NONE = 10; // the label that says nothing
  const ROWS = 2, COLUMNS = 5, GAP = 1; // of drawings, pixels between them
  const GREY = 128;
  const REST = 150; // milliseconds

  const silu = (x) => x.map((v) => v / (1 + Math.exp(-v)));

  /** Cosines, then sines, of a time, as dit.time_features. */
  function timeFeatures(t, dim) {
    const half = dim / 2, features = new Float64Array(dim);
    for (let k = 0; k < half; k++) {
      const angle = t * 1000 ** (k / (half - 1));
      features[k] = Math.cos(angle);
      features[half + k] = Math.sin(angle);
    }
    return features;
  }

  /** Where the pixels of each patch stand in an image, patch by patch. */
  const PLACES = Array.from({ length: SIDE ** 2 }, (_, j) => {
    const patch = Math.floor(j / PATCH ** 2), inside = j % PATCH ** 2;
    const row = Math.floor(patch / ACROSS) * PATCH + Math.floor(inside / PATCH);
    return row * SIDE + (patch % ACROSS) * PATCH + (inside % PATCH);
  });

  /** The velocity [64] of an image [64] at a time, by label, as dit.DiT. */
  function velocity(engine, model, image, t, label) {
    const { layers, config: { heads, depth } } = model, { linear } = engine;
    const dim = layers[""].positions.length / TOKENS;
    const told = linear(silu(linear(timeFeatures(t, dim), 1, layers["time.0"])), 1, layers["time.2"]);
    const c = silu(told.map((v, k) => v + layers.labels.weight[label * dim + k]));
    const part = (numbers, k) => numbers.subarray(k * dim, (k + 1) * dim);
    /** Tokens without mean and deviation, with a scale and shift of the condition's. */
    const normed = (x, numbers, shift, scale) => engine.layerNorm(x, TOKENS,
      { weight: part(numbers, scale).map((v) => 1 + v), bias: part(numbers, shift) });
    const added = (x, y, gate) => x.map((v, j) => v + gate[j % dim] * y[j]);

    const cut = Float64Array.from(PLACES, (place) => image[place]);
    let x = linear(cut, TOKENS, layers["patch_embedding.projection"]);
    x = x.map((v, j) => v + layers[""].positions[j]);
    for (let i = 0; i < depth; i++) {
      const block = `blocks.${i}`, numbers = linear(c, 1, layers[`${block}.modulation`]);
      const attended = engine.attention(normed(x, numbers, 0, 1), TOKENS, layers, `${block}.attention`,
        heads, new Set()).out;
      x = added(x, attended, part(numbers, 2));
      x = added(x, engine.mlp(normed(x, numbers, 3, 4), TOKENS, layers, `${block}.mlp`), part(numbers, 5));
    }
    const pixels = linear(normed(x, linear(c, 1, layers.modulation), 0, 1), TOKENS, layers.head);
    const whole = new Float64Array(SIDE ** 2);
    PLACES.forEach((place, j) => (whole[place] = pixels[j]));
    return whole;
  }

  /** An image one Euler step later, with guidance. */
  function step(engine, model, image, i, steps, label, scale) {
    const told = velocity(engine, model, image, i / steps, label);
    if (scale == 1 || label == NONE) return image.map((v, j) => v + told[j] / steps);
    const free = velocity(engine, model, image, i / steps, NONE);
    return image.map((v, j) => v + (free[j] + scale * (told[j] - free[j])) / steps);
  }

  /** Images as ink on paper, side by side: bytes, and their height and width. */
  function sheet(images) {
    const size = [ROWS * (SIDE + GAP) - GAP, COLUMNS * (SIDE + GAP) - GAP];
    const bytes = new Uint8ClampedArray(size[0] * size[1]).fill(GREY);
    images.forEach((image, n) => image.forEach((v, j) => {
      const row = Math.floor(n / COLUMNS) * (SIDE + GAP) + Math.floor(j / SIDE);
      bytes[row * size[1] + (n % COLUMNS) * (SIDE + GAP) + (j % SIDE)] = 127.5 * (1 - v);
    }));
    return { bytes, size };
  }

  /** By how much images differ: the variance of a pixel, a mean over pixels. */
  function variance(images) {
    const n = images.length;
    let sum = 0;
    for (let j = 0; j < SIDE ** 2; j++) {
      const mean = images.reduce((a, image) => a + image[j] / n, 0);
      sum += images.reduce((a, image) => a + (image[j] - mean) ** 2 / (n - 1), 0);
    }
    return sum / SIDE ** 2;
  }

  function mount({ range, handle, choice, button, row, image, speech, patiently, load, h }) {
    const engine = minivitEngine(), say = speech(), often = patiently();
    const normal = minivitNumbers().normals(0), noise = () => Float64Array.from({ length: SIDE ** 2 }, normal);
    const names = Object.fromEntries([...range(10).map((digit) => [digit, digit]), [NONE, "any"]]);
    const label = choice("Draw a", names, 3, () => go());
    const guidance = handle({ label: "Guidance", min: 1, max: 5, step: 0.5, value: 1 }, () => go());
    const steps = handle({ label: "Steps", min: 1, max: 40, value: 20 }, () => go());
    const time = handle({ label: "Time", min: 0, max: 1, step: 0.01, value: 0,
      words: (t) => t.toFixed(2) }, () => show());
    const stage = image("Ten drawings, from ten noises", "Ten images of 8 by 8 pixels");
    let model = null, rest = 0, starts = range(ROWS * COLUMNS).map(noise), stages = [starts];

    /** Begins once the hand rests: what is drawn meanwhile would be in vain. */
    async function go() {
      const busy = (yes) => stage.frame.setAttribute("aria-busy", yes);
      often(0, null, () => {}); // ends what is being drawn
      busy(true);
      say.say(model ? "Drawing \u2026" : "The model is being loaded \u2026");
      try {
        await load("digits_dit.js");
        model ??= engine.open(minivitModels.digits_dit);
      } catch (error) {
        busy(false);
        return say.say(error.message);
      }
      clearTimeout(rest);
      rest = setTimeout(() => draw(busy), REST);
    }
    function draw(busy) {
      const n = steps.value, digit = Number(label.value), scale = guidance.value;
      const all = starts.length;
      stages = [starts];
      often(n * all, (k) => { // one image after the other, so that a hand need not wait for all
        const i = Math.floor(k / all);
        (stages[i + 1] ??= []).push(step(engine, model, stages[i][k % all], i, n, digit, scale));
      }, (k) => {
        const i = Math.floor(k / all); // steps that all have taken
        time.value = i / n;
        show(n);
        busy(i < n);
        if (i == n) say.say(ended(n, digit, scale));
      });
    }
    function ended(n, digit, scale) {
      const passes = n * (scale == 1 || digit == NONE ? 1 : 2);
      return `${passes} pass${passes > 1 ? "es" : ""} through the network for each. Variance among the ten: `
        + `${variance(stages[n]).toFixed(2)}. Move the time to see them on the way.`;
    }
    function show(n = stages.length - 1) {
      const { bytes, size } = sheet(stages[Math.round(time.value * n)]);
      stage.show(bytes, size, 1);
    }
    const other = button("Other noise", () => {
      starts = starts.map(noise);
      go();
    });
    say.say("Choose a digit or press Draw: the model, 0.2 MB, is loaded then.");
    return { show: () => show(), element: h("div", {}, row(label.element), row(guidance.element, steps.element),
      row(button("Draw", () => go()), other), stage.element, row(time.element), say.element) };
  }
  return { title: "A vision transformer that draws", needs: ["../engine.js"],
    compute: { timeFeatures, velocity, step, variance }, mount };
})();
