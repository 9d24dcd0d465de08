// Chapter 6: the table of a painted convolution and of attention, and what they make of an image.
(globalThis.minivitParts ??= {}).kernel = (() => {
  "use strict";
  const GRID = 8, PATCH = 8, SIDE = GRID * PATCH;
  const EDGE = [1, 2, 1, 0, 0.6, 0, -1, -2, -1]; // the chapter's
  const SHARPNESS = 8; // of cosines between patches, as in the chapter

  const near = (i, j, reach, across) => Math.abs(Math.floor(i / across) - Math.floor(j / across)) <= reach
    && Math.abs((i % across) - (j % across)) <= reach;

  /** The table that convolves rows x columns with a 3 x 3 kernel, zeros around: row i reads j. */
  function convolutionTable(kernel, rows, columns) {
    const n = rows * columns;
    return Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => {
      if (!near(i, j, 1, columns)) return 0;
      const down = Math.floor(j / columns) - Math.floor(i / columns), right = (j % columns) - (i % columns);
      return kernel[3 * (down + 1) + right + 1];
    }));
  }

  /** Attention between tokens by their cosines, each to a window around it: rows sum to 1. */
  function attentionTable(tokens, window, columns) {
    const mean = tokens[0].map((_, k) => tokens.reduce((sum, t) => sum + t[k], 0) / tokens.length);
    const directions = tokens.map((t) => {
      const v = t.map((x, k) => x - mean[k]), length = Math.sqrt(v.reduce((a, x) => a + x * x, 0)) || 1;
      return v.map((x) => x / length);
    });
    return directions.map((query, i) => {
      const e = directions.map((key, j) => (near(i, j, (window - 1) / 2, columns)
        ? Math.exp(SHARPNESS * (query.reduce((sum, v, k) => sum + v * key[k], 0) - 1)) : 0));
      const total = e.reduce((a, b) => a + b);
      return e.map((v) => v / total);
    });
  }

  /** Every token as its row of the table mixes them. */
  const mixed = (table, tokens) => table.map((row) => tokens[0].map((_, k) =>
    row.reduce((sum, weight, j) => sum + (weight && weight * tokens[j][k]), 0)));

  const place = (i, k) => 3 * ((Math.floor(i / GRID) * PATCH + Math.floor(k / (3 * PATCH))) * SIDE
    + (i % GRID) * PATCH + Math.floor((k % (3 * PATCH)) / 3)) + (k % 3);

  async function mount({ h, range, signed, handle, choice, button, image, panel, points, columns, row, speech, opened }) {
    const bytes = await opened(minivitPhotographs.coffee, SIDE);
    const tokens = range(GRID * GRID).map((i) => range(3 * PATCH * PATCH).map((k) => bytes[place(i, k)] / 255));
    let kernel = [...EDGE], finger = null;
    const kind = choice("Table of", { convolution: "a convolution", attention: "attention" }, "convolution", () => show());
    const reach = handle({ label: "Window", min: 1, max: 15, step: 2, value: 15,
      words: (v) => (v == 15 ? "all" : `${v} × ${v}`) }, () => show());
    const cells = range(9).map((i) => h("button", { type: "button", class: "part-cell",
      onclick: () => paint(i, kernel[i] >= 2 ? -4 : 1),
      onkeydown: (event) => {
        const by = { ArrowUp: 1, ArrowDown: -1 }[event.key];
        if (!by) return;
        event.preventDefault();
        paint(i, by);
      } }));
    function paint(i, by) {
      kernel[i] = Math.max(-2, Math.min(2, Math.round(kernel[i]) + by));
      show();
    }
    const set = (words, numbers) => button(words, () => { kernel = [...numbers]; show(); });
    const pad = h("div", { class: "part-nine", role: "group", "aria-label": "The nine numbers of the kernel" }, ...cells);
    const painting = row(pad, set("Edge", EDGE), set("Blur", Array(9).fill(1)), set("Shift", [0, 0, 0, 0, 0, 1, 0, 0, 0]), set("Itself", [0, 0, 0, 0, 1, 0, 0, 0, 0]));
    const table = panel("The table, 64 × 64", "The table: a row for each place, a column for each place it reads");
    const left = image("What one place reads", "The image, and what one place reads of it");
    const right = image("Output", "The image after the table");
    const say = speech();
    finger = points(left.frame, [[0.44, 0.44]], () => `Place in row ${Math.floor(marked() / GRID) + 1}, column ${marked() % GRID + 1}`,
      () => show(), 1 / GRID);
    function marked() {
      const [x, y] = (finger?.places[0] ?? [0, 0]).map((p) => Math.min(GRID - 1, Math.floor(p * GRID)));
      return y * GRID + x;
    }

    function show() {
      const convolution = kind.value == "convolution", query = marked();
      painting.hidden = !convolution;
      reach.element.hidden = convolution;
      const rows = convolution ? convolutionTable(kernel, GRID, GRID) : attentionTable(tokens, reach.value, GRID);
      const most = Math.max(1e-9, ...rows[query].map(Math.abs)), top = convolution ? 2.5 : Math.max(...rows.flat());
      table.draw((context, colour) => {
        const cell = table.width / rows.length;
        rows.forEach((line, i) => line.forEach((v, j) => {
          if (!v) return;
          context.globalAlpha = convolution ? Math.min(1, Math.abs(v) / top) : Math.sqrt(v / top);
          context.fillStyle = v > 0 ? colour.third : colour.second;
          context.fillRect(j * cell, i * cell, cell, cell);
        }));
        context.globalAlpha = 1;
        context.strokeStyle = colour.line;
        context.strokeRect(0.5, 0.5, table.width - 1, table.width - 1);
        context.strokeStyle = colour.ink;
        context.lineWidth = 1.5;
        context.strokeRect(0, query * cell - 1, table.width, cell + 2);
      });
      const shaded = new Uint8ClampedArray(bytes.length), made = new Uint8ClampedArray(bytes.length);
      tokens.forEach((token, i) => token.forEach((v, k) => {
        const weight = rows[query][i], share = convolution ? Math.abs(weight) / most : Math.sqrt(Math.abs(weight) / most);
        const tint = weight < 0 ? [240, 168, 104] : [60, 130, 240];
        shaded[place(i, k)] = (1 - 0.75 * share) * 255 * (0.25 + 0.5 * v) + 0.75 * share * tint[k % 3];
      }));
      left.show(shaded, [SIDE, SIDE]);
      // from the least to the largest that the table can make of numbers between 0 and 1
      const least = Math.min(0, convolution ? kernel.reduce((a, v) => a + Math.min(0, v), 0) : 0);
      const largest = Math.max(1e-9, convolution ? kernel.reduce((a, v) => a + Math.max(0, v), 0) : 1);
      mixed(rows, tokens).forEach((token, i) => token.forEach((v, k) => {
        made[place(i, k)] = (255 * (v - least)) / (largest - least);
      }));
      right.show(made, [SIDE, SIDE]);
      cells.forEach((cell, i) => {
        cell.textContent = signed(kernel[i], Number.isInteger(kernel[i]) ? 0 : 1);
        cell.setAttribute("aria-label", `Row ${Math.floor(i / 3) + 1}, column ${i % 3 + 1}: ${cell.textContent}; press to raise it`);
        cell.dataset.sign = Math.sign(kernel[i]);
      });
      const filled = rows.flat().filter(Boolean).length;
      say.say(`${filled.toLocaleString("en")} of 4,096 entries are not zero, made of `
        + `${convolution ? `${new Set(kernel.filter(Boolean)).size} different numbers` : "the image alone"}.`);
    }
    return { show, element: h("div", {}, row(kind.element, reach.element), painting, say.element,
      columns(table.element, left.element, right.element)) };
  }
  return { title: "A convolution and attention as tables", needs: ["photographs.js"],
    compute: { convolutionTable, attentionTable, mixed }, mount };
})();
