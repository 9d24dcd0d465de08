// What parts are made with, beside tools.js, numbers.js and drawing.js: sliders, buttons, images.
function minivitKit(tools) {
  "use strict";
  const { h } = tools;
  const BASE = document.querySelector("script[src*='parts/base.js']").src;
  const SLICE = 12; // milliseconds of work between two frames
  let parts = 0; // names of groups of radio buttons differ

  /** A number with a proper minus. */
  const signed = (v, digits) => v.toFixed(digits).replace(/^-0(\.0*)?$/, "0$1").replace("-", "\u2212");

  /** A slider with its name before it and its value in words behind it. */
  function handle({ label, min, max, step = 1, value, words = String }, oninput) {
    const output = h("output");
    const input = h("input", {
      type: "range", min, max, step, value, oninput: () => { tell(); oninput(); },
    });
    function tell() {
      output.value = words(Number(input.value));
      input.setAttribute("aria-valuetext", output.value);
    }
    tell();
    return {
      element: h("div", { class: "part-handle" }, h("label", {}, h("span", {}, label), input), output),
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

  const button = (words, onclick, label = null) =>
    h("button", { type: "button", class: "part-button", "aria-label": label, onclick }, words);
  const row = (...children) => h("div", { class: "part-row" }, ...children);
  const columns = (...children) => h("div", { class: "part-columns" }, ...children);
  const fold = (words, ...children) => h("details", {}, h("summary", {}, words), ...children);

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

  /**
   * A function that does something n times, a little between two frames, so that the page stays alive,
   * and tells after each time how often it has; a second call ends the first.
   */
  function patiently() {
    let run = 0;
    return (n, once, tell) => {
      const mine = ++run;
      let i = 0;
      (function next() {
        if (mine != run) return;
        for (const start = performance.now(); i < n && performance.now() - start < SLICE; i++) once(i);
        tell(i);
        if (i < n) setTimeout(next);
      })();
    };
  }

  /** Digits as a script brings them, [64] bytes each, and what they are. */
  function digitsOf({ labels, pixels }) {
    const size = 64;
    const bytes = Uint8Array.from(atob(pixels), (letter) => letter.charCodeAt(0));
    return { labels, images: labels.map((_, i) => bytes.subarray(i * size, (i + 1) * size)) };
  }
  const testDigits = () => digitsOf(minivitDigits);
  /** Ten digits of a model's samples as buttons. */
  const tenDigits = (samples, take) => h("div", { class: "part-digits", role: "group", "aria-label": "Digits" },
    ...samples.slice(0, 10).map(({ name, pixels }) => button(name.slice(2), () => take(pixels), name)));

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

  /** A photograph from the reader's disk, which stays there: its bytes, and the file, go to `take`. */
  function ownPhoto(side, words, take, complain) {
    const file = h("input", { type: "file", accept: "image/*", onchange: async () => {
      try {
        if (!file.files[0]) return;
        if (!globalThis.minivitImage) await new Promise((onload, onerror) =>
          document.head.append(h("script", { src: new URL("../image.js", BASE).href, onload, onerror })));
        const size = [side, side];
        take(await minivitImage().fromFile(file.files[0], { size, resize: size, mean: [0, 0, 0] }), file.files[0]);
      } catch (error) {
        complain(error.message);
      }
      file.value = ""; // so that the same file can be chosen again
    } });
    return h("label", { class: "part-button part-file" }, file, words);
  }

  return {
    ...tools, ...minivitDrawing(tools), signed, handle, choice, button, row, columns, fold, speech,
    patiently, digitsOf, testDigits, tenDigits, opened, ownPhoto, base: BASE,
  };
}
