// Chapter 13: other means and contrasts for every patch of a photograph, and what LayerNorm sees.
(globalThis.minivitParts ??= {}).fibre = (() => {
  "use strict";
  const SIDE = 160, PATCH = 4; // pixels
  const EPS = 1e-6; // as in the chapter
  const FAINTEST = 0.01; // contrast that a patch of the other photograph has at least

  const patches = (image, side = SIDE) => minivitPatches(side, PATCH).cut(image);

  function moments(row) {
    const mean = row.reduce((a, b) => a + b) / row.length;
    return { mean, variance: row.reduce((a, v) => a + (v - mean) ** 2, 0) / row.length };
  }

  /** LayerNorm of one row, without its scale and shift. */
  function normed(row) {
    const { mean, variance } = moments(row), scale = 1 / Math.sqrt(variance + EPS);
    return row.map((v) => (v - mean) * scale);
  }

  /** Each patch part of the way to the other's mean, and to its contrast in equal factors. */
  function mixed(rows, others, brightness, contrast) {
    return rows.map((row, i) => {
      const own = moments(row), other = moments(others[i]);
      const mean = (1 - brightness) * own.mean + brightness * other.mean;
      const wanted = Math.max(Math.sqrt(other.variance), FAINTEST);
      const factor = own.variance ? (wanted / Math.sqrt(own.variance)) ** contrast : 1;
      return row.map((v) => mean + factor * (v - own.mean));
    });
  }

  /** By how much the outputs of two lists of patches differ, in the median patch. */
  function change(ours, theirs) {
    const gaps = ours.map((row, i) =>
      row.reduce((most, v, k) => Math.max(most, Math.abs(v - theirs[i][k])), 0));
    return gaps.sort((a, b) => a - b)[(gaps.length - 1) >> 1]; // the lower one, as torch has it
  }

  async function mount({ h, signed, powerOfTen, handle, image, columns, row, speech, opened, ownPhoto }) {
    const read = (bytes) => patches(Float64Array.from(bytes, (v) => v / 255));
    const cat = read(await opened(minivitPhotographs.chelsea, SIDE));
    let other = read(await opened(minivitPhotographs.astronaut, SIDE));
    const own = cat.map(normed), words = (v) => `${Math.round(100 * v)} %`;
    const slider = (label, value) =>
      handle({ label, min: 0, max: 1, step: 0.01, value, words }, () => show());
    const brightness = slider("Brightness", 1), contrast = slider("Contrast", 0);
    const left = image("Input", "The photograph with other means and contrasts");
    const right = image("Output", "What LayerNorm makes of every patch");
    const say = speech(), marker = h("span", { class: "part-marker" });
    const spot = (power) => `left: ${(100 * (power + 17)) / 18}%`;
    const ticks = [-16, -12, -8, -4, 0].map((power) =>
      h("span", { style: spot(power) }, "10", h("sup", {}, signed(power, 0))));
    const scale = h("div", { class: "part-scale", "aria-hidden": "true" }, marker, ...ticks);
    const draw = (panel, rows) => panel.show(minivitPatches(SIDE, PATCH).joined(rows), [SIDE, SIDE]);

    function show() {
      const rows = mixed(cat, other, brightness.value, contrast.value), outputs = rows.map(normed);
      draw(left, rows);
      draw(right, outputs.map((output) => output.map((v) => 0.5 + 0.2 * v)));
      const off = change(outputs, own);
      marker.style = spot(Math.log10(Math.max(off, 10 ** -16.5)));
      say.say(off < 1e-9 ? "The output is the same, to rounding."
        : `The output is off by ${powerOfTen(off)} in the median patch.`);
    }
    const photo = ownPhoto(SIDE, "Another photograph of yours, which stays here", (bytes) => {
      other = read(bytes);
      brightness.value = contrast.value = 1;
      show();
    }, say.say);
    const title = h("p", { class: "part-title" }, "Change of the output, whose entries have size 1");
    const element = h("div", {}, row(brightness.element, contrast.element),
      columns(left.element, right.element), say.element, title, scale, row(photo));
    return { show, element };
  }
  return { title: "Brightness and contrast that LayerNorm does not see", needs: ["photographs.js"],
    compute: { patches, normed, mixed, change }, mount };
})();
