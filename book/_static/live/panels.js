// The panels of a live model. Each takes the model (see live.js) and gives an element, and `show`,
// which draws it anew after every change.
function minivitPanels(tools, ledger) {
  "use strict";
  const { h, button, range, percent, best, softmax, drawImage, drawMap } = tools;
  const CLAIMS = { // what a switch puts to the test
    attention: "R49", mlp: "R69", norm: "R48", residual: "R55", positions: "H10", head: "V12",
    rollout: "V33",
  };
  const WORDS = {
    attention: "Attention", mixing: "Mixing", mlp: "MLP", norm: "Norms", residual: "Residual",
  };
  const MODES = { ask: "see its attention", cover: "cover it", swap: "swap two", draw: "draw" };

  /** Words, and after them a link to the verdict on a claim. */
  function linked(words, part) {
    const id = CLAIMS[part], label = `${words}: the verdict on claim ${id}`;
    const link = { href: `${ledger}#${id}`, class: "live-claim", "aria-label": label };
    return id ? [words, " ", h("a", link, id), " "] : [];
  }

  /** The image that the model sees, with a button on each patch. */
  function board(model) {
    const { about: { config, classes }, grid, places, state } = model;
    const [height, width] = config.image_size;
    const picture = h("canvas", { role: "img", "aria-label": "The image that the model sees" });
    const overlay = h("canvas", { class: "live-overlay", "aria-hidden": "true" });
    const patches = range(places).map((place) => h("button", {
      type: "button", tabindex: place == state.query ? 0 : -1, onclick: () => tap(place),
      "aria-label": `Patch in row ${Math.floor(place / grid[1]) + 1}, column ${place % grid[1] + 1}`,
    }));
    const cells = h("div", {
      class: "live-patches", role: "group", "aria-label": "Patches of the image",
      style: `grid-template: repeat(${grid[0]}, 1fr) / repeat(${grid[1]}, 1fr)`,
    }, ...patches);

    function tap(place) {
      if (state.mode == "cover") return model.toggle("covered", place);
      if (state.mode == "draw") return fill(place);
      if (state.mode == "swap" && state.picked !== null) {
        const order = [...state.order];
        [order[place], order[state.picked]] = [order[state.picked], order[place]];
        return model.change({ order, picked: null });
      }
      state[state.mode == "swap" ? "picked" : "query"] = place;
      model.show();
    }

    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -grid[1], ArrowDown: grid[1] };
    cells.addEventListener("keydown", (event) => {
      if (!(event.key in steps)) return;
      event.preventDefault();
      const at = patches.indexOf(document.activeElement), to = at + steps[event.key];
      const row = (place) => Math.floor(place / grid[1]);
      if (!patches[to] || (Math.abs(steps[event.key]) == 1 && row(to) != row(at))) return;
      patches[at].tabIndex = -1;
      patches[to].tabIndex = 0;
      patches[to].focus();
    });

    /** Draws from the keyboard: a whole patch is filled, or emptied. */
    function fill(place) {
      const bytes = state.bytes.slice(), [ph, pw] = config.patch_size;
      const start = Math.floor(place / grid[1]) * ph * width + (place % grid[1]) * pw;
      const pixels = range(ph * pw).map((k) => start + Math.floor(k / pw) * width + (k % pw));
      const full = pixels.every((i) => bytes[i] > 200);
      pixels.forEach((i) => (bytes[i] = full ? 0 : 255));
      model.change({ bytes, sample: null });
    }

    /** Draws by hand, with a pen somewhat wider than a pixel. */
    function stroke(event) {
      if (state.mode != "draw" || !event.buttons) return;
      const box = cells.getBoundingClientRect(), bytes = state.bytes.slice();
      const passed = event.getCoalescedEvents?.() ?? [];
      for (const { clientX, clientY } of passed.length ? passed : [event]) {
        const x = ((clientX - box.left) / box.width) * width;
        const y = ((clientY - box.top) / box.height) * height;
        for (let i = 0; i < bytes.length; i++) {
          const away = Math.hypot((i % width) + 0.5 - x, Math.floor(i / width) + 0.5 - y);
          bytes[i] = Math.max(bytes[i], 255 * Math.min(1, Math.max(0, 1.35 - away)));
        }
      }
      event.preventDefault();
      model.change({ bytes, sample: null });
    }
    for (const kind of ["pointerdown", "pointermove"]) cells.addEventListener(kind, stroke);
    cells.addEventListener("click", (event) => { // after a stroke; one of a key has no detail
      if (state.mode == "draw" && event.detail) event.stopPropagation();
    }, true);

    const modes = h("fieldset", { class: "live-modes" }, h("legend", {}, "Tap a patch to"));
    for (const mode of model.modes.filter((one) => one != "draw" || config.channels == 1)) {
      modes.append(h("label", {}, h("input", {
        type: "radio", name: `mode-${model.number}`, checked: mode == state.mode,
        onchange: () => { Object.assign(state, { mode, picked: null }); model.show(); },
      }), ` ${MODES[mode]}`));
    }
    const shuffle = button("Shuffle", () => {
      const order = [...state.order];
      for (let i = places - 1; i > 0; i--) {
        const j = Math.floor(Math.random() * (i + 1));
        [order[i], order[j]] = [order[j], order[i]];
      }
      model.change({ order });
    });
    const clear = button("Clear", () => model.take(new Uint8Array(state.bytes.length)));
    const restore = button("Put all back", () => model.change(model.nothing()));

    function show() {
      const bytes = model.answer ? model.bytesOf(model.answer.seen) : state.bytes;
      drawImage(picture, bytes, config.image_size, config.channels);
      patches.forEach((one, place) => {
        one.classList.toggle("is-query", state.mode == "ask" && place == state.query);
        one.classList.toggle("is-picked", place == state.picked);
      });
      cells.classList.toggle("is-pad", state.mode == "draw");
      clear.hidden = state.mode != "draw";
      shuffle.hidden = !model.modes.includes("swap");
      restore.disabled = !model.touched();
      const spoken = state.hovered ?? state.class;
      overlay.hidden = !(model.speaks && spoken !== null);
      if (!overlay.hidden) drawMap(overlay, model.speaks.map((drop) => drop[spoken]), grid, true);
      picture.setAttribute("aria-label", overlay.hidden ? "The image that the model sees"
        : `The image, and which patches speak for ${classes[spoken]}`);
    }
    const frame = h("div", { class: "live-frame" }, picture, overlay, cells);
    return { show, element: h("div", {}, frame, modes, h("div", { class: "live-row" }, shuffle, clear, restore)) };
  }

  /** A bar for each class; a mark says where it was with everything in place. */
  function classes(model) {
    const { about, state } = model, hint = h("p", { class: "live-hint" });
    const rows = about.classes.map((label, c) => {
      const bar = h("span", { class: "live-bar" }), mark = h("span", { class: "live-mark" });
      const value = h("span", { class: "live-value" });
      const row = h("button", {
        type: "button", class: "live-class", onclick: () => model.explain(c),
        onpointerenter: ({ pointerType }) => pointerType == "mouse" && model.hover(c),
        onpointerleave: ({ pointerType }) => pointerType == "mouse" && model.hover(null),
      },
        h("span", { class: "live-label" }, label), h("span", { class: "live-track" }, bar, mark), value);
      return { row, bar, mark, value };
    });

    function show() {
      const spoken = state.hovered ?? state.class, label = about.classes[spoken];
      hint.textContent = spoken === null ? "Point at a class, or tap it, to see which patches speak for it."
        : model.speaks ? `Green patches speak for ${label}, red ones against: each was covered, and `
          + "the logit measured again."
        : `Covering one patch after another: ${model.done} of ${model.places} …`;
      if (!model.answer) return;
      const before = softmax([...model.answer.before]), now = softmax([...model.answer.logits]);
      rows.forEach(({ row, bar, mark, value }, c) => {
        bar.style.width = `${100 * now[c]}%`;
        mark.style.left = `${100 * before[c]}%`;
        mark.hidden = !model.touched();
        value.textContent = percent(now[c]);
        row.classList.toggle("is-best", c == best(now));
        row.setAttribute("aria-pressed", c == state.class);
      });
    }
    const group = h("div", { class: "live-classes", role: "group", "aria-label": "Classes" },
      ...rows.map(({ row }) => row));
    return { show, element: h("div", {}, group, hint) };
  }

  /** Images to choose from, and a reader's own. */
  function samples(model) {
    const { about: { config }, state } = model;
    const strip = h("div", {
      class: "live-samples", role: "group", "aria-label": "Images that the model was not trained on",
    }, ...model.samples.map((sample, i) => h("button", {
      type: "button", "aria-label": sample.name, title: sample.name, onclick: () => model.choose(i),
    }, drawImage(h("canvas", { "aria-hidden": "true" }), sample.pixels, config.image_size, config.channels))));
    const file = h("input", { type: "file", accept: "image/*", onchange: async () => {
      await model.open(file.files[0]);
      file.value = ""; // so that the same file can be chosen again
    } });
    const own = h("label", { class: "live-button live-file" }, file, "Your own image, which stays here");
    const show = () =>
      [...strip.children].forEach((one, i) => one.setAttribute("aria-pressed", i == state.sample));
    return { show, element: h("div", { class: "live-row" }, strip, own) };
  }

  /** Block by block: switches, heads, rollout, and what the head would say by then. */
  function depth(model) {
    const { about: { config, classes }, grid, places, extra, state, columns } = model;
    const wants = (column) => columns.includes(column), updates = [];

    function newToggle(set, key, label, ...children) {
      const one = h("button", {
        type: "button", class: "live-switch", "aria-label": label, onclick: () => model.toggle(set, key),
      }, ...children);
      updates.push(() => one.setAttribute("aria-pressed", !state[set].has(key)));
      return one;
    }
    function newLens(i, words) {
      const value = h("span");
      updates.push(({ lens }) => {
        const said = best(lens[i]);
        value.replaceChildren(h("strong", {}, classes[said]), ` ${percent(lens[i][said])}`);
      });
      return h("p", { class: "live-lens" }, h("span", { class: "visually-hidden" }, `${words} the head would say `), value);
    }
    function newMap(values, properties) {
      const canvas = h("canvas", properties);
      updates.push((answer) => drawMap(canvas, [...(values(answer) ?? Array(places).fill(0))], grid));
      return canvas;
    }
    /** From where one head takes what it adds to the marked patch. */
    const row = (b, head) => ({ attention }) => {
      const n = places + extra, from = (head * n + state.query + extra) * n + extra;
      return attention[b]?.subarray(from, from + places);
    };

    const parts = Object.keys(WORDS).filter((part) => part != (config.heads ? "mixing" : "attention"));
    const heads = (b) => h("div", { class: "live-heads" }, ...range(config.heads ?? 0).map((head) => {
      const one = newToggle("heads", `${b}/${head}`, `Head ${head + 1} of block ${b + 1}`,
        newMap(row(b, head), { "aria-hidden": "true" }));
      one.classList.add("live-head");
      return one;
    }));
    const block = (b) => h("div", { class: "live-block" },
      h("p", { class: "live-name" }, `Block ${b + 1}`),
      wants("switches") ? h("div", { class: "live-switches" }, ...parts.map((part) =>
        newToggle("removed", `${part}/${b}`, `${WORDS[part]} of block ${b + 1}`, WORDS[part]))) : null,
      wants("heads") ? heads(b) : null,
      wants("after") ? h("div", { class: "live-after" },
        config.heads ? newMap(({ rollout }) => rollout[b], {
          class: "live-roll", role: "img", "aria-label": `Rollout after block ${b + 1}`,
        }) : null, newLens(b + 1, `After block ${b + 1}`)) : null,
      wants("lens") ? newLens(b + 1, `After block ${b + 1}`) : null);

    const looks = config.heads ? linked("A head is a map: where the marked patch looks", "head") : [];
    const titles = h("div", { class: "live-block live-titles" },
      wants("switches") ? h("p", {}, "Tap a part, and it is gone") : null,
      wants("switches") ? h("p", {}, ...parts.flatMap((part) => linked(WORDS[part], part))) : null,
      wants("heads") ? h("p", {}, ...looks) : null,
      wants("after") ? h("p", {}, ...(config.heads ? linked("Rollout", "rollout") : []), "and what the head would say by then") : null,
      wants("lens") ? h("p", {}, "What the head would say after each block") : null);
    const start = h("div", { class: "live-block" }, h("p", { class: "live-name" }, "Before the blocks"),
      wants("switches") ? h("div", { class: "live-switches" }, newToggle("removed", "positions", "Positions", "Positions"),
        ...linked("Positions", "positions").slice(1)) : null,
      newLens(0, "Before the blocks"));
    const early = ["switches", "lens"].some(wants) ? start : null;
    const element = h("div", { class: "live-depth" },
      ...[titles, early, ...range(config.depth).map(block)].filter(Boolean));
    return { element, show: () => model.answer && updates.forEach((update) => update(model.answer)) };
  }

  /** The page's logits of a sample, and PyTorch's. */
  function truth(model) {
    const { about } = model, sum = h("p"), body = h("tbody");
    const heads = ["class", "this page", "PyTorch", "difference"].map((t) => h("th", { scope: "col" }, t));
    const element = h("details", { class: "live-truth" }, h("summary", {}, "The same image in PyTorch"),
      sum, h("table", {}, h("thead", {}, h("tr", {}, ...heads)), body));

    function show() {
      const { before, milliseconds, sample } = model.answer ?? { sample: null };
      element.hidden = sample === null;
      if (sample === null) return;
      const { logits } = model.samples[sample];
      const off = logits.map((v, c) => Math.abs(v - before[c]));
      sum.textContent = "Logits of this image with everything in place. Largest difference: "
        + `${Math.max(...off).toExponential(1)}. This page took ${milliseconds.toFixed(1)} ms.`;
      body.replaceChildren(...about.classes.map((label, c) => h("tr", {},
        h("th", { scope: "row" }, label), h("td", {}, before[c].toFixed(5)),
        h("td", {}, logits[c].toFixed(5)), h("td", {}, off[c].toExponential(1)))));
    }
    return { element, show };
  }

  return { board, classes, samples, depth, truth };
}
