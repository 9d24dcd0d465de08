// A model in the page: <div class="live" data-model="digits_vit"></div> becomes one.
//
// Loads the engine and the model once the page has been painted, computes in a worker, and asks
// nothing of any other site. What a reader does changes `state`; `show` draws it all again.
(() => {
  "use strict";
  const HERE = document.currentScript.src;
  const BOOK = new URL("../../book/", HERE);
  const VERDICTS = { // the claim that a switch puts to the test
    attention: "R49", mlp: "R69", norm: "R48", residual: "R55", positions: "H10", head: "V12",
    rollout: "V33",
  };
  const WORDS = { attention: "Attention", mixing: "Mixing", mlp: "MLP", norm: "Norms", residual: "Residual" };
  const MODES = { ask: "see its attention", cover: "cover it", swap: "swap two", draw: "draw" };

  // ---- Small tools

  /** An element: h("button", {class: "wide", onclick: f}, "text", child). */
  function h(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child != null));
    return element;
  }

  const scripts = {};
  /** Loads a script that lies beside this one, once. */
  const load = (name) => (scripts[name] ??= new Promise((resolve, reject) => {
    const script = h("script", { src: new URL(name, HERE).href, onload: resolve });
    script.onerror = () => reject(new Error(`${name} could not be loaded.`));
    document.head.append(script);
  }));

  const percent = (p) => `${(100 * p).toFixed(1)}\u00a0%`;
  const softmax = (logits) => {
    const e = logits.map((v) => Math.exp(v - Math.max(...logits)));
    return e.map((v) => v / e.reduce((a, b) => a + b, 0));
  };
  const best = (values) => values.indexOf(Math.max(...values));
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const claim = (id, about) => h("a", {
    href: new URL(`ledger.html#${id}`, BOOK).href, class: "live-claim", "aria-label": `${about}: the verdict on claim ${id}`,
  }, id);

  /** A worker that answers questions in turn. Of those of one kind that wait, all but the last are never answered. */
  function newWorker() {
    const text = `(${minivitWorker})((${minivitEngine})())`;
    const worker = new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
    let busy = null, waiting = [], number = 0;
    const next = () => {
      busy = waiting.shift() ?? null;
      if (busy) worker.postMessage({ number: busy.number, ...busy.question });
    };
    worker.onmessage = ({ data }) => {
      data.error ? busy.reject(new Error(data.error)) : busy.resolve(data.answer);
      next();
    };
    return (question) => new Promise((resolve, reject) => {
      waiting = waiting.filter((one) => one.question.ask != question.ask);
      waiting.push({ question, resolve, reject, number: number++ });
      if (!busy) next();
    });
  }

  // ---- Pictures

  /** Bytes as a canvas of one pixel each. */
  function drawImage(canvas, bytes, [height, width], channels) {
    [canvas.width, canvas.height] = [width, height];
    const data = new ImageData(width, height);
    for (let i = 0; i < width * height; i++) {
      for (let c = 0; c < 3; c++) data.data[4 * i + c] = bytes[i * channels + (channels == 3 ? c : 0)];
      data.data[4 * i + 3] = 255;
    }
    canvas.getContext("2d").putImageData(data, 0, 0);
    return canvas;
  }

  /** A number for each patch as a shade: of one colour, or for and against. */
  function drawMap(canvas, values, [rows, columns], signed = false) {
    [canvas.width, canvas.height] = [columns, rows];
    const context = canvas.getContext("2d"), top = Math.max(...values.map(Math.abs), 1e-9);
    const [plus, minus] = [colour(signed ? "--holds" : "--pst-color-primary"), colour("--refuted")];
    values.forEach((v, i) => {
      context.globalAlpha = (signed ? 0.85 : 1) * Math.abs(v) / top;
      context.fillStyle = v < 0 ? minus : plus;
      context.fillRect(i % columns, Math.floor(i / columns), 1, 1);
    });
    return canvas;
  }

  // ---- The component

  async function mount(root) {
    const name = root.dataset.model;
    const say = h("p", { class: "live-say", "aria-live": "polite" }, "Loading the model …");
    root.append(say);
    await Promise.all(["engine.js", "image.js", "worker.js", `models/${name}.js`].map(load));
    const ask = newWorker(), images = minivitImage();
    const about = await ask({ ask: "open", text: minivitModels[name] });
    const samples = minivitSamples[name];
    const { config, classes } = about, grid = [0, 1].map((i) => config.image_size[i] / config.patch_size[i]);
    const places = grid[0] * grid[1], extra = config.pool == "class" ? 1 : 0;
    const state = {
      bytes: null, sample: null, mode: "ask", query: (grid[0] >> 1) * grid[1] + (grid[1] >> 1), picked: null, class: null,
      removed: new Set(), heads: new Set(), order: [...Array(places).keys()], covered: new Set(),
    };
    let answer = null, speaks = null, changes = 0;

    /** The switches as the engine takes them. */
    const switches = () => ({
      removed: [...state.removed].map((key) => key.split("/")).map(([part, b]) => [part, b ? [Number(b)] : null]),
      heads: [...state.heads].map((key) => key.split("/").map(Number)),
      order: state.order, covered: [...state.covered],
    });
    const touched = () => state.removed.size + state.heads.size + state.covered.size
      + state.order.some((from, to) => from != to) > 0;

    async function change(values = {}) {
      Object.assign(state, values);
      speaks = null;
      changes++;
      show();
      try {
        answer = await ask({ ask: "run", bytes: state.bytes, switches: switches(), touched: touched() });
        show();
        if (state.class !== null) await explain();
      } catch (error) {
        say.textContent = error.message;
      }
    }

    /** What speaks for a class, some patches at a time, so that a change need not wait. */
    async function explain() {
      const then = changes, rows = [];
      while (rows.length < places) {
        const some = [...Array(Math.min(8, places - rows.length))].map((_, i) => rows.length + i);
        rows.push(...await ask({ ask: "deletion", bytes: state.bytes, switches: switches(), places: some }));
        if (changes != then) return;
        hint.textContent = `Covering one patch after another: ${rows.length} of ${places} …`;
      }
      speaks = rows;
      show();
    }

    const take = (bytes, sample = null) => change({
      bytes, sample, covered: new Set(), order: [...Array(places).keys()], picked: null,
    });

    const toggle = (set, key) => {
      if (!state[set].delete(key)) state[set].add(key);
      change();
    };

    // The image, and on it a button for each patch

    const picture = h("canvas", { role: "img", "aria-label": "The image that the model sees" });
    const overlay = h("canvas", { class: "live-overlay", "aria-hidden": "true" });
    const patches = [...Array(places).keys()].map((place) => h("button", {
      type: "button", tabindex: place == state.query ? 0 : -1, onclick: () => tap(place),
      "aria-label": `Patch in row ${Math.floor(place / grid[1]) + 1}, column ${place % grid[1] + 1}`,
    }));
    const board = h("div", { class: "live-patches", role: "group", "aria-label": "Patches of the image",
      style: `grid-template: repeat(${grid[0]}, 1fr) / repeat(${grid[1]}, 1fr)` }, ...patches);
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -grid[1], ArrowDown: grid[1] };
    board.addEventListener("keydown", (event) => {
      const at = patches.indexOf(document.activeElement), to = at + (steps[event.key] ?? NaN);
      const turns = Math.abs(steps[event.key]) == 1 && Math.floor(to / grid[1]) != Math.floor(at / grid[1]);
      if (!(event.key in steps)) return;
      event.preventDefault();
      if (!patches[to] || turns) return;
      patches[at].tabIndex = -1;
      patches[to].tabIndex = 0;
      patches[to].focus();
    });

    function tap(place) {
      if (state.mode == "cover") return toggle("covered", place);
      if (state.mode == "draw") return paint(place);
      if (state.mode == "swap" && state.picked === null) {
        state.picked = place;
      } else if (state.mode == "swap") {
        const order = [...state.order];
        [order[place], order[state.picked]] = [order[state.picked], order[place]];
        return change({ order, picked: null });
      } else {
        state.query = place;
      }
      show();
    }

    // Drawing: a pen of one pixel and a half, or from the keyboard a whole patch, which fills or empties

    function paint(place) {
      const bytes = state.bytes.slice(), [ph, pw] = config.patch_size, width = config.image_size[1];
      const indices = [];
      for (let y = 0; y < ph; y++) for (let x = 0; x < pw; x++) {
        indices.push((Math.floor(place / grid[1]) * ph + y) * width + (place % grid[1]) * pw + x);
      }
      const full = indices.every((i) => bytes[i] > 200);
      indices.forEach((i) => (bytes[i] = full ? 0 : 255));
      change({ bytes, sample: null });
    }

    function stroke(event) {
      if (state.mode != "draw" || !event.buttons) return;
      const box = board.getBoundingClientRect(), [height, width] = config.image_size;
      const bytes = state.bytes.slice(), passed = event.getCoalescedEvents?.() ?? [];
      for (const { clientX, clientY } of passed.length ? passed : [event]) {
        const x = ((clientX - box.left) / box.width) * width;
        const y = ((clientY - box.top) / box.height) * height;
        for (let i = 0; i < bytes.length; i++) {
          const away = Math.hypot((i % width) + 0.5 - x, Math.floor(i / width) + 0.5 - y);
          bytes[i] = Math.max(bytes[i], 255 * Math.min(1, Math.max(0, 1.35 - away)));
        }
      }
      event.preventDefault();
      change({ bytes, sample: null });
    }
    for (const kind of ["pointerdown", "pointermove"]) board.addEventListener(kind, stroke);
    // A click of a mouse or finger comes after its stroke, and one of a key has none before it.
    board.addEventListener("click", (event) => {
      if (state.mode == "draw" && event.detail) event.stopPropagation();
    }, true);

    const modes = h("fieldset", { class: "live-modes" }, h("legend", {}, "Tap a patch to"));
    for (const [mode, words] of Object.entries(MODES)) {
      if (mode == "draw" && config.channels != 1) continue;
      modes.append(h("label", {}, h("input", {
        type: "radio", name: `mode-${name}`, checked: mode == state.mode,
        onchange: () => { Object.assign(state, { mode, picked: null }); show(); },
      }), ` ${words}`));
    }
    const button = (words, onclick) => h("button", { type: "button", class: "live-button", onclick }, words);
    const shuffle = button("Shuffle", () => {
      const order = [...state.order];
      for (let i = places - 1; i > 0; i--) {
        const j = Math.floor(Math.random() * (i + 1));
        [order[i], order[j]] = [order[j], order[i]];
      }
      change({ order });
    });
    const clear = button("Clear", () => take(new Uint8Array(state.bytes.length)));
    const restore = button("Put all back", () => change({
      removed: new Set(), heads: new Set(), covered: new Set(),
      order: [...Array(places).keys()], picked: null,
    }));

    // Samples, and a reader's own image

    const strip = h("div", { class: "live-samples", role: "group", "aria-label": "Images that the model has never been trained on" });
    samples.forEach((sample, i) => strip.append(h("button", {
      type: "button", "aria-label": sample.name, title: sample.name,
      onclick: () => take(Uint8Array.from(sample.pixels), i),
    }, drawImage(h("canvas", { "aria-hidden": "true" }), sample.pixels, config.image_size, config.channels))));
    const file = h("input", { type: "file", accept: "image/*", onchange: () => open(file.files[0]) });
    const own = h("label", { class: "live-button live-file" }, file, "Your own image, which stays here");
    async function open(chosen) {
      if (!chosen) return;
      try {
        let bytes = await images.fromFile(chosen, about.preprocess);
        if (config.channels == 1 && images.isOnPaper(bytes, config.image_size[1])) bytes = bytes.map((v) => 255 - v);
        take(bytes);
      } catch (error) {
        say.textContent = error.message;
      }
      file.value = "";
    }
    root.addEventListener("dragover", (event) => event.preventDefault());
    root.addEventListener("drop", (event) => {
      event.preventDefault();
      open(event.dataTransfer.files[0]);
    });

    // The answer: a row for each class

    const rows = classes.map((label, c) => {
      const bar = h("span", { class: "live-bar" }), mark = h("span", { class: "live-mark" });
      const value = h("span", { class: "live-value" });
      const row = h("button", { type: "button", class: "live-class", onclick: () => {
        const again = state.class == c;
        state.class = again ? null : c;
        show();
        if (!again && !speaks) explain();
      } }, h("span", { class: "live-label" }, label), h("span", { class: "live-track" }, bar, mark), value);
      return { row, bar, mark, value };
    });
    const answers = h("div", { class: "live-classes", role: "group", "aria-label": "Classes" }, ...rows.map(({ row }) => row));
    const hint = h("p", { class: "live-hint" });

    // The blocks: a row of switches and heads for each

    const toggles = [];
    const newToggle = (set, key, words, label) => {
      const one = h("button", { type: "button", class: "live-switch", "aria-label": label, onclick: () => toggle(set, key) }, words);
      toggles.push(() => one.setAttribute("aria-pressed", !state[set].has(key)));
      return one;
    };
    const parts = Object.keys(WORDS).filter((part) => part != (config.heads ? "mixing" : "attention"));
    const heads = [];
    const depth = h("div", { class: "live-depth" });
    const lens = [], rolled = [];
    const newLens = (words) => {
      const value = h("span");
      lens.push(value);
      return h("p", { class: "live-lens" }, h("span", { class: "visually-hidden" }, words), value);
    };
    const linked = (words, part) => [words, " ", claim(VERDICTS[part], words), " "];
    const titles = h("div", { class: "live-block live-titles" },
      h("p", {}, "Tap a part, and it is gone"),
      h("p", {}, ...parts.flatMap((part) => (part in VERDICTS ? linked(WORDS[part], part) : []))),
      config.heads ? h("p", {}, ...linked("A head is a map: where the marked patch looks", "head")) : null,
      h("p", {}, ...(config.heads ? linked("Rollout", "rollout") : []), "and what the head would say by then"));
    const start = h("div", { class: "live-block" }, h("p", { class: "live-name" }, "Before the blocks"),
      h("div", { class: "live-switches" }, newToggle("removed", "positions", "Positions", "Positions"), claim(VERDICTS.positions, "Positions")),
      newLens("Before the blocks the head would say "));
    depth.append(titles, start);
    for (let b = 0; b < config.depth; b++) {
      const maps = h("div", { class: "live-heads" });
      for (let head = 0; head < (config.heads ?? 0); head++) {
        const canvas = h("canvas", { "aria-hidden": "true" });
        heads.push([b, head, canvas]);
        const one = newToggle("heads", `${b}/${head}`, "", `Head ${head + 1} of block ${b + 1}`);
        one.classList.add("live-head");
        one.append(canvas);
        maps.append(one);
      }
      const roll = h("canvas", { class: "live-roll", role: "img", "aria-label": `Rollout after block ${b + 1}` });
      rolled.push(roll);
      depth.append(h("div", { class: "live-block" },
        h("p", { class: "live-name" }, `Block ${b + 1}`),
        h("div", { class: "live-switches" }, ...parts.map((part) =>
          newToggle("removed", `${part}/${b}`, WORDS[part], `${WORDS[part]} of block ${b + 1}`))),
        maps, h("div", { class: "live-after" }, roll, newLens(`After block ${b + 1} the head would say `))));
    }

    // Beside torch

    const truth = h("tbody");
    const checked = h("p");
    const table = h("details", { class: "live-truth" }, h("summary", {}, "The same image in PyTorch"), checked,
      h("table", {}, h("thead", {}, h("tr", {}, ...["class", "this page", "PyTorch", "difference"].map((t) => h("th", { scope: "col" }, t)))), truth));

    function show() {
      const seen = answer?.seen ? shown(answer.seen) : state.bytes;
      drawImage(picture, seen, config.image_size, config.channels);
      patches.forEach((one, place) => {
        one.classList.toggle("is-query", state.mode == "ask" && place == state.query);
        one.classList.toggle("is-picked", place == state.picked);
      });
      board.classList.toggle("is-pad", state.mode == "draw");
      clear.hidden = state.mode != "draw";
      restore.disabled = !touched();
      toggles.forEach((update) => update());
      [...strip.children].forEach((one, i) => one.setAttribute("aria-pressed", i == state.sample));
      overlay.hidden = !(speaks && state.class !== null);
      if (!overlay.hidden) drawMap(overlay, speaks.map((drop) => drop[state.class]), grid, true);
      hint.textContent = state.class === null
        ? "Tap a class to see which patches speak for it."
        : speaks ? `Green patches speak for ${classes[state.class]}, red ones against: each was covered, and the logit measured again.` : "Covering one patch after another …";
      if (answer) showAnswer();
    }

    /** From the model's input to bytes. */
    const shown = (seen) => Uint8ClampedArray.from(seen, (v, i) => {
      const { mean, std } = about.preprocess, c = i % mean.length;
      return 255 * (v * std[c] + mean[c]);
    });

    function showAnswer() {
      const logits = [...answer.logits], before = softmax([...answer.before]), now = softmax(logits);
      rows.forEach(({ row, bar, mark, value }, c) => {
        bar.style.width = `${100 * now[c]}%`;
        mark.style.left = `${100 * before[c]}%`;
        mark.hidden = !touched();
        value.textContent = percent(now[c]);
        row.classList.toggle("is-best", c == best(now));
        row.setAttribute("aria-pressed", c == state.class);
      });
      const top = best(now), was = best(before);
      const sample = state.sample === null ? null : samples[state.sample];
      const change = !touched() ? "" : top == was
        ? ` With everything in place it says so with ${percent(before[was])}.`
        : ` With everything in place it says ${classes[was]} (${percent(before[was])}).`;
      say.replaceChildren("The model says ", h("strong", {}, classes[top]), ` with ${percent(now[top])}.${change}`);
      for (const [b, head, canvas] of heads) {
        const weights = answer.attention[b], n = places + extra;
        const from = (head * n + state.query + extra) * n + extra;
        drawMap(canvas, weights ? [...weights.subarray(from, from + places)] : Array(places).fill(0), grid);
      }
      rolled.forEach((canvas, b) => drawMap(canvas, [...(answer.rollout[b] ?? Array(places).fill(0))], grid));
      lens.forEach((value, i) => {
        const said = best(answer.lens[i]);
        value.replaceChildren(h("strong", {}, classes[said]), ` ${percent(answer.lens[i][said])}`);
      });
      table.hidden = !sample;
      if (!sample) return;
      const off = sample.logits.map((v, c) => Math.abs(v - answer.before[c]));
      checked.textContent = `Logits of this image with nothing switched off. Largest difference: ${Math.max(...off).toExponential(1)}. `
        + `This page took ${answer.milliseconds.toFixed(1)} ms.`;
      truth.replaceChildren(...classes.map((label, c) => h("tr", {}, h("th", { scope: "row" }, label),
        ...[answer.before[c].toFixed(5), sample.logits[c].toFixed(5), off[c].toExponential(1)].map((t) => h("td", {}, t)))));
    }

    const frame = h("div", { class: "live-frame" }, picture, overlay, board);
    await take(Uint8Array.from(samples[0].pixels), 0);
    root.replaceChildren(say,
      h("div", { class: "live-top" },
        h("div", {}, frame, modes, h("div", { class: "live-row" }, shuffle, clear, restore)),
        h("div", {}, answers, hint)),
      h("div", { class: "live-row" }, strip, own),
      depth, table);
    new MutationObserver(show).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    root.dataset.ready = "";
  }

  /** A model further down the page waits until its reader comes near. */
  function begin() {
    const near = new IntersectionObserver((entries) => entries.forEach(({ target, isIntersecting }) => {
      if (!isIntersecting) return;
      near.unobserve(target);
      mount(target).catch((error) => target.replaceChildren(h("p", { role: "alert" }, error.message)));
    }), { rootMargin: "400px" });
    document.querySelectorAll(".live[data-model]").forEach((root) => near.observe(root));
  }
  requestAnimationFrame(() => setTimeout(begin)); // after the first paint
})();
