// Chapter 7: a small vision transformer that is trained in the page.
(globalThis.minivitParts ??= {}).learn = (() => {
  "use strict";
  const STEPS = 400, EACH = 10; // of a training, and between two looks at it
  const KEPT = 6; // earlier trainings that stay
  const RATES = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2];
  const FIRST = { rate: 0.02, images: 1259, seed: 0, removed: [] };
  const PARTS = { attention: "Attention", mlp: "MLPs", norm: "Norms", residual: "Residual connections",
    positions: "Positions" };

  /** What sets a training apart from the first one, in words. */
  function different({ rate, images, seed, removed }) {
    const small = (words) => words.replace(/^[A-Z](?!LP)/, (letter) => letter.toLowerCase());
    const names = removed.map((part) => small(PARTS[part]));
    return [
      rate == FIRST.rate ? "" : `rate ${rate}`, images == FIRST.images ? "" : `${images} digits`,
      seed == FIRST.seed ? "" : `seed ${seed}`, names.length ? `without ${names.join(", ")}` : "",
    ].filter(Boolean).join(", ") || "first settings";
  }

  /** A worker of trainer.js, made from the text of its functions. */
  function newWorker(hear, fail) {
    const text = `const engine = (${minivitEngine})(), numbers = (${minivitNumbers})();
      const training = (${minivitTraining})(engine, (${minivitGradient})(engine), numbers);
      const answer = (${minivitTrainer})(engine, training, numbers).serve((told) => postMessage(told));
      onmessage = ({ data }) => answer(data);`;
    const worker = new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
    worker.onmessage = ({ data }) => hear(data);
    worker.onerror = fail;
    return worker;
  }

  function mount(kit) {
    const { h, percent, handle, choice, button, row, fold, speech, digitsOf, testDigits, load } = kit;
    const engine = minivitEngine(), say = speech(), test = testDigits(), { mean, std } = minivitDigits;
    const training = minivitTraining(engine, minivitGradient(engine), minivitNumbers());
    const out = new Set(), earlier = []; // parts left out; trainings that have ended
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches ? 5 : 1; // looks to a new drawing
    let run = null, worker = null, running = false, waiting = false, ended = 0;

    const rate = handle({ label: "Learning rate", min: 0, max: RATES.length - 1,
      value: RATES.indexOf(FIRST.rate), words: (i) => RATES[i] }, () => anew());
    const seed = handle({ label: "Seed", min: 0, max: 9, value: FIRST.seed }, () => anew());
    const images = choice("Training digits", { 63: "63", 250: "250", 1259: "1,259" }, FIRST.images,
      () => anew());
    const boxes = Object.entries(PARTS).map(([part, words]) => h("button", {
      type: "button", class: "part-box", value: part, onclick: () => {
        if (!out.delete(part)) out.add(part);
        anew();
      },
    }, words));
    const stack = h("div", { class: "part-stack", role: "group", "aria-label": "Parts" }, ...boxes);
    const go = button("Train", () => train()), back = button("Start again", () => anew());
    const charts = minivitCharts(kit, STEPS);
    const look = minivitLook(kit, engine, { side: 8, across: 4, blocks: 2, heads: 4 });

    /** An untrained model as the knobs say; what was trained before goes to the earlier ones. */
    function anew() {
      keep();
      running = false;
      const chosen = { rate: RATES[rate.value], images: Number(images.value), seed: seed.value };
      const names = Object.keys(PARTS).filter((part) => out.has(part));
      const removed = names.map((part) => [part, null]); // from all blocks
      const start = { ...chosen, steps: STEPS, removed, preprocess: { mean, std } };
      run = { // `seen`: what was told at each look; `told`: the last of it
        number: (run?.number ?? 0) + 1, start, words: different({ ...chosen, removed: names }),
        model: training.untrained(start), seen: [], told: null,
      };
      show();
      say.say(`Untrained (${run.words}): it can only guess.`);
    }
    /** Puts a training that has begun among the earlier ones. */
    function keep() {
      if (!run?.seen.length || run.kept) return;
      run.kept = ++ended;
      earlier.splice(0, earlier.length >= KEPT ? 1 : 0);
      earlier.push(run);
    }

    async function train() {
      if (run.told?.done) anew();
      running = !running;
      show();
      if (!running) return say.say(paused());
      try {
        await load("digits_training.js");
        worker ??= newWorker(hear, () => stop("The worker in which the model trains has failed."));
        ask();
      } catch (error) {
        stop(error.message);
      }
    }
    function stop(words) {
      running = waiting = false;
      show();
      say.say(words);
    }
    function ask() {
      if (!running || waiting || !worker) return;
      waiting = true;
      const data = worker.has ? null : { train: digitsOf(minivitTrainingDigits), test }; // once
      worker.postMessage({ number: run.number, go: EACH, data, start: run.begun ? null : run.start });
      run.begun = worker.has = true;
    }
    function hear(told) {
      waiting = false;
      if (told.number == run.number) take(told); // else the reader has begun another meanwhile
      ask();
    }
    function take({ layers, ...told }) {
      Object.assign(run, { told, model: { ...run.model, layers } });
      run.seen.push(told);
      running &&= !told.done;
      if (told.done) keep();
      if (!running || run.seen.length % calm == 0) show();
      if (!running && !told.done) say.say(paused()); // those were the steps asked for before
      else if (told.done || told.t % 50 == 0) say.say(state(told));
    }
    const paused = () => `Paused at step ${run.told?.t ?? 0} of ${STEPS}.`;
    function state({ t, loss, accuracy, fitted, diverged, done }) {
      if (diverged) {
        return `Diverged: after ${t} steps the loss is ${loss.toFixed(2)}, above the 2.30 of guessing. `
          + "The steps are too long, and each overshoots. Choose a lower rate.";
      }
      return `${done ? "Trained" : `Step ${t} of ${STEPS}`} (${run.words}): ${percent(accuracy)} of `
        + `${test.labels.length} test digits are right, ${percent(fitted)} of those it trains on.`;
    }

    function show() {
      charts.show(run, earlier);
      look.show(run.model);
      boxes.forEach((box) => box.setAttribute("aria-pressed", !out.has(box.value)));
      go.textContent = running ? "Pause" : run.told?.done ? "Train again" : run.told ? "Go on" : "Train";
    }
    anew();
    return { show, element: h("div", {}, row(go, back), fold("Knobs and parts",
      row(rate.element, seed.element), row(images.element),
      h("p", { class: "part-title" }, "Press a part to train without it"), stack),
      say.element, charts.element, look.element, charts.table) };
  }
  const files = ["engine", "lit", "gradient", "training", "trainer", "curves", "look", "parts/digits"];
  const needs = files.map((file) => `../${file}.js`);
  return { title: "A vision transformer that you train", needs, compute: { different }, mount };
})();
