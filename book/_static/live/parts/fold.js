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
      const first = 1 / (1 + Math.exp(-sharp * query * apart)), slope = sharp * first * (1 - first) * apart;
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
        const by = [(J[1][1] * off[0] - J[0][1] * off[1]) / det, (J[0][0] * off[1] - J[1][0] * off[0]) / det];
        const short = Math.min(1, 0.5 / Math.hypot(...by)); // steps of half a unit at most
        x = x.map((v, i) => v - short * by[i]);
      }
      const out = attend(x, sharp);
      if (!(Math.hypot(out[0] - y[0], out[1] - y[1]) < NEAR) || Math.max(...x.map(Math.abs)) > REACH) continue;
      if (found.every((one) => Math.hypot(one[0] - x[0], one[1] - x[1]) > 1e-4)) found.push(x);
    }
    return found;
  }

  function mount({ h, range, signed, handle, panel, points, columns, speech, row }) {
    const sharp = handle({ label: "Sharpness b", min: -6, max: 4, step: 0.1, value: -6,
      words: (v) => signed(v, 1) }, () => show());
    const inputs = panel("Inputs", "The square of inputs; those on the chosen output are marked");
    const outputs = panel("Outputs", "Where attention sends the square's grid");
    const say = speech(), size = inputs.width;
    const toScreen = (v) => ((v + REACH) / (2 * REACH)) * size, fromPlace = (p) => REACH * (2 * p - 1);
    const start = attend([0.7, 1.8], -6);
    let chosen = null;
    chosen = points(outputs.frame, [[(start[0] / REACH + 1) / 2, (1 - start[1] / REACH) / 2]],
      () => `The output ${chosenOutput().map((v) => signed(v, 2)).join(", ")}`, () => show(), 0.01);
    let entered = null;
    entered = points(inputs.frame, [[(0.7 / REACH + 1) / 2, (1 - 1.8 / REACH) / 2]],
      () => `The input ${enteredInput().map((v) => signed(v, 2)).join(", ")}`, () => {
        const y = attend(enteredInput(), sharp.value);
        chosen.places[0] = [(y[0] / REACH + 1) / 2, (1 - y[1] / REACH) / 2];
        show();
      }, 0.01);
    function enteredInput() {
      const [x, y] = entered?.places[0] ?? [0.5, 0.5];
      return [fromPlace(x), -fromPlace(y)];
    }
    function chosenOutput() {
      const [x, y] = chosen?.places[0] ?? [0.5, 0.5];
      return [fromPlace(x), -fromPlace(y)];
    }
    const place = ([a, b]) => [toScreen(a), size - toScreen(b)];

    function axes(context, { line }) {
      context.strokeStyle = line;
      context.lineWidth = 1;
      context.strokeRect(0.5, 0.5, size - 1, size - 1);
      context.beginPath();
      context.moveTo(...place([-REACH, 0])); context.lineTo(...place([REACH, 0]));
      context.moveTo(...place([0, -REACH])); context.lineTo(...place([0, REACH]));
      context.stroke();
    }

    function show() {
      const b = sharp.value, y = chosenOutput(), found = inputsOf(y, b);
      let reversed = 0;
      inputs.draw((context, colour) => {
        const cells = 100;
        for (let i = 0; i < cells * cells; i++) {
          const x = [i % cells, Math.floor(i / cells)].map((v) => fromPlace((v + 0.5) / cells));
          if (determinant(jacobian(x, b)) >= -1e-12) continue;
          reversed++;
          const [left, bottom] = place(x);
          context.globalAlpha = 0.25;
          context.fillStyle = colour.second;
          context.fillRect(left - size / cells / 2, bottom - size / cells / 2, size / cells, size / cells);
        }
        context.globalAlpha = 1;
        reversed /= cells * cells;
        axes(context, colour);
        for (const x of found) {
          context.beginPath();
          context.arc(...place(x), 8, 0, 7);
          context.fillStyle = determinant(jacobian(x, b)) < 0 ? colour.second : colour.first;
          context.fill();
          context.lineWidth = 2;
          context.strokeStyle = colour.paper;
          context.stroke();
        }
      });
      outputs.draw((context, colour) => {
        axes(context, colour);
        context.strokeStyle = colour.third;
        context.lineWidth = 0.8;
        for (const turned of [false, true]) for (const fixed of range(43)) {
          context.beginPath();
          for (const moving of range(85)) {
            const x = [fixed / 10 - REACH, moving / 20 - REACH];
            context.lineTo(...place(attend(turned ? x.reverse() : x, b)));
          }
          context.stroke();
        }
      });
      const [x1, x2] = enteredInput(), nearest = found.sort((p, q) =>
        Math.hypot(p[0] - x1, p[1] - x2) - Math.hypot(q[0] - x1, q[1] - x2))[0];
      if (nearest) entered.places[0] = nearest.map((v, i) => (1 + (i ? -v : v) / REACH) / 2);
      inputs.frame.classList.toggle("part-none", !nearest);
      entered.show();
      chosen.show();
      const many = ["No input has", "One input has", "Two inputs have", "Three inputs have", "Four inputs have"];
      say.say(`${many[found.length] ?? `${found.length} inputs have`} this output. `
        + `Orientation is reversed on ${Math.round(100 * reversed)} % of the square.`);
    }
    return { show, element: h("div", {}, row(sharp.element), say.element, columns(inputs.element, outputs.element)) };
  }
  return { title: "Attention between two tokens folds the plane", compute: { attend, jacobian, inputsOf }, mount };
})();
