// Chapter 25: a query and a key that are turned by their places on a grid; the offset alone counts.
(globalThis.minivitParts ??= {}).rope = (() => {
  "use strict";
  const SIDE = 8, RATES = [1, 0.32, 0.1, 0.03];
  const LOOK = [1, 2]; // rows down and columns to the right where this head's key scores highest

  /** Features in pairs, the first half turned by the row, the second by the column. */
  function turned(x, [row, column], rates) {
    return x.map((_, i) => {
      const j = Math.floor(i / 2), n = rates.length;
      const angle = j < n ? row * rates[j] : column * rates[j - n];
      const [a, b] = [x[2 * j], x[2 * j + 1]], [cos, sin] = [Math.cos(angle), Math.sin(angle)];
      return i % 2 ? a * sin + b * cos : a * cos - b * sin;
    });
  }
  /** The score of a query and a key, each turned by where it stands, over the root of their size. */
  function score(query, key, at, there, rates) {
    const { dot } = minivitNumbers();
    return dot(turned(query, at, rates), turned(key, there, rates)) / Math.sqrt(query.length);
  }

  function mount({ h, signed, panel, points, choice, columns, speech }) {
    const normal = minivitNumbers().normals(3);
    const query = Array.from({ length: 4 * RATES.length }, normal);
    const key = turned(query, LOOK.map((v) => -v), RATES);
    const say = speech(), places = [[2.5 / SIDE, 2.5 / SIDE], [4.5 / SIDE, 3.5 / SIDE]];
    const board = panel("Score of the key at each place", "A grid of places, each as bright as the key's score there");
    const cell = (i) => [1, 0].map((axis) => Math.min(SIDE - 1, Math.floor(places[i][axis] * SIDE)));
    let before = cell(0);
    const knobs = points(board.frame, places, (i) =>
      `The ${i ? "key" : "query"} in row ${cell(i)[0] + 1}, column ${cell(i)[1] + 1}`, moved, 1 / SIDE);
    const together = choice("With the query", { alone: "the key stays", both: "the key moves too" }, "alone", () => {});
    function moved(i) {
      const now = cell(0);
      if (i == 0 && together.value == "both") {
        const to = cell(1).map((v, axis) => v + now[axis] - before[axis]);
        places[1] = [to[1], to[0]].map((v) => (Math.min(SIDE - 1, Math.max(0, v)) + 0.5) / SIDE);
        knobs.show();
      }
      before = now;
      show();
    }

    function show() {
      const at = cell(0), there = cell(1), most = score(query, key, [0, 0], LOOK, RATES);
      board.draw((context) => {
        const size = board.width / SIDE;
        context.fillStyle = "#15181d";
        context.fillRect(0, 0, board.width, board.height);
        context.fillStyle = "#ffd98a";
        for (let i = 0; i < SIDE * SIDE; i++) {
          const place = [Math.floor(i / SIDE), i % SIDE];
          context.globalAlpha = Math.max(0, score(query, key, at, place, RATES) / most) ** 3;
          context.fillRect(place[1] * size, place[0] * size, size - 1, size - 1);
        }
        context.globalAlpha = 1;
      });
      const [down, right] = there.map((v, axis) => v - at[axis]);
      const s = signed(score(query, key, at, there, RATES), 2);
      say.say(`Rows from query to key ${signed(down, 0)}, columns ${signed(right, 0)}: score ${s}.`);
    }
    return { show, element: h("div", {}, say.element, together.element, columns(board.element)) };
  }
  return { title: "Scores of a query and a key that are turned by their places", compute: { turned, score }, mount };
})();
