// Where heads look: the picture, lit there. The one way in which pages draw attention.
function minivitLit(tools) {
  "use strict";
  const { h, range, drawImage } = tools;
  const DARK = 0.2, GLOW = 0.35; // of its light has what a head does not look at; what it looks at, beyond its own
  const RAMP = [[0, 0, 4], [81, 18, 124], [183, 55, 121], [252, 137, 97], [252, 253, 191]]; // magma
  const SHARP = 448; // pixels of a side, of a picture that the model sees with fewer

  /** Light from 0 to 1 for each weight: its root, so that small weights are seen. */
  function light(weights) {
    const most = Math.max(...weights) || 1;
    return Array.from(weights, (w) => Math.sqrt(w / most));
  }

  /** The colour of a number from 0 to 1. */
  function ramp(t) {
    const at = Math.min(RAMP.length - 1.001, Math.max(0, t) * (RAMP.length - 1)), i = Math.floor(at);
    return `rgb(${RAMP[i].map((v, c) => Math.round(v + (at - i) * (RAMP[i + 1][c] - v)))})`;
  }

  /**
   * A picture on a canvas, lit by weights of its patches if there are any. A grey one, whose ground
   * is black, takes the ramp's colours as its ground.
   */
  function draw(canvas, picture, weights, [rows, columns], grey = false) {
    const { width, height } = canvas, context = canvas.getContext("2d");
    const edge = (i, n, size) => Math.round((i * size) / n);
    const fill = (colour) => light(weights).forEach((t, i) => {
      const [row, column] = [Math.floor(i / columns), i % columns];
      const [x, y] = [edge(column, columns, width), edge(row, rows, height)];
      context.fillStyle = colour(t);
      context.fillRect(x, y, edge(column + 1, columns, width) - x, edge(row + 1, rows, height) - y);
    });
    context.imageSmoothingEnabled = !grey;
    context.imageSmoothingQuality = "high";
    context.globalCompositeOperation = "source-over";
    if (grey && weights) {
      fill((t) => ramp(0.85 * t));
      context.globalCompositeOperation = "screen";
      context.globalAlpha = 0.75;
    }
    context.drawImage(picture, 0, 0, width, height);
    context.globalAlpha = 1;
    context.globalCompositeOperation = "source-over";
    if (grey || !weights) return;
    fill((t) => `rgb(0 0 0 / ${(1 - DARK) * (1 - t)})`);
    fill((t) => `rgb(255 240 199 / ${GLOW * t * t})`);
  }

  /** Pixels as a model sees them, as a picture to draw. */
  const pixels = (bytes, size, channels) => drawImage(h("canvas"), bytes, size, channels);

  /** A picture cut in its middle to the shape that a model takes, with more pixels. */
  function cut(picture, [rows, columns]) {
    const [w, t] = [picture.naturalWidth ?? picture.width, picture.naturalHeight ?? picture.height];
    const unit = Math.min(w / columns, t / rows), scale = SHARP / Math.max(rows, columns);
    const canvas = h("canvas", { width: scale * columns, height: scale * rows });
    const [wide, tall] = [unit * columns, unit * rows];
    canvas.getContext("2d").drawImage(picture, (w - wide) / 2, (t - tall) / 2, wide, tall, 0, 0, canvas.width, canvas.height);
    return canvas;
  }

  /** A picture from an address, or nothing if there is none. */
  async function fetched(address) {
    const picture = new Image();
    picture.src = address;
    try {
      await picture.decode();
      return picture;
    } catch {
      return null;
    }
  }

  const where = (place, [, columns]) => `row ${Math.floor(place / columns) + 1}, column ${place % columns + 1}`;

  /**
   * All heads as buttons, a row a block. A tap, or a hand above one, tells which: `choose(block, head)`
   * and `point(block, head)`; without them they are pictures. `show` takes what to draw:
   * `weights(block, head)`, the picture, its grid, which head is chosen and which are off.
   */
  function heads([blocks, count], choose = null, point = () => {}) {
    const cells = range(blocks).flatMap((b) => range(count).map((head) => {
      const canvas = h("canvas", { width: 112, height: 112, "aria-hidden": "true" });
      const mouse = (...which) => ({ pointerType }) => pointerType == "mouse" && point(...which);
      const cell = choose ? h("button", {
        type: "button", class: "lit-head", "aria-pressed": "false", "aria-label": `Block ${b + 1}, head ${head + 1}`,
        onclick: () => choose(b, head), onpointerenter: mouse(b, head), onpointerleave: mouse(),
      }, canvas) : h("span", { class: "lit-head", role: "img" }, canvas);
      return { b, head, canvas, cell };
    }));
    const named = cells.flatMap(({ b, head, cell }) => head ? [cell] : [h("span", { class: "lit-block" }, `Block ${b + 1}`), cell]);
    const element = h("div", {
      class: "lit-heads", style: `--heads: ${count}; --blocks: ${blocks}`, role: choose && "group", "aria-label": choose && "Heads",
    }, ...named);

    const small = h("canvas", { width: 112, height: 112 });
    let last = null; // the picture that is small
    function show({ weights, picture, grid, grey, chosen = null, off = new Set() }) {
      if (picture != last) draw(small, last = picture, null, grid, grey);
      for (const { b, head, canvas, cell } of cells) {
        const row = weights(b, head), key = `${b}/${head}`, most = row && row.indexOf(Math.max(...row));
        draw(canvas, small, row ?? Array(grid[0] * grid[1]).fill(0), grid, grey);
        cell.classList.toggle("is-off", off.has(key));
        if (choose) cell.setAttribute("aria-pressed", key == chosen);
        cell.setAttribute("aria-label", `Block ${b + 1}, head ${head + 1}${off.has(key) ? ", switched off" : ""}${row ? `: looks most at ${where(most, grid)}` : ""}`);
      }
    }
    return { element, cells, show };
  }

  return { draw, ramp, pixels, cut, fetched, where, heads };
}
