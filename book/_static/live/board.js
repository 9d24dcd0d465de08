// The panel of the image: patches to be asked, covered, exchanged or drawn on.
function minivitBoard(tools) {
  "use strict";
  const { h, button, range, drawImage, drawMap } = tools;
  const MODES = { ask: "see its attention", cover: "cover it", swap: "swap two", draw: "draw" };

  /** The image that the model sees, with a button on each patch. */
  return function board(model) {
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
      state.asked = state.mode == "ask";
      model.show();
    }

    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -grid[1], ArrowDown: grid[1] };
    cells.addEventListener("keydown", (event) => {
      if (!(event.key in steps)) return;
      event.preventDefault();
      const at = patches.indexOf(cells.getRootNode().activeElement), to = at + steps[event.key];
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

    /** From where the heads of a block take, on average, what they add to the marked patch. */
    function looks(attention) {
      const n = places + model.extra, heads = range(config.heads);
      const from = (head) => (head * n + state.query + model.extra) * n + model.extra;
      return range(places).map((j) => heads.reduce((sum, head) => sum + attention[from(head) + j], 0));
    }

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
      const said = "The image that the model sees";
      overlay.hidden = false;
      if (model.speaks && spoken !== null) {
        drawMap(overlay, model.speaks.map((drop) => drop[spoken]), grid, true);
        picture.setAttribute("aria-label", `${said}, and which patches speak for ${classes[spoken]}`);
      } else if (state.asked && model.answer?.attention.length) {
        drawMap(overlay, looks(model.answer.attention.at(-1)), grid, true);
        picture.setAttribute("aria-label", `${said}, and where the marked patch looks in the last block`);
      } else {
        overlay.hidden = true;
        picture.setAttribute("aria-label", said);
      }
    }
    const frame = h("div", { class: "live-frame" }, picture, overlay, cells);
    return { show, element: h("div", {}, frame, modes, h("div", { class: "live-row" }, shuffle, clear, restore)) };
  };
}
