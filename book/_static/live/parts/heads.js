// Chapter 9: what the patch under the finger looks at, in every head of every block.
(globalThis.minivitParts ??= {}).heads = (() => {
  "use strict";
  const MODEL = "cifar10_vit";

  /** Mean distance, in pixels, of what a head looks at; weights [n * n], of a square grid. */
  function distance(weights, across, patch) {
    const n = across * across;
    let total = 0;
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) {
      const down = Math.floor(i / across) - Math.floor(j / across);
      const right = (i % across) - (j % across);
      total += (weights[i * n + j] * patch * Math.hypot(down, right)) / n;
    }
    return total;
  }

  function mount({ h, range, button, image, points, columns, speech, drawMap, drawImage }) {
    const engine = minivitEngine(), model = engine.open(minivitModels[MODEL]);
    const samples = minivitSamples[MODEL], { image_size: [side], patch_size: [patch] } = model.config;
    const across = side / patch, n = across * across;
    const uniform = distance(new Float64Array(n * n).fill(1 / n), across, patch);
    let sample = samples[0], attention = null;
    const say = speech(), photo = image("Drag over the picture", "The picture that the model sees");
    const finger = [[0.42, 0.4]];
    const at = () => finger[0].map((p) => Math.min(across - 1, Math.floor(p * across))); // column, row
    const named = ([x, y]) => `row ${y + 1}, column ${x + 1}`;
    points(photo.frame, finger, () => `Patch in ${named(at())}`, () => show(), 1 / across);
    const maps = range(model.config.depth).map((b) => range(model.config.heads).map((head) => {
      const canvas = h("canvas", { role: "img" }), far = h("span");
      return { b, head, canvas, far, element: h("div", { class: "part-head" }, canvas, far) };
    }));
    const grid = h("div", { class: "part-thumbs" }, ...maps.flatMap((heads, b) =>
      [h("span", {}, `Block ${b + 1}`), ...heads.map((one) => one.element)]));
    const pictures = samples.map((one) => button(
      drawImage(h("canvas", { "aria-hidden": "true" }), one.pixels, [side, side], 3),
      () => {
        sample = one;
        look();
        show();
      }, one.name));
    const others = h("div", { class: "part-digits", role: "group", "aria-label": "Pictures" }, ...pictures);

    /** Attention for the picture: [blocks][heads][n * n]. */
    function look() {
      const found = engine.forward(model, engine.normalised(model, sample.pixels)).attention;
      attention = found.map((weights) => range(weights.length / n / n).map((head) =>
        weights.subarray(head * n * n, (head + 1) * n * n)));
      maps.flat().forEach(({ b, head, far }) => {
        far.textContent = (distance(attention[b][head], across, patch) / uniform).toFixed(2);
      });
    }

    function show() {
      photo.show(sample.pixels, [side, side]);
      const [x, y] = at(), q = y * across + x;
      const seen = maps.flat().map(({ b, head, canvas }) => {
        const weights = [...attention[b][head].subarray(q * n, (q + 1) * n)];
        const most = Math.max(...weights), where = weights.indexOf(most);
        drawMap(canvas, weights.map(Math.sqrt), [across, across]);
        canvas.setAttribute("aria-label", `Block ${b + 1}, head ${head + 1}: looks most at `
          + named([where % across, Math.floor(where / across)]));
        return { b, head, most };
      });
      const { b, head, most } = seen.sort((one, other) => other.most - one.most)[0];
      say.say(`From ${named([x, y])}: the most decided head is number ${head + 1} of block ${b + 1}, with `
        + `${Math.round(100 * most)} % on one patch.`);
    }
    look();
    const panels = columns(h("div", {}, photo.element, others), grid);
    return { show, element: h("div", {}, say.element, panels) };
  }
  const needs = ["../engine.js", `../models/${MODEL}.js`];
  return { title: "Where every head looks from one patch", needs, compute: { distance }, mount };
})();
