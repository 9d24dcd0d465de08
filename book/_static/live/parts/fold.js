// Chapter 14: where attention between two tokens of one number each sends a square, and which
// inputs share an output.
(globalThis.minivitParts ??= {}).fold = (() => {
  "use strict";
  const REACH = 2.1; // both tokens go from -REACH to REACH
  const NEAR = 1e-9; // an input has an output if it is no farther off

  /** Attention between two tokens, which are their own queries, keys and values. */
  function attend(x, sharp) {
    return x.map((query) => {
      const [a, b] = x.map((key) => sharp * query * key), first = 1 / (1 + Math.exp(b - a));
      return first * x[0] + (1 - first) * x[1];
    });
  }

  /** The derivative of each output by each input: [[d0/d0, d0/d1], [d1/d0, d1/d1]]. */
  function jacobian(x, sharp) {
    const apart = x[0] - x[1];
    return x.map((query, i) => {
      const first = 1 / (1 + Math.exp(-sharp * query * apart));
      const slope = sharp * first * (1 - first) * apart;
      // the output is x1 + first * apart, and first depends on query * apart
      const row = [first + slope * query, 1 - first - slope * query];
      row[i] += slope * apart;
      return row;
    });
  }
  const determinant = ([[a, b], [c, d]]) => a * d - b * c;

  /** All inputs in the square that have an output: Newton's method from the points of a grid. */
  function inputsOf(y, sharp, starts = 25) {
    const found = [];
    for (let k = 0; k < starts * starts; k++) {
      let x = [k % starts, Math.floor(k / starts)].map((i) => REACH * (2 * (i + 0.37) / starts - 1));
      for (let step = 0; step < 30; step++) {
        const out = attend(x, sharp), off = [out[0] - y[0], out[1] - y[1]], J = jacobian(x, sharp);
        if (Math.hypot(...off) < NEAR) break;
        const det = determinant(J) || 1e-12;
        const by = [J[1][1] * off[0] - J[0][1] * off[1], J[0][0] * off[1] - J[1][0] * off[0]];
        by.forEach((v, i) => (by[i] = v / det));
        const short = Math.min(1, 0.5 / Math.hypot(...by)); // steps of half a unit at most
        x = x.map((v, i) => v - short * by[i]);
      }
      const out = attend(x, sharp);
      if (!(apart(out, y) < NEAR) || Math.max(...x.map(Math.abs)) > REACH) continue;
      if (found.every((one) => apart(one, x) > 1e-3)) found.push(x);
    }
    return found;
  }
  const apart = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);

  function mount({ h, range, signed, handle, panel, points, columns, speech, row, line, disc }) {
    const sharp = handle({
      label: "Sharpness b", min: -6, max: 4, step: 0.1, value: -6, words: (v) => signed(v, 1),
    }, () => show());
    const inputs = panel("Inputs", "The square of inputs; those on the chosen output are marked");
    const outputs = panel("Outputs", "Where attention sends the square's grid");
    const say = speech(), size = inputs.width;
    const toPlace = ([a, b]) => [(1 + a / REACH) / 2, (1 - b / REACH) / 2];
    const fromPlace = ([x, y]) => [REACH * (2 * x - 1), REACH * (1 - 2 * y)];
    const toScreen = (v) => toPlace(v).map((p) => p * size);
    const words = (v) => v.map((one) => signed(one, 2)).join(", ");
    const entered = [toPlace([0.7, 1.8])], chosen = [toPlace(attend([0.7, 1.8], -6))];
    const input = points(inputs.frame, entered, () => `The input ${words(fromPlace(entered[0]))}`, () => {
      chosen[0] = toPlace(attend(fromPlace(entered[0]), sharp.value));
      show();
    }, 0.01);
    const output = points(outputs.frame, chosen, () => `The output ${words(fromPlace(chosen[0]))}`,
      () => show(), 0.01);

    function axes(context, { line }) {
      context.strokeStyle = line;
      context.lineWidth = 1;
      context.strokeRect(0.5, 0.5, size - 1, size - 1);
      context.strokeRect(0, size / 2, size, 0);
      context.strokeRect(size / 2, 0, 0, size);
    }

    function show() {
      const b = sharp.value, found = inputsOf(fromPlace(chosen[0]), b);
      let reversed = 0;
      inputs.draw((context, colour) => {
        const cells = 100, cell = size / cells;
        for (let i = 0; i < cells * cells; i++) {
          const [x, y] = [(i % cells) + 0.5, Math.floor(i / cells) + 0.5];
          if (determinant(jacobian(fromPlace([x / cells, y / cells]), b)) >= -1e-12) continue;
          reversed++;
          context.globalAlpha = 0.25;
          context.fillStyle = colour.third; // as in Fig. 14.1
          context.fillRect((x - 0.5) * cell, (y - 0.5) * cell, cell, cell);
        }
        context.globalAlpha = 1;
        reversed /= cells * cells;
        axes(context, colour);
        for (const x of found) {
          disc(context, colour.paper, toScreen(x), 11);
          disc(context, determinant(jacobian(x, b)) < 0 ? colour.third : colour.second, toScreen(x), 9);
        }
      });
      outputs.draw((context, colour) => {
        axes(context, colour);
        for (const turned of [false, true]) for (const fixed of range(43)) {
          const along = range(85).map((moving) => [fixed / 10 - REACH, moving / 20 - REACH]);
          line(context, colour.third, along.map((x) => toScreen(attend(turned ? x.reverse() : x, b))), 0.8);
        }
      });
      const from = fromPlace(entered[0]);
      const [nearest] = found.sort((one, other) => apart(one, from) - apart(other, from));
      if (nearest) entered[0] = toPlace(nearest);
      inputs.frame.classList.toggle("part-none", !nearest);
      input.show();
      output.show();
      const many = ["No input has", "One input has", "Two inputs have", "Three inputs have"];
      say.say(`${many[found.length] ?? `${found.length} inputs have`} this output. `
        + `Orientation is reversed on ${Math.round(100 * reversed)} % of the square.`);
    }
    const panels = columns(inputs.element, outputs.element);
    return { show, element: h("div", {}, row(sharp.element), say.element, panels) };
  }
  const title = "Attention between two tokens folds the plane";
  return { title, compute: { attend, jacobian, inputsOf }, mount };
})();
