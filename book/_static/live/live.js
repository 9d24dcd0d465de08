// A model in the page: <div class="live" data-model="digits_vit"></div> becomes one.
//
// Loads what it needs once the page has been painted and the reader is near, computes in a worker,
// and asks nothing of any other site.
(() => {
  "use strict";
  const HERE = document.currentScript.src;
  const LEDGER = new URL("../../book/ledger.html", HERE).href;
  const FILES = ["tools.js", "panels.js", "engine.js", "image.js", "worker.js"];

  const scripts = {};
  /** Loads a script that lies beside this one, once. */
  const load = (name) => (scripts[name] ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL(name, HERE).href;
    script.onload = resolve;
    script.onerror = () => reject(new Error(`${name} could not be loaded.`));
    document.head.append(script);
  }));

  async function mount(root) {
    const name = root.dataset.model;
    await Promise.all([...FILES, `models/${name}.js`].map(load));
    const tools = minivitTools(), panels = minivitPanels(tools, LEDGER);
    const { h, range, percent, best, softmax } = tools;
    const say = h("p", { class: "live-say", "aria-live": "polite" }, "The model is being loaded …");
    root.append(say);
    const ask = tools.newWorker(), images = minivitImage();
    const about = await ask({ ask: "open", text: minivitModels[name] });
    const { config, preprocess, classes } = about;
    const grid = [0, 1].map((i) => config.image_size[i] / config.patch_size[i]);
    const places = grid[0] * grid[1], samples = minivitSamples[name];

    /** The switches when nothing has been touched. */
    const nothing = () => ({
      removed: new Set(), // "attention/2" of a block, "positions" of the whole
      heads: new Set(), // "2/0": block and head
      covered: new Set(), // places
      order: range(places), // for each place the patch that is put there
      picked: null, // the first of two patches to swap
    });
    const state = {
      ...nothing(), bytes: null, sample: null, mode: "ask", class: null,
      query: (grid[0] >> 1) * grid[1] + (grid[1] >> 1), // the patch whose attention is shown
    };
    const model = {
      name, about, samples, grid, places, state, nothing, say,
      extra: config.pool == "class" ? 1 : 0, // tokens that are no patch
      answer: null, // the worker's, to the last question
      speaks: null, // by how much each logit falls without each patch
      done: 0, // patches that have been covered to find that out
      show, change, toggle, touched, take, choose, explain, open,
    };
    let changes = 0;

    /** The switches as the engine takes them. */
    const switches = () => ({
      removed: [...state.removed].map((key) => key.split("/"))
        .map(([part, block]) => [part, block ? [Number(block)] : null]),
      heads: [...state.heads].map((key) => key.split("/").map(Number)),
      order: state.order, covered: [...state.covered],
    });

    function touched() {
      const sizes = [state.removed, state.heads, state.covered].map((set) => set.size);
      return sizes.some(Boolean) || state.order.some((from, to) => from != to);
    }

    async function change(values = {}) {
      Object.assign(state, values);
      Object.assign(model, { speaks: null, done: 0 });
      const then = ++changes, { sample } = state;
      root.setAttribute("aria-busy", true);
      show();
      try {
        const answer = await ask({
          ask: "run", bytes: state.bytes, switches: switches(), touched: touched(),
        });
        model.answer = { ...answer, sample };
        if (changes == then) {
          speak();
          root.setAttribute("aria-busy", false);
        }
        show();
        if (changes == then && state.class !== null) await weigh();
      } catch (error) {
        say.textContent = error.message;
      }
    }

    /** What speaks for each class, some patches at a time, so that a change need not wait. */
    async function weigh() {
      const then = changes, rows = [];
      while (rows.length < places) {
        const some = range(Math.min(8, places - rows.length)).map((i) => rows.length + i);
        rows.push(...await ask({ ask: "deletion", bytes: state.bytes, switches: switches(), places: some }));
        if (changes != then) return;
        model.done = rows.length;
        show();
      }
      model.speaks = rows;
      show();
    }

    function explain(c) {
      state.class = state.class == c ? null : c;
      show();
      if (state.class !== null && !model.speaks && !model.done) weigh();
    }

    function toggle(set, key) {
      if (!state[set].delete(key)) state[set].add(key);
      change();
    }

    /** Takes another image; parts that are gone stay so. */
    function take(bytes, sample = null) {
      return change({ bytes, sample, covered: new Set(), order: range(places), picked: null });
    }
    function choose(i) {
      return take(Uint8Array.from(samples[i].pixels), i);
    }

    async function open(file) {
      if (!file) return;
      try {
        const bytes = await images.fromFile(file, preprocess);
        const ink = config.channels == 1 && images.isOnPaper(bytes, config.image_size[1]);
        await take(ink ? bytes.map((v) => 255 - v) : bytes);
      } catch (error) {
        say.textContent = error.message;
      }
    }

    function speak() {
      const now = softmax([...model.answer.logits]), before = softmax([...model.answer.before]);
      const top = best(now), was = best(before);
      const instead = !touched() ? "" : top == was
        ? ` With everything in place it says so with ${percent(before[was])}.`
        : ` With everything in place it says ${classes[was]} (${percent(before[was])}).`;
      say.replaceChildren("The model says ", h("strong", {}, classes[top]), ` with ${percent(now[top])}.${instead}`);
    }

    const shown = Object.fromEntries(Object.entries(panels).map(([key, panel]) => [key, panel(model)]));
    function show() {
      Object.values(shown).forEach((panel) => panel.show());
    }
    await choose(0);
    root.replaceChildren(say,
      h("div", { class: "live-top" }, shown.board.element, shown.classes.element),
      shown.samples.element, shown.depth.element, shown.truth.element);
    root.addEventListener("dragover", (event) => event.preventDefault());
    root.addEventListener("drop", (event) => {
      event.preventDefault();
      open(event.dataTransfer.files[0]);
    });
    new MutationObserver(show).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    root.dataset.ready = "";
  }

  /** A model further down the page waits until its reader comes near. */
  function begin() {
    const near = new IntersectionObserver((entries) => entries.forEach(({ target, isIntersecting }) => {
      if (!isIntersecting) return;
      near.unobserve(target);
      mount(target).catch((error) => {
        const said = document.createElement("p");
        said.setAttribute("role", "alert");
        said.textContent = error.message;
        target.replaceChildren(said);
      });
    }), { rootMargin: "400px" });
    document.querySelectorAll(".live[data-model]").forEach((root) => near.observe(root));
  }
  requestAnimationFrame(() => setTimeout(begin)); // after the first paint
})();
