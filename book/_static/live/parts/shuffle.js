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

  function mount({ h, range, percent, best, softmax, button, image, columns, row, speech }) {
    const engine = minivitEngine(), model = engine.open(minivitModels[MODEL]), samples = minivitSamples[MODEL];
    const ACROSS = 4, SIDE = 8, PATCH = SIDE / ACROSS;
    let bytes = samples[0].pixels, order = range(ACROSS ** 2), picked = null;
    const say = speech(), board = image("Tap two patches: they change places", "A digit, its patches in the chosen order");
    const patches = range(ACROSS ** 2).map((i) => h("button", { type: "button", onclick: () => tap(i),
      "aria-label": `Patch in row ${Math.floor(i / ACROSS) + 1}, column ${i % ACROSS + 1}` }));
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
    const digits = h("div", { class: "part-digits", role: "group", "aria-label": "Digits" }, ...samples.slice(0, 10).map((sample) =>
      h("button", { type: "button", class: "part-button", "aria-label": sample.name, onclick: () => {
        bytes = sample.pixels;
        order = range(ACROSS ** 2);
        show();
      } }, sample.name.slice(2, 3))));
    const tables = ["With positions", "Without positions"].map((title) => {
      const bars = model.classes.map((label) => {
        const bar = h("span", { class: "part-bar" });
        return { bar, element: h("div", { class: "part-weight" }, h("span", {}, label), h("span", { class: "part-track" }, bar)) };
      });
      return { bars, element: h("div", {}, h("p", { class: "part-title" }, title), ...bars.map((bar) => bar.element)) };
    });

    function show() {
      const moved = new Uint8Array(bytes.length);
      order.forEach((from, to) => range(PATCH * PATCH).forEach((k) => {
        const at = (i) => (Math.floor(i / ACROSS) * PATCH + Math.floor(k / PATCH)) * SIDE + (i % ACROSS) * PATCH + (k % PATCH);
        moved[at(to)] = bytes[at(from)];
      }));
      board.show(moved, [SIDE, SIDE], 1);
      patches.forEach((one, i) => one.setAttribute("aria-pressed", i == picked));
      const now = answers(engine, model, bytes, order), before = answers(engine, model, bytes, range(ACROSS ** 2));
      const off = (which) => Math.max(...now[which].map((v, c) => Math.abs(v - before[which][c])));
      ["with", "without"].forEach((which, t) => {
        const chances = softmax(now[which]);
        tables[t].bars.forEach(({ bar, element }, c) => {
          bar.style.width = `${100 * chances[c]}%`;
          element.classList.toggle("is-best", c == best(chances));
        });
      });
      const moves = (v) => (v < 1e-9 ? "0" : v.toFixed(1)), chances = softmax(now.with);
      say.say(`With positions: ${model.classes[best(chances)]}, ${percent(Math.max(...chances))}; logits moved by up to `
        + `${moves(off("with"))}. Without: by ${moves(off("without"))}.`);
    }
    [[1, 2], [5, 6], [9, 10], [13, 14]].forEach(([i, j]) => ([order[i], order[j]] = [order[j], order[i]])); // to begin with
    return { show, element: h("div", {}, say.element, columns(board.element, ...tables.map((table) => table.element)),
      row(button("Shuffle", shuffle), button("Put all back", () => { order = range(ACROSS ** 2); picked = null; show(); }), digits)) };
  }
  return { title: "Shuffled patches, with and without positions", needs: ["../engine.js", `../models/${MODEL}.js`],
    compute: { answers }, mount };
})();
