// Chapter 17: parts of a trained model in an untrained one, which shares its start or does not.
(globalThis.minivitParts ??= {}).donors = (() => {
  "use strict";
  const DONOR = "digits_vit", HOSTS = { start_1: "in another model's start", start_0: "in its own start" };
  const NAMES = { patch_embedding: "Embedding", positions: "Positions", norm: "Final norm", head: "Head" };

  const named = (part) => NAMES[part] ?? `Block ${Number(part.slice(7)) + 1}`;

  /** The part that a layer belongs to: a block, or what stands before or after them all. */
  const partOf = (layer) => layer.match(/^(blocks\.\d+|\w+)/)[0];

  /** A host with some parts of a donor, by name; both are of the same build. */
  function grafted(donor, host, parts) {
    const layers = Object.keys(host.layers).map((name) =>
      [name, (parts.includes(partOf(name)) ? donor : host).layers[name]]);
    return { ...host, layers: Object.fromEntries(layers) };
  }

  /** The class that the model says for each image [n][64]. */
  function answers(engine, donor, host, parts, images) {
    const model = grafted(donor, host, parts);
    return images.map((bytes) => {
      const { logits } = engine.forward(model, engine.normalised(model, bytes));
      return logits.indexOf(Math.max(...logits));
    });
  }

  function mount({ h, range, button, bars, row, speech, patiently, testDigits }) {
    const engine = minivitEngine(), donor = engine.open(minivitModels[DONOR]);
    const hosts = Object.keys(HOSTS).map((name) => engine.open(minivitModels[name]));
    const { labels, images } = testDigits(), soon = patiently(), say = speech();
    const blocks = range(donor.config.depth).map((b) => `blocks.${b}`);
    const parts = ["patch_embedding", "positions", ...blocks, "norm", "head"]; // from the entrance up
    const trained = new Set(parts);
    const boxes = parts.map((part) => h("button", {
      type: "button", class: "part-box", onclick: () => {
        if (!trained.delete(part)) trained.add(part);
        measure();
      },
    }, named(part)));
    const stack = h("div", { class: "part-stack", role: "group", "aria-label": "Trained parts" }, ...boxes);
    const legend = h("p", { class: "part-title" }, "Press a part: filled, as trained; dashed, as before training");
    const right = hosts.map(() => 0), table = bars("Digits read", Object.values(HOSTS));
    let done = 0;

    /** Asks both models about all digits. */
    function measure() {
      right.fill(0);
      soon(images.length, (i) => hosts.forEach((host, k) => {
        right[k] += answers(engine, donor, host, [...trained], [images[i]])[0] == labels[i];
      }), (asked) => {
        done = asked;
        table.element.setAttribute("aria-busy", done < images.length);
        show();
      });
    }
    function show() {
      boxes.forEach((box, i) => box.setAttribute("aria-pressed", trained.has(parts[i])));
      const shares = right.map((count) => count / Math.max(1, done));
      const words = shares.map((share) => `${(100 * share).toFixed(1)} %`);
      table.show(shares, words);
      if (done < images.length) return say.say(`${done} of ${images.length} digits …`);
      const not = parts.filter((part) => !trained.has(part)).map((part) => named(part).toLowerCase());
      const what = !not.length ? "All is trained" : !trained.size ? "Nothing is trained"
        : `Untrained: ${not.join(", ")}`;
      say.say(`${what}. Of ${images.length} digits ${words[0]} are read in another model's start, `
        + `${words[1]} in the donor's own.`);
    }
    const only = (words, some) => button(words, () => {
      trained.clear();
      some.forEach((part) => trained.add(part));
      measure();
    });
    measure();
    const buttons = row(only("All trained", parts), only("The head alone", ["head"]));
    return { show, element: h("div", {}, legend, stack, buttons, say.element, table.element) };
  }
  const starts = Object.keys(HOSTS).map((name) => `${name}.js`);
  const needs = ["../engine.js", "digits.js", `../models/${DONOR}.js`, ...starts];
  return { title: "Trained parts in an untrained model", needs, compute: { answers }, mount };
})();
