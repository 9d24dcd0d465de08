// Chapter 3: how alike the position embedding of one place is to those of all others.
(globalThis.minivitParts ??= {}).places = (() => {
  "use strict";
  const ROWS = 10, COLUMNS = 15, DIM = 192;

  /** Sines and cosines of a position, the first fast, each next pair slower: [dim]. */
  const waves = (t, dim) => Array.from({ length: dim }, (_, k) => {
    const angle = t * 10000 ** ((-2 * Math.floor(k / 2)) / dim);
    return k % 2 ? Math.cos(angle) : Math.sin(angle);
  });
  const oneDimensional = (rows, columns, dim) =>
    Array.from({ length: rows * columns }, (_, i) => waves(i, dim));
  const twoDimensional = (rows, columns, dim) => Array.from({ length: rows * columns }, (_, i) =>
    [...waves(Math.floor(i / columns), dim / 2), ...waves(i % columns, dim / 2)]);

  /** Numbers like those that training begins with; their size does not matter to a cosine. */
  function untrained(rows, columns, dim) {
    const normal = minivitNumbers().normals(1);
    return Array.from({ length: rows * columns }, () => Array.from({ length: dim }, normal));
  }

  /** Cosines of one row of a table with all of them. */
  function alike(table, i) {
    const { dot } = minivitNumbers();
    return table.map((row) => dot(row, table[i]) / Math.sqrt(dot(row, row) * dot(table[i], table[i])));
  }

  function mount({ h, signed, panel, points, columns, speech }) {
    const size = [ROWS, COLUMNS, DIM], tables = [
      ["Learned, untrained", untrained(...size)], ["Sines and cosines, 1-D", oneDimensional(...size)],
      ["Sines and cosines, 2-D", twoDimensional(...size)]];
    const say = speech(), fingers = [], finger = [[5.5 / COLUMNS, 4.5 / ROWS]];
    const panels = tables.map(([title], which) => {
      const one = panel(title, `${title}: how alike the marked place is to all others`, [300, 200]);
      fingers[which] = points(one.frame, finger, () => { // one place, marked three times
        const i = marked();
        return `Row ${Math.floor(i / COLUMNS) + 1}, column ${(i % COLUMNS) + 1}`;
      }, () => show(), 1 / COLUMNS);
      return one;
    });
    function marked() {
      const [x, y] = finger[0], row = Math.min(ROWS - 1, Math.floor(y * ROWS));
      return row * COLUMNS + Math.min(COLUMNS - 1, Math.floor(x * COLUMNS));
    }

    function show() {
      const i = marked(), maps = tables.map(([, table]) => alike(table, i));
      panels.forEach((one, which) => one.draw((context) => {
        const cell = one.width / COLUMNS;
        context.fillStyle = "#15181d";
        context.fillRect(0, 0, one.width, one.height);
        context.fillStyle = "#ffd98a";
        maps[which].forEach((v, j) => {
          context.globalAlpha = Math.max(0, v) ** 1.5;
          context.fillRect((j % COLUMNS) * cell, Math.floor(j / COLUMNS) * cell, cell, cell);
        });
        context.globalAlpha = 1;
      }));
      fingers.forEach((one) => one.show());
      const below = i + COLUMNS < ROWS * COLUMNS ? i + COLUMNS : i - COLUMNS;
      const beside = i % COLUMNS < COLUMNS - 1 ? i + 1 : i - 1;
      const [, one, two] = maps.map((map) => `${signed(map[beside], 2)} and ${signed(map[below], 2)}`);
      say.say(`Cosine with the place beside it and with that a row away: 1-D ${one}, 2-D ${two}.`);
    }
    return { show, element: h("div", {}, say.element, columns(...panels.map((one) => one.element))) };
  }
  const title = "Which places have like positions";
  return { title, compute: { oneDimensional, twoDimensional, alike }, mount };
})();
