// Trainings as curves and as a list.

/** A chart: the training that runs in colour, earlier ones in grey with their numbers at the end. */
function minivitCurves(kit, about) {
  "use strict";
  const { title, label, top, ticks, guess, steps } = about;
  const made = kit.panel(title, label, [330, 200]);
  const LEFT = 30, RIGHT = 306, FLOOR = 178, CEILING = 8, LINE = 11; // where the axes end; of a number
  const x = (t) => LEFT + ((RIGHT - LEFT) * t) / steps;
  const y = (v) => FLOOR - ((FLOOR - CEILING) * Math.min(v, top)) / top;

  function axes(context, colour) {
    context.fillStyle = colour.muted;
    context.font = "11px sans-serif";
    kit.line(context, colour.muted, [[LEFT, CEILING], [LEFT, FLOOR], [RIGHT, FLOOR]]);
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
    points.forEach(([t, v]) => context.lineTo(x(t), y(v)));
    context.stroke();
    context.setLineDash([]);
  }
  /** Numbers beside the ends of earlier curves, none over another: from the lowest up. */
  function numbered(context, earlier) {
    const ends = earlier.map(({ number, points }) => [number, ...points.at(-1)]).sort((a, b) => a[2] - b[2]);
    let below = FLOOR + LINE;
    context.textAlign = "left";
    for (const [number, t, v] of ends) {
      below = Math.min(below - LINE, y(v) + 4);
      context.fillText(number, x(t) + 5, below);
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
      numbered(context, earlier);
      context.lineWidth = 2;
      context.strokeStyle = colour.second;
      path(context, beside, [5, 3]);
      context.lineWidth = 2.5;
      context.strokeStyle = colour.first;
      path(context, now);
      for (const [t, v] of now.slice(-1)) kit.disc(context, colour.first, [x(t), y(v)], 4);
    });
  }
  return { ...made, draw };
}

/** Loss and accuracy of a training beside those of earlier ones, and the list of all that have ended. */
function minivitCharts(kit, steps) {
  "use strict";
  const { h, percent, bars, columns } = kit;
  const chart = (title, top, guess, ticks) =>
    minivitCurves(kit, { title, label: `${title} by step`, steps, top, guess, ticks });
  const loss = chart("Training loss", 3, Math.log(10), [0, 1, 2, 3].map((v) => [v, v]));
  const right = chart("Accuracy", 1, 0.1, [[0, "0"], [0.5, "50"], [1, "100"]]);
  const table = h("div", { class: "part-runs" });

  function show(run, earlier) {
    const { told } = run;
    const line = (one, what) => one.seen.map((at) => [at.t, at[what]]);
    const grey = (what) => earlier.filter((one) => one != run)
      .map((one) => ({ number: one.kept, points: line(one, what) }));
    loss.draw(line(run, "loss"), grey("loss"));
    right.draw(line(run, "accuracy"), grey("accuracy"), line(run, "fitted"));
    loss.heading.textContent = `Training loss${told ? `: ${told.loss.toFixed(2)}` : ""}`;
    right.heading.textContent = !told ? "Accuracy: test; dashed: training"
      : `Test ${percent(told.accuracy)}, training (dashed) ${percent(told.fitted)}`;
    const names = earlier.map((one) => `${one.kept}. ${one.words}`);
    const list = bars("Trainings so far: accuracy on test digits", names);
    const end = ({ told: { accuracy, diverged, done, t } }) =>
      diverged ? "diverged" : `${percent(accuracy)}${done ? "" : `, step ${t}`}`;
    list.show(earlier.map((one) => one.told.accuracy), earlier.map(end));
    table.replaceChildren(...(earlier.length ? [list.element] : []));
  }
  return { element: columns(loss.element, right.element), table, show };
}
