// Chapter 27: images and texts on two rings of a sphere; moved apart, they act as at a higher temperature.
(globalThis.minivitParts ??= {}).gap = (() => {
  "use strict";
  const PAIRS = 8, STEEPEST = 80; // degrees of latitude
  const OFF = [0.2, -0.25, 0.1, 0.3, -0.15, 0.25, -0.1, -0.3]; // of a text from its image, in radians

  /** Images on the ring at this latitude, texts at its negative, [pairs][3]; two texts may be exchanged. */
  function rings(degrees, exchanged) {
    const up = degrees * Math.PI / 180;
    const at = (angle, height) => [Math.cos(angle) * Math.cos(up), Math.sin(angle) * Math.cos(up), height];
    const turn = (i) => 2 * Math.PI * i / PAIRS;
    const images = OFF.map((_, i) => at(turn(i), Math.sin(up)));
    const texts = OFF.map((off, i) => at(turn(i) + off, -Math.sin(up)));
    if (exchanged) [texts[2], texts[3]] = [texts[3], texts[2]];
    return { images, texts };
  }
  const scores = ({ images, texts }, scale) =>
    images.map((x) => texts.map((y) => scale * minivitNumbers().dot(x, y)));

  /** The contrastive loss: a softmax along each row and along each column of the scores. */
  function loss(clouds, scale) {
    const rows = scores(clouds, scale), columns = rows[0].map((_, j) => rows.map((row) => row[j]));
    const away = (row, i) => {
      const most = Math.max(...row);
      return most + Math.log(row.reduce((sum, v) => sum + Math.exp(v - most), 0)) - row[i];
    };
    return rows.reduce((sum, row, i) => sum + away(row, i) + away(columns[i], i), 0) / (2 * PAIRS);
  }
  const named = (clouds) =>
    scores(clouds, 1).filter((row, i) => row.indexOf(Math.max(...row)) == i).length;

  function mount({ h, handle, choice, panel, columns, speech, row, line, disc }) {
    const ask = (label, max, value, words) => handle({ label, min: 0, max, value, words }, () => show());
    const apart = ask("Latitude", STEEPEST, 0, (v) => `${v}°`);
    const cold = ask("Temperature", 40, 40, (v) => `1/${Math.round(10 ** (v / 20))}`);
    const exchanged = choice("Captions", { 0: "all right", 1: "two exchanged" }, 1, () => show());
    const ball = panel("Images (discs) and texts (squares)", "Two rings of points on a sphere");
    const chart = panel("Loss, by latitude", "The loss along all latitudes, with the chosen one marked");
    const say = speech(), size = ball.width;

    function show() {
      const scale = 10 ** (cold.value / 20), wrong = exchanged.value == "1", clouds = rings(apart.value, wrong);
      const curve = Array.from({ length: STEEPEST + 1 }, (_, k) => loss(rings(k, wrong), scale));
      const place = ([x, y, z]) => [size * (0.5 + 0.42 * y), size * (0.5 - 0.42 * (0.9 * z + 0.43 * x))];
      const to = (k) => [size * (0.05 + 0.9 * k / STEEPEST), size * (0.95 - 0.85 * curve[k] / Math.max(...curve))];
      ball.draw((context, colour) => {
        disc(context, colour.line, [size / 2, size / 2], 0.42 * size);
        disc(context, colour.paper, [size / 2, size / 2], 0.42 * size - 1);
        clouds.images.forEach((image, i) => {
          const [at, [u, v]] = [place(image), place(clouds.texts[i])];
          line(context, colour.ink, [at, [u, v]]);
          context.fillStyle = colour.second;
          context.fillRect(u - 5, v - 5, 10, 10);
          disc(context, colour.first, at, 6);
        });
      });
      chart.draw((context, colour) => {
        line(context, colour.line, [[15, 15], [15, 285], [285, 285]]);
        line(context, colour.first, curve.map((_, k) => to(k)));
        disc(context, colour.ink, to(apart.value), 6);
      });
      const gap = 2 * Math.sin(apart.value * Math.PI / 180), best = curve.indexOf(Math.min(...curve));
      say.say(`Distance of the centres ${gap.toFixed(2)}, loss ${curve[apart.value].toFixed(2)}, least at latitude ${best}°. `
        + `Texts name ${named(clouds)} of ${PAIRS} images right.`);
    }
    const panels = columns(ball.element, chart.element);
    return { show, element: h("div", {}, row(apart.element, cold.element, exchanged.element), say.element, panels) };
  }
  return { title: "A gap acts as a higher temperature", compute: { rings, loss, named }, mount };
})();
