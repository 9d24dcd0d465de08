// Chapter 26: what centering and a low temperature make of a teacher's scores.
(globalThis.minivitParts ??= {}).brakes = (() => {
  "use strict";
  const K = 6; // outputs; the third is large for every image
  const SCORES = [
    [0.9, 0.1, 1.6, 0.2, 0.0, 0.3],
    [0.1, 0.2, 1.7, 1.0, 0.1, 0.2],
    [0.2, 0.0, 1.5, 0.1, 0.3, 1.1],
  ];

  const mean = (rows) => rows[0].map((_, k) => rows.reduce((sum, row) => sum + row[k], 0) / rows.length);

  /** Of each image's scores, less a share of their mean, the softmax at a temperature. */
  function targets(scores, share, temperature) {
    const centre = mean(scores);
    return scores.map((row) => minivitNumbers().softmax(row.map((v, k) => (v - share * centre[k]) / temperature)));
  }
  const entropy = (p) => -p.reduce((sum, v) => sum + (v > 0 ? v * Math.log(v) : 0), 0);

  /** How many groups the outputs tell apart: 1 if all images have the same. */
  function groups(rows) {
    const own = rows.reduce((sum, row) => sum + entropy(row), 0) / rows.length;
    return Math.exp(entropy(mean(rows)) - own);
  }

  function mount({ h, handle, bars, columns, speech, row }) {
    const share = handle({
      label: "Centre subtracted", min: 0, max: 1, step: 0.05, value: 0, words: (v) => `${Math.round(100 * v)} %`,
    }, () => show());
    const heat = handle({
      label: "Temperature", min: -1.7, max: 0.6, step: 0.05, value: -1, words: (v) => (10 ** v).toFixed(2),
    }, () => show());
    const names = Array.from({ length: K }, (_, k) => String(k + 1));
    const images = ["One image", "Another", "A third"].map((title) => bars(title, names));
    const far = bars("Entropy, from 0 to ln 6", ["mean"]);
    const say = speech();
    function show() {
      const found = targets(SCORES, share.value, 10 ** heat.value);
      found.forEach((p, i) => images[i].show(p, p.map((v) => v.toFixed(2))));
      const own = found.reduce((sum, p) => sum + entropy(p), 0) / found.length;
      far.show([own / Math.log(K)], [own.toFixed(2)]);
      const apart = groups(found);
      const kind = apart > 1.5 ? "the outputs tell the images apart"
        : own > 0.8 * Math.log(K) ? "all outputs are nearly uniform"
          : "all images have nearly the same output";
      say.say(`Entropy ${own.toFixed(2)} of at most ${Math.log(K).toFixed(2)}: ${kind} (${apart.toFixed(1)} groups).`);
    }
    const panels = columns(...images.map((one) => one.element));
    return { show, element: h("div", {}, row(share.element, heat.element), say.element, panels, far.element) };
  }
  return { title: "A teacher's output, centred and sharpened", compute: { targets, entropy, groups }, mount };
})();
