// The panel of the image: patches to be asked, covered, exchanged or drawn on.
function minivitBoard(tools) {
  "use strict";
  const { h, button, range, drawMap } = tools, lit = minivitLit(tools);
  const MODES = { ask: "see where it looks", cover: "cover it", swap: "swap two", draw: "draw" };

  /** The image that the model sees, with a button on each patch. */
  return function board(model) {
    const { about: { config, classes }, grid, places, state } = model;
    const [height, width] = config.image_size;
    const side = config.channels == 3 ? 448 : 256, grey = config.channels == 1;
    const picture = h("canvas", { class: "live-photo", role: "img", width: side, height: (side * height) / width });
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
      const at = patches.indexOf(cells.getRootNode().activeElement), to = at + steps[event.key];
      const row = (place) => Math.floor(place / grid[1]);
      if (!patches[to] || (Math.abs(steps[event.key]) == 1 && row(to) != row(at))) return;
      patches[at].tabIndex = -1;
      patches[to].tabIndex = 0;
      patches[to].focus();
      if (state.mode == "ask") tap(to);
    });

    /** Drags the ring. */
    function drag(event) {
      if (state.mode != "ask" || !event.buttons) return;
      const box = cells.getBoundingClientRect();
      const [column, row] = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height]
        .map((part, i) => Math.floor(Math.min(0.999, Math.max(0, part)) * grid[1 - i]));
      if (row * grid[1] + column != state.query) tap(row * grid[1] + column);
    }
    cells.addEventListener("pointermove", drag);

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
        type: "radio", name: `mode-${model.number}`, value: mode,
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
      if (!model.answer) return;
      patches.forEach((one, place) => {
        one.classList.toggle("is-query", Boolean(config.heads) && place == state.query);
        one.classList.toggle("is-picked", place == state.picked);
      });
      for (const one of modes.querySelectorAll("input")) one.checked = one.value == state.mode;
      cells.classList.toggle("is-pad", state.mode == "draw");
      clear.hidden = state.mode != "draw";
      shuffle.hidden = !model.modes.includes("swap");
      restore.disabled = !model.touched();
      const spoken = state.hovered ?? state.class, explained = Boolean(model.speaks) && spoken !== null;
      const [b, head] = ((explained ? null : state.pointed ?? state.head) ?? "").split("/");
      lit.draw(picture, model.picture(), b ? model.weights(b, head) : null, grid, grey);
      overlay.hidden = !explained;
      if (explained) drawMap(overlay, model.speaks.map((drop) => drop[spoken]), grid, true);
      picture.setAttribute("aria-label", `The image that the model sees${explained ? `, and which patches speak for ${classes[spoken]}`
        : b ? `, lit where head ${+head + 1} of block ${+b + 1} looks from the ringed patch` : ""}`);
    }
    const frame = h("div", { class: "live-frame" }, picture, overlay, cells);
    return { show, frame, element: h("div", {}, modes, h("div", { class: "live-row" }, shuffle, clear, restore)) };
  };
}
