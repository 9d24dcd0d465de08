// Chapter 12: a brush that changes an image where its patch embedding does not see it.
(globalThis.minivitParts ??= {}).unseen = (() => {
  "use strict";
  const SIDE = 96, PATCH = 8, DIM = 48; // 192 numbers of a patch become 48: the ratio of ViT-B/32
  const ACROSS = SIDE / PATCH, LENGTH = 3 * PATCH * PATCH;
  const WIDE = 1.6; // half of the brush, in patches

  const { normals, dot, beside, orthonormal } = minivitNumbers();
  /** An untrained embedding: [dim][length], normal numbers of variance 1 / length. */
  function embedding(dim = DIM, length = LENGTH) {
    const normal = normals(1);
    const row = () => Float64Array.from({ length }, () => normal() / Math.sqrt(length));
    return Array.from({ length: dim }, row);
  }
  const token = (patch, rows) => rows.map((row) => dot(row, patch));

  async function mount({ h, choice, button, image, panel, points, columns, row, speech, opened }) {
    const { cut, joined } = minivitPatches(SIDE, PATCH);
    const read = async (name) =>
      cut(Float64Array.from(await opened(minivitPhotographs[name], SIDE), (v) => v / 255));
    const cat = await read("chelsea"), astronaut = await read("astronaut");
    const rows = embedding(), seen = orthonormal(rows);
    const tokens = cat.map((patch) => token(patch, rows));
    const open = cat.map((patch, i) => astronaut[i].map((v, k) => v - patch[k]));
    const hidden = open.map((delta) => beside(delta, seen));
    const amount = new Float64Array(cat.length); // how much of each patch has been painted,
    const openly = new Uint8Array(cat.length); // and whether the embedding may see it
    const brush = choice("Brush", {
      hidden: "only what the embedding does not see", open: "the astronaut herself",
    }, "hidden", () => {});
    const picture = image("The picture: paint over it", "A cat, with what has been painted over it");
    const table = panel("Change of its tokens", "By how much each token has changed");
    const say = speech();
    const finger = [[0.5, 0.5]];
    points(picture.frame, finger, () => "The brush", () => {
      paint(finger[0]);
      show();
    }, 1 / ACROSS);
    function paint([x, y]) {
      for (let i = 0; i < cat.length; i++) {
        const down = Math.floor(i / ACROSS) + 0.5 - y * ACROSS, right = (i % ACROSS) + 0.5 - x * ACROSS;
        const away = Math.hypot(down, right);
        if (away > WIDE) continue;
        amount[i] = Math.max(amount[i], away < WIDE - 0.6 ? 1 : 0.5); // fainter at its edge
        openly[i] = brush.value == "open";
      }
    }
    function fill(value) {
      amount.fill(value);
      openly.fill(brush.value == "open");
      show();
    }
    const apart = (ours, theirs) =>
      ours.reduce((top, v, k) => Math.max(top, Math.abs(v - theirs[k])), 0);

    function show() {
      const now = cat.map((patch, i) =>
        patch.map((v, k) => v + amount[i] * (openly[i] ? open : hidden)[i][k]));
      const changes = now.map((patch, i) => (amount[i] ? apart(token(patch, rows), tokens[i]) : 0));
      const most = Math.max(...changes), pixels = Math.max(...now.map((patch, i) => apart(patch, cat[i])));
      picture.show(joined(now), [SIDE, SIDE]);
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
          context.strokeRect(i * cell, 0, 0, table.width);
          context.strokeRect(0, i * cell, table.width, 0);
        }
      });
      say.say(`Largest change of a pixel: ${pixels.toFixed(2)}. Of a number of a token: `
        + `${most < 1e-12 ? (pixels ? "0, to rounding" : "0") : most.toFixed(2)}.`);
    }
    [[0.3, 0.35], [0.4, 0.35], [0.5, 0.4], [0.55, 0.5]].forEach(paint); // a first stroke
    const buttons = row(button("Paint all of it", () => fill(1)), button("Clean", () => fill(0)));
    const panels = columns(picture.element, table.element);
    return { show, element: h("div", {}, row(brush.element), say.element, panels, buttons) };
  }
  return { title: "Painting in the null space of a patch embedding", needs: ["photographs.js"],
    compute: { embedding, orthonormal, beside, token }, mount };
})();
