// What parts draw with: panels, images, bars, and points that a hand or the arrow keys drag.
function minivitDrawing(tools) {
  "use strict";
  const { h, drawImage } = tools;

  /** A canvas under its title. `draw` gets a context of width x height units, at twice the pixels. */
  function panel(title, label, [width, height] = [300, 300]) {
    const canvas = h("canvas", { role: "img", "aria-label": label, width: 2 * width, height: 2 * height });
    const shape = `aspect-ratio: ${width} / ${height}`;
    const frame = h("div", { class: "part-frame", style: shape }, canvas);
    const heading = h("p", { class: "part-title" }, title);
    function draw(paint) {
      const context = canvas.getContext("2d");
      context.setTransform(2, 0, 0, 2, 0, 0);
      context.clearRect(0, 0, width, height);
      context.font = "13px sans-serif";
      paint(context, colours());
    }
    const element = h("div", { class: "part-panel" }, heading, frame);
    return { element, frame, canvas, heading, draw, width, height };
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

  const COLOURS = {
    ink: "--pst-color-text-base", muted: "--pst-color-text-muted", line: "--pst-color-border",
    paper: "--pst-color-background", first: "--pst-color-primary", second: "--pst-color-link-hover",
    third: "--weaker",
  };
  /** Colours of the theme that is on. */
  function colours() {
    const style = getComputedStyle(document.documentElement);
    const found = Object.entries(COLOURS).map(([name, variable]) =>
      [name, style.getPropertyValue(variable).trim()]);
    return Object.fromEntries(found);
  }

  /** Bars from 0 to 1 under a title: `show(values, words)`; the largest can be set off. */
  function bars(title, names, setOff = false) {
    const rows = names.map((name, i) => {
      const bar = h("span", { class: `part-bar part-shade-${i}` });
      const number = h("span", { class: "part-number" });
      const track = h("span", { class: "part-track" }, bar);
      return { bar, number, element: h("div", { class: "part-weight" }, h("span", {}, name), track, number) };
    });
    const show = (values, words = []) => rows.forEach(({ bar, number, element }, i) => {
      bar.style.width = `${100 * values[i]}%`;
      number.textContent = words[i] ?? "";
      element.classList.toggle("is-best", setOff && i == tools.best(values));
    });
    const heading = h("p", { class: "part-title" }, title);
    const element = h("div", { class: "part-bars" }, heading, ...rows.map((one) => one.element));
    return { show, element };
  }

  /** A line through places, and a disc around one. */
  function line(context, colour, places, width = 1) {
    Object.assign(context, { strokeStyle: colour, lineWidth: width });
    context.beginPath();
    places.forEach((one) => context.lineTo(...one));
    context.stroke();
  }
  function disc(context, colour, [x, y], radius) {
    context.fillStyle = colour;
    context.beginPath();
    context.arc(x, y, radius, 0, 7);
    context.fill();
  }

  const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

  /**
   * Points that a hand or the arrow keys drag over a frame: a press takes the nearest one. Places
   * are fractions of the frame, from its top left. `words` names a point and says where it is.
   */
  function points(frame, places, words, onmove, step = 0.02) {
    let held = null;
    const knobs = places.map((_, i) => h("button", {
      type: "button", class: `part-point part-point-${i}`, onkeydown: (event) => {
        const by = STEPS[event.key];
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
    frame.addEventListener("pointermove", (event) => {
      if (held !== null) put(held, ...at(event));
    });
    for (const end of ["pointerup", "pointercancel"]) {
      frame.addEventListener(end, () => (held = null));
    }
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

  return { panel, image, bars, points, line, disc };
}
