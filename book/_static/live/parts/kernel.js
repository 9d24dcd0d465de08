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
      const down = Math.floor(j / columns) - Math.floor(i / columns);
      const right = (j % columns) - (i % columns);
      return kernel[3 * (down + 1) + right + 1];
    }));
  }

  /** Attention between tokens by their cosines, each to a window around it: rows sum to 1. */
  function attentionTable(tokens, window, columns) {
    const { dot } = minivitNumbers(), mean = tokens[0].map((_, k) => tokens.reduce((sum, t) => sum + t[k], 0) / tokens.length);
    const directions = tokens.map((t) => {
      const v = t.map((x, k) => x - mean[k]), length = Math.sqrt(dot(v, v)) || 1;
      return v.map((x) => x / length);
    });
    return directions.map((query, i) => {
      const e = directions.map((key, j) => {
        if (!near(i, j, (window - 1) / 2, columns)) return 0;
        return Math.exp(SHARPNESS * (dot(query, key) - 1));
      });
      const total = e.reduce((a, b) => a + b);
      return e.map((v) => v / total);
    });
  }

  /** Every token as its row of the table mixes them. */
  const mixed = (table, tokens) => table.map((row) => tokens[0].map((_, k) =>
    row.reduce((sum, weight, j) => sum + (weight && weight * tokens[j][k]), 0)));

  const BLUE = [60, 130, 240], ORANGE = [240, 168, 104];

  async function mount(kit) {
    const { h, range, signed, handle, choice, button, image, panel, points, columns, row, speech } = kit;
    const { cut, joined } = minivitPatches(SIDE, PATCH);
    const bytes = await kit.opened(minivitPhotographs.coffee, SIDE);
    const tokens = cut(Float64Array.from(bytes, (v) => v / 255));
    let kernel = [...EDGE];
    const kind = choice("Table of", {
      convolution: "a convolution", attention: "attention",
    }, "convolution", () => show());
    const reach = handle({
      label: "Window", min: 1, max: 15, step: 2, value: 15, words: (v) => (v == 15 ? "all" : `${v} × ${v}`),
    }, () => show());
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
    const nine = { class: "part-nine", role: "group", "aria-label": "The nine numbers of the kernel" };
    const one = (place) => range(9).map((i) => Number(i == place));
    const painting = row(h("div", nine, ...cells), set("Edge", EDGE), set("Blur", Array(9).fill(1)),
      set("Shift", one(5)), set("Itself", one(4)));
    const table = panel("The table, 64 × 64", "A row for each place, a column for each place that it reads");
    const left = image("What one place reads", "The image, and what one place reads of it");
    const right = image("Output", "The image after the table");
    const say = speech();
    const finger = [[0.44, 0.44]];
    const at = () => finger[0].map((p) => Math.min(GRID - 1, Math.floor(p * GRID))); // column, row
    points(left.frame, finger, () => `Place in row ${at()[1] + 1}, column ${at()[0] + 1}`,
      () => show(), 1 / GRID);

    function show() {
      const convolution = kind.value == "convolution", query = at()[1] * GRID + at()[0];
      painting.hidden = !convolution;
      reach.element.hidden = convolution;
      const rows = convolution ? convolutionTable(kernel, GRID, GRID)
        : attentionTable(tokens, reach.value, GRID);
      const most = Math.max(1e-9, ...rows[query].map(Math.abs));
      const top = convolution ? 2.5 : Math.max(...rows.flat());
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
      const shaded = tokens.map((token, i) => {
        const weight = rows[query][i], share = 0.75 * (Math.abs(weight) / most) ** (convolution ? 1 : 0.5);
        const tint = weight < 0 ? ORANGE : BLUE;
        return token.map((v, k) => (1 - share) * (0.25 + 0.5 * v) + (share * tint[k % 3]) / 255);
      });
      left.show(joined(shaded), [SIDE, SIDE]);
      // from the least to the largest that the table can make of numbers between 0 and 1
      const sum = (clip) => kernel.reduce((total, v) => total + clip(0, v), 0);
      const least = convolution ? sum(Math.min) : 0;
      const largest = convolution ? Math.max(least + 1e-9, sum(Math.max)) : 1;
      const made = mixed(rows, tokens).map((token) => token.map((v) => (v - least) / (largest - least)));
      right.show(joined(made), [SIDE, SIDE]);
      cells.forEach((cell, i) => {
        cell.textContent = signed(kernel[i], Number.isInteger(kernel[i]) ? 0 : 1);
        cell.dataset.sign = Math.sign(kernel[i]);
        const where = `Row ${Math.floor(i / 3) + 1}, column ${(i % 3) + 1}`;
        cell.setAttribute("aria-label", `${where}: ${cell.textContent}; press to raise it`);
      });
      const filled = rows.flat().filter(Boolean).length.toLocaleString("en");
      const different = new Set(kernel.filter(Boolean)).size;
      say.say(`${filled} of 4,096 entries are not zero, made of `
        + `${convolution ? `${different} different numbers` : "the image alone"}.`);
    }
    const panels = columns(table.element, left.element, right.element);
    const controls = row(kind.element, reach.element);
    return { show, element: h("div", {}, controls, painting, say.element, panels) };
  }
  return { title: "A convolution and attention as tables", needs: ["photographs.js"],
    compute: { convolutionTable, attentionTable, mixed }, mount };
})();
