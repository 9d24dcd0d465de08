// A model in the page: <div class="live" data-model="digits_vit" data-show="all"></div> becomes one.
//
// Loads what it needs from beside itself, once the page has been painted and the reader is near,
// computes in a worker, and asks nothing of any other site. The page may be anybody's.
(() => {
  "use strict";
  const HERE = document.currentScript.src;
  const LEDGER = new URL("../../book/ledger.html", HERE).href;
  const FILES = ["tools", "board", "panels", "depth", "back", "engine", "solve", "unwind", "image", "worker"];
  const SHOWS = { // panels beside the image, those below, what is shown of each block, what a tap does
    all: [["classes"], ["samples", "depth", "back", "truth"], ["switches", "heads", "after"], ["ask", "cover", "swap", "draw"]],
    attention: [["depth"], ["samples"], ["heads"], ["ask", "draw"]],
    lens: [["depth"], ["samples"], ["lens"], ["cover", "draw"]],
    switches: [["classes"], ["samples", "depth"], ["switches", "lens"], ["cover", "swap", "draw"]],
    back: [["back"], ["samples"], [], ["cover", "draw"]],
  };
  const SOON = 2000; // milliseconds, of a first answer, which takes several times as long as others
  const LARGEST = 256; // pixels that the way back looks for: more take too long

  const scripts = {};
  /** Loads a script that lies beside this one, once. */
  const load = (name) => (scripts[name] ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL(name, HERE).href;
    script.onload = resolve;
    script.onerror = () => reject(new Error(`${name} could not be loaded.`));
    document.head.append(script);
  }));

  /** The components' look, unless the page has it. */
  function dress() {
    const href = new URL("live.css", HERE).href;
    if ([...document.styleSheets].some((sheet) => sheet.href == href)) return null;
    return scripts["live.css"] ??= new Promise((resolve) => {
      const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href });
      link.onload = link.onerror = resolve;
      document.head.append(link);
    });
  }

  let number = 0;
  async function mount(root) {
    const name = root.dataset.model, layout = root.dataset.show ||= "all";
    if (!Object.hasOwn(SHOWS, layout)) {
      throw new Error(`data-show is one of ${Object.keys(SHOWS).join(", ")}: got "${layout}".`);
    }
    if (!/^\w+$/.test(name)) throw new Error(`data-model is the name of a model: got "${name}".`);
    await Promise.all([dress(), ...[...FILES, `models/${name}`].map((file) => load(`${file}.js`))]);
    const [beside, below, columns, modes] = SHOWS[layout];
    const tools = minivitTools();
    const panels = {
      board: minivitBoard(tools), ...minivitPanels(tools), depth: minivitDepth(tools, LEDGER), back: minivitBack(tools),
    };
    const { h, range, percent, best, softmax } = tools;
    const say = h("p", { class: "live-say", "aria-live": "polite" }, "The model is being loaded …");
    if (!root.children.length) root.append(say); // else a picture stands there until the first answer
    const ask = tools.newWorker(), images = minivitImage();
    const about = await ask({ ask: "open", stored: minivitModels[name] });
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
      ...nothing(), bytes: null, sample: null, mode: modes[0], class: null, hovered: null,
      query: (grid[0] >> 1) * grid[1] + (grid[1] >> 1), // the patch whose attention is shown
    };
    /** The switches as the engine takes them. */
    const switches = () => ({
      removed: [...state.removed].map((key) => key.split("/"))
        .map(([part, block]) => [part, block ? [Number(block)] : null]),
      heads: [...state.heads].map((key) => key.split("/").map(Number)),
      order: state.order, covered: [...state.covered],
    });
    const model = {
      number: ++number, columns, modes, // of the component, what it shows and what a tap does
      name, about, samples, grid, places, state, nothing, say, ask, switches, bytesOf,
      extra: config.pool == "class" ? 1 : 0, // tokens that are no patch
      answer: null, // the worker's, to the last question
      speaks: null, // by how much each logit falls without each patch
      done: 0, // patches that have been covered to find that out
      show, change, toggle, touched, take, choose, explain, hover, open,
    };
    let changes = 0;

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
        if (changes == then && spoken() !== null) await weigh();
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

    /** The class that is explained. */
    const spoken = () => state.hovered ?? state.class;

    function explain(c) {
      Object.assign(state, { class: state.class == c ? null : c, hovered: null });
      show();
      if (state.class !== null && !model.speaks && !model.done) weigh();
    }

    /** The same for as long as the pointer is there, if it is known or soon will be. */
    function hover(c) {
      if (c !== null && !model.speaks && !(model.answer?.milliseconds * places < SOON)) return;
      state.hovered = c;
      show();
      if (c !== null && !model.speaks && !model.done) weigh();
    }

    /** From the model's input to bytes. */
    function bytesOf(seen) {
      const { mean, std } = preprocess;
      return Uint8ClampedArray.from(seen, (v, i) => 255 * (v * std[i % mean.length] + mean[i % mean.length]));
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

    const able = (panel) => panel != "back" || (places > 0 && !config.stem && grid[0] * grid[1] * config.channels
      * config.patch_size[0] * config.patch_size[1] <= LARGEST);
    if (!beside.every(able)) throw new Error(`The way back of ${name} takes too long for a page.`);
    const shown = Object.fromEntries(["board", ...beside, ...below].filter(able)
      .map((key) => [key, panels[key](model)]));
    const placed = (keys) => keys.filter((key) => key in shown).map((key) => shown[key].element);
    function show() {
      Object.values(shown).forEach((panel) => panel.show());
    }
    await choose(0);
    root.replaceChildren(say,
      h("div", { class: "live-top" }, shown.board.element, h("div", {}, ...placed(beside))), ...placed(below));
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
        target.append(said); // what stood there, a picture say, stays
      });
    }), { rootMargin: "400px" });
    document.querySelectorAll(".live[data-model], [data-model][data-show]").forEach((root) => {
      root.classList.add("live");
      near.observe(root);
    });
  }
  requestAnimationFrame(() => setTimeout(begin)); // after the first paint
})();
