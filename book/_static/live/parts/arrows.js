// Chapter 2: one query, three keys and three values in the plane, and what attention makes of them.
(globalThis.minivitParts ??= {}).arrows = (() => {
  "use strict";
  const REACH = 3; // of queries and keys, in both directions
  const FAR = 5; // values go from -1 to FAR
  const NAMES = ["eye", "ear", "sky"];

  /** One row of softmax(q k' / sqrt(d)) v: query [d], keys [n][d], values [n][m]. */
  function attend(query, keys, values) {
    const scores = keys.map((key) => key.reduce((sum, v, i) => sum + v * query[i], 0) / Math.sqrt(query.length));
    const e = scores.map((s) => Math.exp(s - Math.max(...scores))), total = e.reduce((a, b) => a + b);
    const weights = e.map((v) => v / total);
    const output = values[0].map((_, i) => weights.reduce((sum, w, j) => sum + w * values[j][i], 0));
    return { scores, weights, output };
  }

  function mount({ h, signed, percent, panel, points, columns, speech }) {
    const say = speech(), left = panel("Query and keys", "A query and three keys as arrows from the middle");
    const right = panel("Values and output", "Three values, and the output between them");
    const size = left.width;
    const inLeft = ([x, y]) => [(x / REACH + 1) / 2, (1 - y / REACH) / 2];
    const inRight = ([x, y]) => [(x + 1) / (FAR + 1), (FAR - y) / (FAR + 1)];
    const say2 = (v) => v.map((one) => signed(one, 1)).join(", ");
    let vectors = null, values = null;
    const vector = (i) => [REACH * (2 * vectors.places[i][0] - 1), REACH * (1 - 2 * vectors.places[i][1])];
    const value = (i) => [(FAR + 1) * values.places[i][0] - 1, FAR - (FAR + 1) * values.places[i][1]];
    const named = (i) => (i ? `The key of the ${NAMES[i - 1]}` : "The query of the eye");
    vectors = points(left.frame, [[0, 2], [1, -1], [0, 1], [0, -1]].map(inLeft),
      (i) => (vectors ? `${named(i)} at ${say2(vector(i))}` : named(i)), () => show());
    values = points(right.frame, [[4, 1], [0, 3], [1, 1]].map(inRight),
      (i) => `The value of the ${NAMES[i]}${values ? ` at ${say2(value(i))}` : ""}`, () => show());

    const bars = NAMES.map((name, i) => {
      const bar = h("span", { class: `part-bar part-shade-${i}` }), number = h("span", { class: "part-number" });
      return { bar, number, element: h("div", { class: "part-weight" }, h("span", {}, name),
        h("span", { class: "part-track" }, bar), number) };
    });

    function arrow(context, [x, y], colour, width) {
      const middle = size / 2, length = Math.hypot(x - middle, y - middle);
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.beginPath();
      context.moveTo(middle, middle);
      context.lineTo(x, y);
      if (length < 1) return;
      context.stroke();
    }

    function grid(context, { line }, zero, steps) {
      context.strokeStyle = line;
      for (let i = 0; i <= steps; i++) {
        const at = (i * size) / steps;
        context.lineWidth = i == zero[0] ? 2 : 0.6;
        context.beginPath(); context.moveTo(at, 0); context.lineTo(at, size); context.stroke();
        context.lineWidth = i == zero[1] ? 2 : 0.6;
        context.beginPath(); context.moveTo(0, at); context.lineTo(size, at); context.stroke();
      }
    }

    function show() {
      const keys = [1, 2, 3].map(vector), { scores, weights, output } = attend(vector(0), keys, [0, 1, 2].map(value));
      left.draw((context, colour) => {
        grid(context, colour, [3, 3], 6);
        const shades = [colour.third, colour.first, colour.fourth];
        [1, 2, 3].forEach((i) => arrow(context, vectors.places[i].map((p) => p * size), shades[i - 1], 2 + 6 * weights[i - 1]));
        arrow(context, vectors.places[0].map((p) => p * size), colour.second, 4);
      });
      right.draw((context, colour) => {
        grid(context, colour, [1, 5], 6);
        context.fillStyle = colour.muted;
        context.globalAlpha = 0.15;
        context.beginPath();
        values.places.forEach((p) => context.lineTo(p[0] * size, p[1] * size));
        context.fill();
        context.globalAlpha = 1;
        const [x, y] = inRight(output).map((p) => p * size);
        [colour.third, colour.first, colour.fourth].forEach((shade, i) => {
          context.strokeStyle = shade;
          context.lineWidth = 8 * weights[i];
          context.beginPath();
          context.moveTo(x, y);
          context.lineTo(...values.places[i].map((p) => p * size));
          context.stroke();
        });
        context.fillStyle = colour.ink;
        context.beginPath(); context.arc(x, y, 7, 0, 7); context.fill();
      });
      bars.forEach(({ bar, number }, i) => {
        bar.style.width = `${100 * weights[i]}%`;
        number.textContent = `${signed(scores[i], 2)} → ${percent(weights[i])}`;
      });
      const most = weights.indexOf(Math.max(...weights)), even = Math.max(...weights) - Math.min(...weights) < 1e-3;
      say.say(`The eye takes ${even ? "the same from all" : `${percent(weights[most])} from the ${NAMES[most]}`}`
        + `; its output is (${output.map((v) => signed(v, 2)).join(", ")}).`);
    }
    return { show, element: h("div", {}, say.element, columns(left.element, right.element),
      h("div", { class: "part-weights" }, h("p", { class: "part-title" }, "Score over √2, and weight"), ...bars.map((b) => b.element))) };
  }
  return { title: "Query, keys and values in the plane", compute: { attend }, mount };
})();
