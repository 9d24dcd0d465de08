// A model in the page: <div class="live" data-model="digits_vit" data-show="all"></div> becomes one.
//
// Loads what it needs from beside itself, once the page has been painted and the reader is near,
// computes in a worker, and asks nothing of any other site. The page may be anybody's.
(() => {
  "use strict";
  const HERE = document.currentScript.src;
  const LEDGER = new URL("../../book/ledger.html", HERE).href;
  const FILES = ["tools", "model", "board", "panels", "depth", "back", "same", "engine", "solve", "unwind", "level", "image", "worker"];
  const SHOWS = { // panels beside the image, those below, what is shown of each block, what a tap does
    all: [["classes"], ["depth", "back", "same", "truth"], ["switches", "heads", "after"], ["ask", "cover", "swap", "draw"]],
    attention: [["depth"], [], ["heads"], ["ask", "draw"]],
    lens: [["depth"], [], ["lens"], ["cover", "draw"]],
    switches: [["classes"], ["depth"], ["switches", "lens"], ["cover", "swap", "draw"]],
    back: [["back"], ["same"], [], ["cover", "draw"]],
  };
  const LARGEST = 256; // pixels that are looked for, or walked: more take too long

  const scripts = {};
  /** Loads a script that lies beside this one, once. */
  const load = (name) => (scripts[name] ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL(name, HERE).href;
    script.onload = resolve;
    script.onerror = () => reject(new Error(`${name} could not be loaded.`));
    document.head.append(script);
  }));

  const dressed = new Map();
  /** The components' look, unless the page, or the shadow root that they stand in, has it. */
  function dress(tree) {
    const href = new URL("live.css", HERE).href;
    if ([...tree.styleSheets].some((sheet) => sheet.href == href)) return null;
    if (!dressed.has(tree)) dressed.set(tree, new Promise((resolve) => {
      const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href });
      link.onload = link.onerror = resolve;
      (tree.head ?? tree).append(link);
    }));
    return dressed.get(tree);
  }

  let number = 0;
  async function mount(root) {
    const name = root.dataset.model, layout = root.dataset.show ||= "all";
    if (!Object.hasOwn(SHOWS, layout)) {
      throw new Error(`data-show is one of ${Object.keys(SHOWS).join(", ")}: got "${layout}".`);
    }
    if (!/^\w+$/.test(name)) throw new Error(`data-model is the name of a model: got "${name}".`);
    await Promise.all([dress(root.getRootNode()), ...[...FILES, `models/${name}`].map((file) => load(`${file}.js`))]);
    const [beside, below, columns, modes] = SHOWS[layout];
    const tools = minivitTools(root);
    const panels = {
      board: minivitBoard(tools), ...minivitPanels(tools), depth: minivitDepth(tools, LEDGER),
      back: minivitBack(tools), same: minivitSame(tools, LEDGER),
    };
    const { h } = tools;
    const say = h("p", { class: "live-say", "aria-live": "polite" }, "The model is being loaded …");
    if (!root.querySelector(":scope > :not(noscript)")) root.append(say); // else a picture stands there
    const ask = tools.newWorker(), about = await ask({ ask: "open", stored: minivitModels[name] });
    const given = { // the component's number, what it shows of each block and what a tap does
      number: ++number, columns, modes, name, about, ask, samples: minivitSamples[name],
    };
    const model = minivitModel(tools, given, {
      show: () => Object.values(shown).forEach((panel) => panel.show()),
      say: (...words) => say.replaceChildren(...words),
      busy: (busy) => root.setAttribute("aria-busy", busy),
    });
    const { config } = about, { grid, places } = model;

    const able = (panel) => !["back", "same"].includes(panel) || (places > 0 && !config.stem && grid[0] * grid[1] * config.channels
      * config.patch_size[0] * config.patch_size[1] <= LARGEST);
    if (!beside.every(able)) throw new Error(`The way back of ${name} takes too long for a page.`);
    const shown = Object.fromEntries(["board", "samples", ...beside, ...below].filter(able)
      .map((key) => [key, panels[key](model)]));
    const placed = (keys) => keys.filter((key) => key in shown).map((key) => shown[key].element);
    await model.choose(0);
    root.replaceChildren(say,
      h("div", { class: "live-top" }, h("div", {}, ...placed(["board", "samples"])), h("div", {}, ...placed(beside))), ...placed(below));
    root.addEventListener("dragover", (event) => event.preventDefault());
    root.addEventListener("drop", (event) => {
      event.preventDefault();
      model.open(event.dataTransfer.files[0]);
    });
    new MutationObserver(model.show).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    root.dataset.ready = "";
  }

  /** A model further down the page waits until its reader comes near; alone in a frame it begins. */
  function begin(tree = document) {
    const start = (root) => mount(root).catch((error) => {
      const said = document.createElement("p");
      said.setAttribute("role", "alert");
      said.textContent = error.message;
      root.append(said); // what stood there, a picture say, stays
    });
    const near = new IntersectionObserver((entries) => entries.filter((entry) => entry.isIntersecting).forEach(({ target }) => {
      near.unobserve(target);
      start(target);
    }), { rootMargin: "400px" });
    tree.querySelectorAll(".live[data-model], [data-model][data-show]").forEach((root) => {
      root.classList.add("live");
      self === top ? near.observe(root) : start(root); // a frame with nothing in it may never be painted
    });
  }
  globalThis.minivitBegin = begin; // for who adds models later, or in a shadow root
  self === top ? requestAnimationFrame(() => setTimeout(begin)) : begin(); // after the first paint
})();
