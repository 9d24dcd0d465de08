// Curves of trainings: the one that runs in colour, earlier ones in grey with their numbers at the end.
function minivitCurves(kit, about) {
  "use strict";
  const { title, label, top, ticks, guess, steps } = about;
  const made = kit.panel(title, label, [330, 200]);
  const LEFT = 30, RIGHT = 306, FLOOR = 178, CEILING = 8, LINE = 11; // where the axes end; of a number
  const x = (t) => LEFT + ((RIGHT - LEFT) * t) / steps;
  const y = (v) => FLOOR - ((FLOOR - CEILING) * Math.min(v, top)) / top;

  function axes(context, colour) {
    context.fillStyle = context.strokeStyle = colour.muted;
    context.font = "11px sans-serif";
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(LEFT, CEILING);
    context.lineTo(LEFT, FLOOR);
    context.lineTo(RIGHT, FLOOR);
    context.stroke();
    context.textAlign = "right";
    for (const [value, words] of ticks) context.fillText(words, LEFT - 5, y(value) + 4);
    context.textAlign = "center";
    for (let t = 0; t <= steps; t += steps / 4) context.fillText(t || "step 0", x(t), FLOOR + 15);
    context.textAlign = "right";
    context.fillText("guessing", RIGHT - 3, y(guess) - 4);
    path(context, [[0, guess], [steps, guess]], [2, 4]);
  }
  function path(context, points, dash = []) {
    context.setLineDash(dash);
    context.beginPath();
    points.forEach(([t, v], i) => context[i ? "lineTo" : "moveTo"](x(t), y(v)));
    context.stroke();
    context.setLineDash([]);
  }
  /** Numbers beside the ends of earlier curves, none over another. */
  function numbered(context, ends) {
    let above = CEILING - LINE;
    context.textAlign = "left";
    for (const { number, t, v } of ends.sort((a, b) => b.v - a.v)) {
      above = Math.max(above + LINE, y(v) + 4);
      context.fillText(number, x(t) + 4, above);
    }
  }

  /** `now` and each of `earlier` ({ number, points }) are points [step, value]; `beside` is dashed. */
  function draw(now, earlier, beside = []) {
    made.draw((context, colour) => {
      axes(context, colour);
      context.lineJoin = "round";
      context.globalAlpha = 0.55;
      for (const { points } of earlier) path(context, points);
      context.globalAlpha = 1;
      numbered(context, earlier.map(({ number, points }) => {
        const [t, v] = points.at(-1);
        return { number, t, v };
      }));
      context.lineWidth = 2;
      context.strokeStyle = colour.second;
      path(context, beside, [5, 3]);
      context.lineWidth = 2.5;
      context.strokeStyle = colour.first;
      path(context, now);
      context.fillStyle = colour.first;
      for (const [t, v] of now.slice(-1)) {
        context.beginPath();
        context.arc(x(t), y(v), 4, 0, 2 * Math.PI);
        context.fill();
      }
    });
  }
  return { ...made, draw };
}
