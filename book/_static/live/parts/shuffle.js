// Chapter 3: the patches of a digit in another order, seen by one model with and without positions.
(globalThis.minivitParts ??= {}).shuffle = (() => {
  "use strict";
  const MODEL = "digits_vit";

  /** Logits of an image in the order of its patches: as the model is, and without its positions. */
  function answers(engine, model, bytes, order) {
    const image = engine.normalised(model, bytes);
    const logits = (removed) => [...engine.forward(model, image, { order, removed }).logits];
    return { with: logits([]), without: logits([["positions", null]]) };
  }

  const SIDE = 8, ACROSS = 4, PATCH = SIDE / ACROSS;
  /** Where number k of patch i stands in the image. */
  const at = (i, k) => (Math.floor(i / ACROSS) * PATCH + Math.floor(k / PATCH)) * SIDE
    + (i % ACROSS) * PATCH + (k % PATCH);

  function mount({ h, range, percent, best, softmax, button, image, bars, columns, row, speech, tenDigits }) {
    const engine = minivitEngine(), model = engine.open(minivitModels[MODEL]);
    const samples = minivitSamples[MODEL];
    let bytes = samples[1].pixels, order = range(ACROSS ** 2), picked = null;
    const say = speech();
    const board = image("Tap two patches", "A digit, its patches in the chosen order");
    const patches = order.map((i) => h("button", { type: "button", onclick: () => tap(i),
      "aria-label": `Patch in row ${Math.floor(i / ACROSS) + 1}, column ${(i % ACROSS) + 1}` }));
    board.frame.append(h("div", { class: "part-grid", role: "group", "aria-label": "Patches" }, ...patches));
    function tap(i) {
      if (picked === null) picked = i;
      else {
        [order[i], order[picked]] = [order[picked], order[i]];
        picked = null;
      }
      show();
    }
    function shuffle() {
      for (let i = order.length - 1; i > 0; i--) {
        const j = Math.floor(Math.random() * (i + 1));
        [order[i], order[j]] = [order[j], order[i]];
      }
      show();
    }
    function restore() {
      order = range(ACROSS ** 2);
      picked = null;
      show();
    }
    const digits = tenDigits(samples, (pixels) => {
      bytes = pixels;
      restore();
    });
    const tables = { with: bars("With positions", model.classes, true),
      without: bars("Without positions", model.classes, true) };

    function show() {
      const moved = new Uint8Array(bytes.length);
      order.forEach((from, to) => {
        for (const k of range(PATCH * PATCH)) moved[at(to, k)] = bytes[at(from, k)];
      });
      board.show(moved, [SIDE, SIDE], 1);
      patches.forEach((one, i) => one.setAttribute("aria-pressed", i == picked));
      const now = answers(engine, model, bytes, order);
      const before = answers(engine, model, bytes, range(ACROSS ** 2));
      for (const which of ["with", "without"]) tables[which].show(softmax(now[which]));
      const moves = (which) => {
        const most = Math.max(...now[which].map((v, c) => Math.abs(v - before[which][c])));
        return most < 1e-9 ? "0" : most.toFixed(1);
      };
      const chances = softmax(now.with), said = model.classes[best(chances)];
      say.say(`With positions: ${said}, ${percent(Math.max(...chances))}; its logits have moved by up to `
        + `${moves("with")}. Without: by ${moves("without")}.`);
    }
    for (const i of [1, 5, 9, 13]) [order[i], order[i + 1]] = [i + 1, i]; // the middle columns, to begin with
    const panels = columns(board.element, tables.with.element, tables.without.element);
    const buttons = row(button("Shuffle", shuffle), button("Put all back", restore), digits);
    return { show, element: h("div", {}, say.element, panels, buttons) };
  }
  const needs = ["../engine.js", `../models/${MODEL}.js`];
  return { title: "Shuffled patches, with and without positions", needs, compute: { answers }, mount };
})();
