// What parts are made with, beside tools.js and drawing.js: numbers, patches, sliders, photographs.

/** Numbers that no training made, always the same ones, and directions. */
function minivitNumbers() {
  "use strict";
  /** A function that draws normal numbers of variance 1: Box and Muller's, from mulberry32. */
  function normals(seed) {
    const uniform = () => {
      seed = (seed + 0x6d2b79f5) | 0;
      let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
    };
    return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  }

  const dot = (a, b) => a.reduce((sum, v, k) => sum + v * b[k], 0);

  /** What is left of a vector beside some directions. Twice, since once leaves more than rounding. */
  function beside(vector, directions) {
    const left = vector.slice();
    for (let twice = 0; twice < 2; twice++) for (const u of directions) {
      const along = dot(u, left);
      u.forEach((x, k) => (left[k] -= along * x));
    }
    return left;
  }

  /** Orthonormal vectors that span the rows: Gram and Schmidt's. */
  function orthonormal(rows) {
    const found = [];
    for (const row of rows) {
      const v = beside(row, found), length = Math.sqrt(dot(v, v));
      found.push(v.map((x) => x / length));
    }
    return found;
  }
  return { normals, dot, beside, orthonormal };
}

/** A square image [side * side * 3] and its patches, rows of numbers in reading order. */
function minivitPatches(side, patch) {
  "use strict";
  const across = side / patch, length = 3 * patch * patch;
  /** Where number k of patch i stands in the image. */
  const at = (i, k) => {
    const y = Math.floor(i / across) * patch + Math.floor(k / (3 * patch));
    const x = (i % across) * patch + Math.floor((k % (3 * patch)) / 3);
    return 3 * (y * side + x) + (k % 3);
  };
  const cut = (image) => Array.from({ length: across * across }, (_, i) =>
    Float64Array.from({ length }, (_, k) => image[at(i, k)]));
  /** The image of patches whose numbers go from 0 to 1, as bytes. */
  function joined(rows) {
    const bytes = new Uint8ClampedArray(3 * side * side);
    rows.forEach((row, i) => row.forEach((v, k) => (bytes[at(i, k)] = 255 * v)));
    return bytes;
  }
  return { across, length, at, cut, joined };
}

function minivitKit(tools) {
  "use strict";
  const { h } = tools;
  const BASE = document.querySelector("script[src*='parts/base.js']").src;
  let parts = 0; // names of groups of radio buttons differ

  /** A number with a proper minus. */
  const signed = (v, digits) => v.toFixed(digits).replace(/^-0(\.0*)?$/, "0$1").replace("-", "\u2212");

  /** 3e-6 as 3 × 10⁻⁶. */
  function powerOfTen(v) {
    const [digits, power] = v.toExponential(0).split("e");
    const small = String(Math.abs(power)).replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]);
    return `${digits} × 10${power < 0 ? "⁻" : ""}${small}`;
  }

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
        if (!file.files[0]) return;
        if (!globalThis.minivitImage) await new Promise((onload, onerror) =>
          document.head.append(h("script", { src: new URL("../image.js", BASE).href, onload, onerror })));
        const size = [side, side];
        take(await minivitImage().fromFile(file.files[0], { size, resize: size, mean: [0, 0, 0] }));
      } catch (error) {
        complain(error.message);
      }
      file.value = ""; // so that the same file can be chosen again
    } });
    return h("label", { class: "part-button part-file" }, file, words);
  }

  return {
    ...tools, ...minivitDrawing(tools), signed, powerOfTen, handle, choice, button, row, columns, speech,
    opened, ownPhoto,
  };
}
