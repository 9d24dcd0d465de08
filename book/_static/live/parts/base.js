// What the parts are made with, beside tools.js: sliders, points to drag, panels, photographs.
function minivitKit(tools) {
  "use strict";
  const { h, range, drawImage } = tools;
  const IMAGE = new URL("../image.js", document.querySelector("script[src*='parts/base.js']").src).href;
  let parts = 0; // names of groups of radio buttons differ

  /** A number with a proper minus. */
  const signed = (v, digits) => v.toFixed(digits).replace(/^-0(\.0*)?$/, "0$1").replace("-", "\u2212");

  /** A slider with its name before it and its value in words behind it. */
  function handle({ label, min, max, step = 1, value, words = String }, oninput) {
    const output = h("output");
    const input = h("input", { type: "range", min, max, step, value, oninput: () => { tell(); oninput(); } });
    function tell() {
      output.value = words(Number(input.value));
      input.setAttribute("aria-valuetext", output.value);
    }
    tell();
    return {
      element: h("label", { class: "part-handle" }, h("span", {}, label), input, output),
      get value() { return Number(input.value); },
      set value(to) { input.value = to; tell(); },
    };
  }

  /** One of several: radio buttons in a row. `options` has words by value. */
  function choice(legend, options, chosen, onchange) {
    const name = `part-choice-${++parts}`;
    const element = h("fieldset", { class: "part-choice" }, h("legend", {}, legend),
      ...Object.entries(options).map(([value, words]) => h("label", {}, h("input", {
        type: "radio", name, value, checked: value == chosen, onchange: () => onchange(value),
      }), ` ${words}`)));
    return { element, get value() { return element.querySelector(":checked").value; } };
  }

  const button = (words, onclick) => h("button", { type: "button", class: "part-button", onclick }, words);
  const row = (...children) => h("div", { class: "part-row" }, ...children);
  const columns = (...children) => h("div", { class: "part-columns" }, ...children);

  /** A canvas under its title. `draw` gets a context of width x height units, at twice the pixels. */
  function panel(title, label, [width, height] = [300, 300]) {
    const canvas = h("canvas", { role: "img", "aria-label": label, width: 2 * width, height: 2 * height });
    const frame = h("div", { class: "part-frame", style: `aspect-ratio: ${width} / ${height}` }, canvas);
    const heading = h("p", { class: "part-title" }, title);
    function draw(paint) {
      const context = canvas.getContext("2d");
      context.setTransform(2, 0, 0, 2, 0, 0);
      context.clearRect(0, 0, width, height);
      context.font = "13px sans-serif";
      paint(context, colours());
    }
    return { element: h("div", { class: "part-panel" }, heading, frame), frame, canvas, heading, draw, width, height };
  }

  /** An image, a pixel each, under its title: `image.show(bytes, [height, width], channels)`. */
  function image(title, label) {
    const made = panel(title, label);
    made.frame.classList.add("part-image");
    made.show = (bytes, size, channels = 3) => {
      made.frame.style.aspectRatio = `${size[1]} / ${size[0]}`;
      drawImage(made.canvas, bytes, size, channels);
    };
    return made;
  }

  /** Colours of the theme that is on. */
  function colours() {
    const style = getComputedStyle(document.documentElement);
    const named = { ink: "--pst-color-text-base", muted: "--pst-color-text-muted", line: "--pst-color-border",
      paper: "--pst-color-background", first: "--pst-color-primary", second: "--pst-color-link-hover",
      third: "--weaker", fourth: "--opposite" };
    return Object.fromEntries(Object.entries(named).map(([name, variable]) => [name, style.getPropertyValue(variable).trim()]));
  }

  /**
   * Points that a hand or the arrow keys drag over a frame: a press takes the nearest one. Places
   * are fractions of the frame, from its top left. `words` names a point and says where it is.
   */
  function points(frame, places, words, onmove, step = 0.02) {
    let held = null;
    const knobs = places.map((_, i) => h("button", {
      type: "button", class: `part-point part-point-${i}`, onkeydown: (event) => {
        const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
        if (!by) return;
        event.preventDefault();
        put(i, places[i][0] + step * by[0], places[i][1] + step * by[1]);
      },
    }));
    function put(i, x, y) {
      places[i] = [Math.min(1, Math.max(0, x)), Math.min(1, Math.max(0, y))];
      show();
      onmove(i);
    }
    const at = (event) => {
      const box = frame.getBoundingClientRect();
      return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
    };
    frame.addEventListener("pointerdown", (event) => {
      const [x, y] = at(event);
      const away = places.map(([px, py]) => Math.hypot(px - x, py - y));
      held = away.indexOf(Math.min(...away));
      frame.setPointerCapture(event.pointerId);
      event.preventDefault();
      knobs[held].focus({ preventScroll: true });
      put(held, x, y);
    });
    frame.addEventListener("pointermove", (event) => { if (held !== null) put(held, ...at(event)); });
    for (const end of ["pointerup", "pointercancel"]) frame.addEventListener(end, () => (held = null));
    frame.classList.add("part-pad");
    frame.append(...knobs);
    function show() {
      knobs.forEach((knob, i) => {
        Object.assign(knob.style, { left: `${100 * places[i][0]}%`, top: `${100 * places[i][1]}%` });
        knob.setAttribute("aria-label", `${words(i)}; the arrow keys move it`);
      });
    }
    show();
    return { places, show };
  }

  /** A sentence that is seen at once, and read aloud when the hand has come to rest. */
  function speech() {
    const seen = h("p", { class: "part-say", "aria-hidden": "true" });
    const heard = h("p", { class: "visually-hidden", "aria-live": "polite" });
    let rest = 0;
    const say = (words) => {
      seen.textContent = words;
      clearTimeout(rest);
      rest = setTimeout(() => (heard.textContent = words), 500);
    };
    return { element: h("div", {}, seen, heard), say };
  }

  /** The bytes [side * side * 3] of an image that scripts brought, cut to a square. */
  async function opened(url, side) {
    const picture = new Image();
    picture.src = url;
    await picture.decode();
    const canvas = h("canvas", { width: side, height: side }), context = canvas.getContext("2d");
    context.imageSmoothingQuality = "high";
    context.drawImage(picture, 0, 0, side, side);
    return context.getImageData(0, 0, side, side).data.filter((_, i) => i % 4 < 3);
  }

  /** A photograph from the reader's disk, which stays there: its bytes go to `take`. */
  function ownPhoto(side, words, take, complain) {
    const file = h("input", { type: "file", accept: "image/*", onchange: async () => {
      try {
        if (!globalThis.minivitImage) await new Promise((resolve) =>
          document.head.append(h("script", { src: IMAGE, onload: resolve, onerror: resolve })));
        const size = [side, side];
        if (file.files[0]) take(await minivitImage().fromFile(file.files[0], { size, resize: size, mean: [0, 0, 0] }));
      } catch (error) {
        complain(error.message);
      }
      file.value = ""; // so that the same file can be chosen again
    } });
    return h("label", { class: "part-button part-file" }, file, words);
  }

  return { ...tools, signed, handle, choice, button, row, columns, panel, image, colours, points, speech, opened, ownPhoto, range };
}
