// Chapter 21: the parts of a model by depth as boxes; without some of them, which digits are missed.
(globalThis.minivitParts ??= {}).boxes = (() => {
  "use strict";
  const MODEL = "digits_vit", PARTS = { attention: "Attention", mlp: "MLP", residual: "Residual" };
  const SIDE = 8, ACROSS = 20; // images in a row of the picture

  const switches = (removed) => ({ removed: removed.map(([part, block]) => [part, [block]]) });

  /** The class that the model says for each image [n][64] without these parts. */
  const answers = (engine, model, images, removed) => images.map((bytes) => {
    const { logits } = engine.forward(model, engine.normalised(model, bytes), switches(removed));
    return logits.indexOf(Math.max(...logits));
  });

  function mount({ h, range, button, panel, row, speech, patiently, testDigits }) {
    const engine = minivitEngine(), model = engine.open(minivitModels[MODEL]);
    const { labels, images } = testDigits(), soon = patiently();
    const said = new Int8Array(labels.length).fill(-1), off = new Set();
    let whole = null;
    const say = speech(), lines = Math.ceil(labels.length / ACROSS);
    const picture = panel(`${labels.length} test digits: missed ones in colour`,
      "The test digits; those that the model misses are coloured", [640, 32 * lines]);
    const boxes = {}; // by part and block
    const newBox = (part, block) => (boxes[`${part}/${block}`] = h("button", {
      type: "button", class: "part-box", "aria-label": `${PARTS[part]} of block ${block + 1}`,
      onclick: () => toggle(`${part}/${block}`),
    }, PARTS[part]));
    const stack = h("div", { class: "part-stack" }, ...range(model.config.depth).map((b) =>
      h("div", { class: "part-block" }, h("span", {}, `Block ${b + 1}`),
        ...Object.keys(PARTS).map((part) => newBox(part, b)))));
    function toggle(key) {
      if (!off.delete(key)) off.add(key);
      measure();
    }

    /** Asks the model about all digits. */
    function measure() {
      const removed = [...off].map((key) => key.split("/")).map(([part, b]) => [part, Number(b)]);
      said.fill(-1);
      soon(images.length, (i) => ([said[i]] = answers(engine, model, [images[i]], removed)), (done) => {
        stack.setAttribute("aria-busy", done < images.length);
        if (done == images.length && !removed.length) whole = count();
        draw();
      });
    }
    const count = () => labels.filter((label, i) => said[i] == label).length;

    function draw() {
      for (const [key, box] of Object.entries(boxes)) box.setAttribute("aria-pressed", !off.has(key));
      picture.draw((context, colour) => {
        const cell = picture.width / ACROSS, unit = cell / SIDE;
        images.forEach((image, i) => {
          const missed = said[i] >= 0 && said[i] != labels[i];
          const left = (i % ACROSS) * cell, top = Math.floor(i / ACROSS) * cell;
          context.fillStyle = missed ? colour.second : "#000";
          context.globalAlpha = said[i] < 0 ? 0.35 : 1;
          context.fillRect(left, top, cell - 1, cell - 1);
          context.fillStyle = "#fff";
          image.forEach((v, k) => {
            if (!v) return;
            context.globalAlpha = (v / 255) * (said[i] < 0 ? 0.35 : 1);
            const [x, y] = [k % SIDE, Math.floor(k / SIDE)];
            context.fillRect(left + x * unit, top + y * unit, unit, unit);
          });
        });
        context.globalAlpha = 1;
      });
      const done = said.filter((v) => v >= 0).length, right = count();
      const points = (some) => ((100 * some) / images.length).toFixed(1);
      if (done < images.length) return say.say(`${done} of ${images.length} digits …`);
      const lost = off.size && whole !== null ? `; ${points(whole - right)} points lost.` : ".";
      say.say(`Right for ${right} of ${images.length} digits, ${points(right)} %${lost}`);
    }
    const restore = button("Put all back", () => {
      off.clear();
      measure();
    });
    measure();
    return { show: draw, element: h("div", {}, stack, row(restore), say.element, picture.element) };
  }
  const needs = ["../engine.js", "digits.js", `../models/${MODEL}.js`];
  return { title: "A model without some of its parts", needs, compute: { answers }, mount };
})();
