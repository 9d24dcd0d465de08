// Chapter 9: what the patch under the finger looks at, in every head of every block.
(globalThis.minivitParts ??= {}).heads = (() => {
  "use strict";
  const MODEL = "cifar10_vit";

  /** Mean distance, in pixels, of what a head looks at; weights [n * n], of a square grid. */
  function distance(weights, across, patch) {
    const n = across * across;
    let total = 0;
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) {
      const down = Math.floor(i / across) - Math.floor(j / across), right = (i % across) - (j % across);
      total += (weights[i * n + j] * patch * Math.hypot(down, right)) / n;
    }
    return total;
  }

  function mount({ h, range, image, points, columns, row, speech, drawMap, drawImage }) {
    const engine = minivitEngine(), model = engine.open(minivitModels[MODEL]), samples = minivitSamples[MODEL];
    const { config } = model, side = config.image_size[0], patch = config.patch_size[0], across = side / patch, n = across * across;
    const uniform = distance(new Float64Array(n * n).fill(1 / n), across, patch);
    let sample = samples[0], attention = null, finger = null;
    const say = speech(), photo = image("Drag over the picture", "The picture that the model sees");
    finger = points(photo.frame, [[0.42, 0.4]], () => `Patch in row ${Math.floor(query() / across) + 1}, column ${query() % across + 1}`,
      () => show(), 1 / across);
    function query() {
      const [x, y] = (finger?.places[0] ?? [0, 0]).map((p) => Math.min(across - 1, Math.floor(p * across)));
      return y * across + x;
    }
    const maps = range(config.depth).map((b) => range(config.heads).map((head) => {
      const canvas = h("canvas", { role: "img" }), far = h("span");
      return { b, head, canvas, far, element: h("div", { class: "part-head" }, canvas, far) };
    }));
    const grid = h("div", { class: "part-thumbs" }, ...maps.flatMap((heads, b) => [h("span", {}, `Block ${b + 1}`), ...heads.map((one) => one.element)]));
    const others = h("div", { class: "part-digits", role: "group", "aria-label": "Pictures" }, ...samples.map((one) => {
      const pixels = drawImage(h("canvas", { "aria-hidden": "true" }), one.pixels, [side, side], 3);
      return h("button", { type: "button", class: "part-button", "aria-label": one.name, onclick: () => { sample = one; look(); show(); } }, pixels);
    }));
    /** Attention for the picture: [blocks][heads][n * n]. */
    function look() {
      const found = engine.forward(model, engine.normalised(model, sample.pixels)).attention;
      attention = found.map((weights) => range(config.heads).map((head) => weights.subarray(head * n * n, (head + 1) * n * n)));
      maps.flat().forEach(({ b, head, far }) => (far.textContent = (distance(attention[b][head], across, patch) / uniform).toFixed(2)));
    }

    function show() {
      photo.show(sample.pixels, [side, side]);
      const q = query(), shares = [];
      maps.flat().forEach(({ b, head, canvas }) => {
        const weights = [...attention[b][head].subarray(q * n, (q + 1) * n)];
        drawMap(canvas, weights.map(Math.sqrt), [across, across]);
        canvas.setAttribute("aria-label", `Block ${b + 1}, head ${head + 1}: looks most at row `
          + `${Math.floor(weights.indexOf(Math.max(...weights)) / across) + 1}, column ${weights.indexOf(Math.max(...weights)) % across + 1}`);
        shares.push({ b, head, most: Math.max(...weights) });
      });
      const { b, head, most } = shares.sort((one, other) => other.most - one.most)[0];
      say.say(`Row ${Math.floor(q / across) + 1}, column ${q % across + 1}. Its most decided head is number ${head + 1} of block ${b + 1}: `
        + `${Math.round(100 * most)} % on one patch.`);
    }
    look();
    return { show, element: h("div", {}, say.element, columns(h("div", {}, photo.element, others), grid)) };
  }
  return { title: "Where every head looks from one patch", needs: ["../engine.js", `../models/${MODEL}.js`], compute: { distance }, mount };
})();
