// A model in the page: <div class="live" data-model="digits_vit" data-show="all"></div> becomes one.
//
// Loads what it needs from beside itself, once the page has been painted and the reader is near,
// computes in a worker, and asks nothing of any other site. The page may be anybody's.
(() => {
  "use strict";
  const HERE = document.currentScript.src;
  const LEDGER = new URL("../../book/ledger.html", HERE).href;
  const FILES = ["tools", "lit", "model", "board", "panels", "heads", "depth", "back", "same", "address", "guide",
    "engine", "solve", "unwind", "level", "image", "worker"];
  const NAMES = { cifar10_vit: "photographs", digits_vit: "handwritten digits" }; // of models to choose from
  const SHOWS = { // panels beside the image, those below, what is shown of each block, what a tap does
    all: [["maps", "classes"], ["opened", "pair", "depth", "back", "same", "truth"], ["switches", "heads", "after"], ["ask", "cover", "swap", "draw"]],
    attention: [["maps"], [], [], ["ask", "draw"]],
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
  const shownBy = new WeakMap(); // by root: how its state is read and changed
  async function mount(root, query = "") {
    const name = root.dataset.model, layout = root.dataset.show ||= "all";
    if (!Object.hasOwn(SHOWS, layout)) {
      throw new Error(`data-show is one of ${Object.keys(SHOWS).join(", ")}: got "${layout}".`);
    }
    if (!/^\w+$/.test(name)) throw new Error(`data-model is the name of a model: got "${name}".`);
    await Promise.all([dress(root.getRootNode()), ...[...FILES, `models/${name}`].map((file) => load(`${file}.js`))]);
    const [beside, below, columns, modes] = SHOWS[layout];
    const tools = minivitTools(root);
    const panels = {
      board: minivitBoard(tools), ...minivitPanels(tools), ...minivitHeads(tools), depth: minivitDepth(tools, LEDGER),
      back: minivitBack(tools), same: minivitSame(tools, LEDGER),
    };
    const { h } = tools;
    const say = h("p", { class: "live-say", "aria-live": "polite" }, "The model is being loaded …");
    if (!root.querySelector(":scope > :not(noscript)")) root.append(say); // else a picture stands there
    const ask = tools.newWorker(), about = await ask({ ask: "open", stored: minivitModels[name] });
    const samples = minivitSamples[name], lit = minivitLit(tools);
    const sharp = await Promise.all(samples.map(({ file }) => file && lit.fetched(new URL(`photographs/${file}.webp`, HERE).href)));
    const given = { // the component's number, what it shows of each block and what a tap does
      number: ++number, columns, modes, name, about, ask, samples, sharp,
    };
    const model = minivitModel(tools, given, {
      show: () => {
        Object.values(shown).forEach((panel) => panel.show());
        tell(root);
      },
      say: (...words) => say.replaceChildren(...words),
      busy: (busy) => root.setAttribute("aria-busy", busy),
    });
    const { config } = about, { grid, places } = model;

    const able = (panel) => (!["maps", "opened"].includes(panel) || config.heads) && (!["back", "same"].includes(panel) || (places > 0 && !config.stem && grid[0] * grid[1] * config.channels
      * config.patch_size[0] * config.patch_size[1] <= LARGEST));
    if (!beside.every(able)) throw new Error(`The way back of ${name} takes too long for a page.`);
    const shown = Object.fromEntries(["board", "samples", ...beside, ...below].filter(able)
      .map((key) => [key, panels[key](model)]));
    const placed = (keys) => keys.filter((key) => key in shown).map((key) => shown[key].element);
    const address = minivitAddress(model), isFirst = !shownBy.has(root);
    shownBy.get(root)?.ask.end();
    shownBy.set(root, { model, address, ask });
    await address.go(query);
    const [first, ...others] = beside.filter(able).map((key) => h("div", { class: `live-beside live-beside-${key}` }, shown[key].element));
    const guide = layout == "all" ? minivitGuide(tools, address.go)(model, root) : null;
    root.replaceChildren(say, chooser(root, tools, guide?.begin), guide?.told ?? "", h("div", { class: "live-top" },
      h("div", { class: "live-shown" }, shown.board.frame), first ?? "", h("div", { class: "live-controls" }, ...placed(["board", "samples"])), ...others), ...placed(below));
    new MutationObserver(model.show).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    root.dataset.ready = "";
    tell(root);
    if (!isFirst) return;
    root.addEventListener("dragover", (event) => event.preventDefault());
    root.addEventListener("drop", (event) => {
      event.preventDefault();
      shownBy.get(root).model.open(event.dataTransfer.files[0]);
    });
  }

  /** What stands above a model: its walk, the models that a page lets its reader choose from, a link. */
  function chooser(root, { h, button }, walk = "") {
    const names = (root.dataset.models ?? "").split(" ").filter((name) => Object.hasOwn(NAMES, name));
    if (!names.length) return walk;
    const link = button("Copy a link to this state", async () => {
      await navigator.clipboard.writeText(location.href);
      link.textContent = "Copied";
    });
    return h("div", { class: "live-row live-which" }, walk, h("fieldset", { class: "live-modes", "aria-label": "A model of" }, "A model of", ...names.map((name) => h("label", {}, h("input", {
      type: "radio", name: `model-${number}`, checked: name == root.dataset.model, onchange: () => goTo(root, `model=${name}`),
    }), ` ${NAMES[name]}`))), "address" in root.dataset ? link : null);
  }

  /** Has a model, or another one of its page, take a state. */
  function goTo(root, query) {
    const name = new URLSearchParams(query).get("model") ?? root.dataset.model;
    if (name == root.dataset.model && shownBy.has(root)) return shownBy.get(root).address.go(query);
    if ((root.dataset.models ?? "").split(" ").includes(name)) root.dataset.model = name;
    root.setAttribute("aria-busy", "true");
    return mount(root, query);
  }

  /** Writes the state into the page's address, if it is the page's model. */
  function tell(root) {
    if (!("address" in root.dataset) || !("ready" in root.dataset)) return;
    const query = shownBy.get(root).address.write();
    try {
      if (location.search != `?${query}`) history.replaceState(null, "", `?${query}${location.hash}`);
    } catch { /* in a folder's page an address may have to stay as it is */ }
  }

  /** A model further down the page waits until its reader comes near; alone in a frame it begins. */
  function begin(tree = document) {
    const open = (root) => ("address" in root.dataset ? goTo(root, location.search) : mount(root));
    const start = (root) => open(root).catch((error) => {
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
      if (!("address" in root.dataset)) return;
      document.addEventListener("click", (event) => { // links to states of the page's model
        const link = event.target.closest('a[href^="?"]');
        if (!link) return;
        event.preventDefault();
        goTo(root, link.search).then(() => root.scrollIntoView());
      });
    });
  }
  globalThis.minivitBegin = begin; // for who adds models later, or in a shadow root
  self === top ? requestAnimationFrame(() => setTimeout(begin)) : begin(); // after the first paint
})();
