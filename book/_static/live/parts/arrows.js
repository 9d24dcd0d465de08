// Chapter 2: one query, three keys and three values in the plane, and what attention makes of them.
(globalThis.minivitParts ??= {}).arrows = (() => {
  "use strict";
  const REACH = 3; // of queries and keys, in both directions
  const FAR = 5; // values go from -1 to FAR
  const NAMES = ["eye", "ear", "sky"];
  const SHADES = ["third", "second", "first"]; // of theirs, as in the drawing of the same numbers

  /** One row of softmax(q k' / sqrt(d)) v: query [d], keys [n][d], values [n][m]. */
  function attend(query, keys, values) {
    const { dot, softmax } = minivitNumbers(), root = Math.sqrt(query.length);
    const scores = keys.map((key) => dot(key, query) / root), weights = softmax(scores);
    const output = values[0].map((_, i) => weights.reduce((sum, w, j) => sum + w * values[j][i], 0));
    return { scores, weights, output };
  }

  function mount({ h, signed, percent, panel, points, bars, columns, speech, line, disc }) {
    const say = speech();
    const left = panel("Query and keys", "A query and three keys as arrows from the middle");
    const right = panel("Values and output", "Three values, and the output between them");
    const size = left.width;
    const inLeft = ([x, y]) => [(x / REACH + 1) / 2, (1 - y / REACH) / 2];
    const inRight = ([x, y]) => [(x + 1) / (FAR + 1), (FAR - y) / (FAR + 1)];
    const vectors = [[0, 2], [1, -1], [0, 1], [0, -1]].map(inLeft); // the query, then the keys
    const ends = [[4, 1], [0, 3], [1, 1]].map(inRight);
    const vector = (i) => [REACH * (2 * vectors[i][0] - 1), REACH * (1 - 2 * vectors[i][1])];
    const value = (i) => [(FAR + 1) * ends[i][0] - 1, FAR - (FAR + 1) * ends[i][1]];
    const at = (v) => v.map((one) => signed(one, 1)).join(", ");
    points(left.frame, vectors, (i) =>
      `${i ? `The key of the ${NAMES[i - 1]}` : "The query of the eye"} at ${at(vector(i))}`, () => show());
    points(right.frame, ends, (i) => `The value of the ${NAMES[i]} at ${at(value(i))}`, () => show());
    const weighed = bars("Score over √2, and weight", NAMES);

    function arrow(context, [x, y], colour, width) {
      const middle = size / 2;
      if (Math.hypot(x - middle, y - middle) >= 1) line(context, colour, [[middle, middle], [x, y]], width);
    }

    function grid(context, colour, zero, steps) {
      for (let i = 0; i <= steps; i++) {
        const at = (i * size) / steps;
        line(context, colour.line, [[at, 0], [at, size]], i == zero[0] ? 2 : 0.6);
        line(context, colour.line, [[0, at], [size, at]], i == zero[1] ? 2 : 0.6);
      }
    }

    function show() {
      const { scores, weights, output } = attend(vector(0), [1, 2, 3].map(vector), [0, 1, 2].map(value));
      left.draw((context, colour) => {
        grid(context, colour, [3, 3], 6);
        const [query, ...keys] = vectors.map((place) => place.map((p) => p * size));
        keys.forEach((key, i) => arrow(context, key, colour[SHADES[i]], 2 + 6 * weights[i]));
        arrow(context, query, colour.ink, 4);
      });
      right.draw((context, colour) => {
        grid(context, colour, [1, 5], 6);
        context.fillStyle = colour.muted;
        context.globalAlpha = 0.15;
        context.beginPath();
        ends.forEach((p) => context.lineTo(p[0] * size, p[1] * size));
        context.fill();
        context.globalAlpha = 1;
        const [x, y] = inRight(output).map((p) => p * size);
        SHADES.forEach((shade, i) => line(context, colour[shade], [[x, y], ends[i].map((p) => p * size)], 8 * weights[i]));
        disc(context, colour.ink, [x, y], 7);
      });
      weighed.show(weights, weights.map((w, i) => `${signed(scores[i], 2)} → ${percent(w)}`));
      const most = weights.indexOf(Math.max(...weights));
      const even = Math.max(...weights) - Math.min(...weights) < 1e-3;
      const from = even ? "the same from all" : `${percent(weights[most])} from the ${NAMES[most]}`;
      say.say(`The eye takes ${from}; its output is (${output.map((v) => signed(v, 2)).join(", ")}).`);
    }
    const panels = columns(left.element, right.element);
    return { show, element: h("div", {}, say.element, panels, weighed.element) };
  }
  return { title: "Query, keys and values in the plane", compute: { attend }, mount };
})();
