// Chapter 12: a brush that changes an image where its patch embedding does not see it.
(globalThis.minivitParts ??= {}).unseen = (() => {
  "use strict";
  const SIDE = 96, PATCH = 8, DIM = 48; // 192 numbers of a patch become 48: the ratio of ViT-B/32
  const ACROSS = SIDE / PATCH, LENGTH = 3 * PATCH * PATCH;

  /** Uniform numbers between 0 and 1, always the same (mulberry32). */
  function uniforms(seed) {
    return () => {
      seed = (seed + 0x6d2b79f5) | 0;
      let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
    };
  }

  /** An untrained embedding: [dim][length], normal numbers of variance 1 / length. */
  function embedding(dim = DIM, length = LENGTH, seed = 1) {
    const next = uniforms(seed);
    const normal = () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
    return Array.from({ length: dim }, () => Float64Array.from({ length }, () => normal() / Math.sqrt(length)));
  }

  /** Orthonormal vectors that span the rows: what the embedding sees. Gram-Schmidt, twice. */
  function seenDirections(rows) {
    const found = [];
    for (const row of rows) {
      const v = row.slice();
      for (let twice = 0; twice < 2; twice++) for (const u of found) subtract(v, u, dot(u, v));
      const length = Math.sqrt(dot(v, v));
      found.push(v.map((x) => x / length));
    }
    return found;
  }
  const dot = (a, b) => a.reduce((sum, v, k) => sum + v * b[k], 0);
  const subtract = (v, u, times) => u.forEach((x, k) => (v[k] -= times * x));

  /** The part of a change of one patch that adds nothing to its token. */
  function unseen(delta, directions) {
    const left = delta.slice();
    for (let twice = 0; twice < 2; twice++) for (const u of directions) subtract(left, u, dot(u, left));
    return left;
  }
  const token = (patch, rows) => rows.map((row) => dot(row, patch));

  const place = (i, k) => 3 * ((Math.floor(i / ACROSS) * PATCH + Math.floor(k / (3 * PATCH))) * SIDE
    + (i % ACROSS) * PATCH + Math.floor((k % (3 * PATCH)) / 3)) + (k % 3);
  const cut = (image) => Array.from({ length: ACROSS ** 2 }, (_, i) =>
    Float64Array.from({ length: LENGTH }, (_, k) => image[place(i, k)]));

  async function mount({ h, handle, choice, button, image, panel, points, columns, row, speech, opened }) {
    const unit = async (name) => cut(Float64Array.from(await opened(minivitPhotographs[name], SIDE), (v) => v / 255));
    const [cat, astronaut] = [await unit("chelsea"), await unit("astronaut")];
    const rows = embedding(), directions = seenDirections(rows), tokens = cat.map((patch) => token(patch, rows));
    const hidden = cat.map((patch, i) => unseen(astronaut[i].map((v, k) => v - patch[k]), directions));
    const open = cat.map((patch, i) => astronaut[i].map((v, k) => v - patch[k]));
    let amount = new Float64Array(cat.length), seen = new Uint8Array(cat.length); // painted, and openly
    const brush = choice("Brush", { hidden: "only what the embedding does not see", open: "the astronaut herself" }, "hidden", () => {});
    const picture = image("The picture: paint over it", "A cat, with what has been painted over it");
    const table = panel("Change of its tokens", "By how much each token has changed: black for none");
    const say = speech();
    let finger = null;
    finger = points(picture.frame, [[0.5, 0.5]], () => "The brush", (i) => { paint(finger.places[i]); show(); }, 1 / ACROSS);
    function paint([x, y]) {
      for (let i = 0; i < cat.length; i++) {
        const away = Math.hypot((i % ACROSS) + 0.5 - x * ACROSS, Math.floor(i / ACROSS) + 0.5 - y * ACROSS);
        if (away > 1.6) continue;
        amount[i] = Math.max(amount[i], 1.6 - away > 0.6 ? 1 : 0.5);
        seen[i] = brush.value == "open";
      }
    }
    function everything() { amount.fill(1); seen.fill(brush.value == "open"); show(); }
    function clear() { amount.fill(0); seen.fill(0); show(); }

    function show() {
      const bytes = new Uint8ClampedArray(3 * SIDE * SIDE), changes = [];
      let most = 0, pixels = 0;
      cat.forEach((patch, i) => {
        const by = seen[i] ? open[i] : hidden[i], now = patch.map((v, k) => v + amount[i] * by[k]);
        now.forEach((v, k) => {
          bytes[place(i, k)] = 255 * v;
          pixels = Math.max(pixels, Math.abs(v - patch[k]));
        });
        const change = token(now, rows).reduce((top, v, j) => Math.max(top, Math.abs(v - tokens[i][j])), 0);
        changes.push(change);
        most = Math.max(most, change);
      });
      picture.show(bytes, [SIDE, SIDE]);
      table.draw((context, colour) => {
        const cell = table.width / ACROSS;
        changes.forEach((v, i) => {
          context.fillStyle = colour.second;
          context.globalAlpha = Math.min(1, v / 0.5);
          context.fillRect((i % ACROSS) * cell, Math.floor(i / ACROSS) * cell, cell, cell);
        });
        context.globalAlpha = 1;
        context.strokeStyle = colour.line;
        for (let i = 0; i <= ACROSS; i++) {
          context.beginPath(); context.moveTo(i * cell, 0); context.lineTo(i * cell, table.width); context.stroke();
          context.beginPath(); context.moveTo(0, i * cell); context.lineTo(table.width, i * cell); context.stroke();
        }
      });
      say.say(`Largest change of a pixel: ${pixels.toFixed(2)}. Of a number of a token: `
        + `${most < 1e-12 ? (pixels ? "0, to rounding" : "0") : most.toFixed(2)}.`);
    }
    [[0.3, 0.35], [0.4, 0.35], [0.5, 0.4], [0.55, 0.5]].forEach(paint); // a first stroke, to begin with
    return { show, element: h("div", {}, row(brush.element), say.element, columns(picture.element, table.element),
      row(button("Paint all of it", everything), button("Clean", clear))) };
  }
  return { title: "Painting in the null space of a patch embedding", needs: ["photographs.js"],
    compute: { embedding, seenDirections, unseen, token }, mount };
})();
