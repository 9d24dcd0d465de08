// A ViT of 22 million parameters on a photograph: what resembles a patch, where each head looks.
(globalThis.minivitParts ??= {}).large = (() => {
  "use strict";
  const SIDE = 224, ACROSS = 16, PATCHES = ACROSS ** 2, HEADS = 6; // the class token comes before patches
  const BASE = document.currentScript.src;

  /** Cosine of each patch's token with one of them; tokens [1 + patches, dim], of one block. */
  function resemblance(tokens, patch, dim) {
    const of = (i) => tokens.subarray((1 + i) * dim, (2 + i) * dim), { dot } = minivitNumbers();
    const query = of(patch), length = Math.sqrt(dot(query, query));
    return Array.from({ length: PATCHES }, (_, i) => {
      const other = of(i);
      return dot(query, other) / length / Math.sqrt(dot(other, other));
    });
  }

  /**
   * How far each patch's token lies along the three directions in which they differ most: [3][patches].
   * By power iteration on their inner products; the largest entry of each direction is positive.
   */
  function directions(tokens, dim) {
    const rows = Array.from({ length: PATCHES }, (_, i) =>
      Float64Array.from(tokens.subarray((1 + i) * dim, (2 + i) * dim)));
    for (let d = 0; d < dim; d++) {
      const mean = rows.reduce((sum, row) => sum + row[d], 0) / PATCHES;
      for (const row of rows) row[d] -= mean;
    }
    const { dot } = minivitNumbers(), inner = rows.map((a) => rows.map((b) => dot(a, b))), found = [];
    for (let k = 0; k < 3; k++) {
      let along = Float64Array.from(rows, (_, i) => Math.cos(i * (k + 1)) + 0.1), size = 1;
      for (let step = 0; step < 300; step++) {
        const next = Float64Array.from(inner, (row) => dot(row, along));
        for (const one of found) { // stay at right angles to those before
          const share = dot(next, one) / dot(one, one);
          next.forEach((_, i) => (next[i] -= share * one[i]));
        }
        const norm = Math.hypot(...next);
        size = Math.sqrt(norm);
        along = next.map((v) => v / norm);
      }
      let largest = 0;
      for (let d = 0; d < dim; d++) {
        const entry = rows.reduce((sum, row, i) => sum + row[d] * along[i], 0);
        if (Math.abs(entry) > Math.abs(largest)) largest = entry;
      }
      found.push(along.map((v) => v * size * Math.sign(largest)));
    }
    return found;
  }

  /** Numbers from their 2nd to their 98th of a hundred as 0 to 255. */
  function stretched(values) {
    const sorted = [...values].sort((a, b) => a - b), at = (p) => sorted[Math.round(p * (sorted.length - 1))];
    const low = at(0.02), high = at(0.98);
    return values.map((v) => 255 * Math.min(1, Math.max(0, (v - low) / (high - low || 1))));
  }

  async function mount(kit) {
    const { h, range, button, handle, choice, panel, image, points, row, speech, opened, ownPhoto, drawImage, best } = kit;
    const about = await (await fetch(new URL("../../large/about.json", BASE))).json();
    const size = `${Math.round(about.bytes / 1e6)} MB`, say = speech();
    const still = h("div", {}, document.querySelector("[data-part=large] img").cloneNode());
    const begin = button(`Fetch the model: ${size}, from this site`, start);
    const element = h("div", {}, begin, say.element, still);
    let worker = null, seen = null; // the last answer: pixels, tokens, weights and the sizes of these

    const block = handle({ label: "After block", min: 1, max: 12, value: 12 }, () => show());
    const from = choice("Look from", { patch: "the patch", class: "the class token" }, "patch", () => show());
    const finger = [[0.29, 0.4]], marked = image("Touch a patch", "The photograph"); // the cat's eye
    const at = () => finger[0].map((p) => Math.min(ACROSS - 1, Math.floor(p * ACROSS))); // column, row
    const named = ([x, y]) => `row ${y + 1}, column ${x + 1}`;
    points(marked.frame, finger, () => `Patch in ${named(at())}`, () => show(), 1 / ACROSS);
    const alike = panel("What resembles it", "Lit: patches whose tokens resemble that of the marked one");
    const colours = image("Its tokens as colours", "Three directions of the tokens, as red, green and blue");
    const heads = range(HEADS).map((i) => panel(`Head ${i + 1}`, ""));
    const source = h("canvas"), lit = minivitLit(kit);

    function show() {
      if (!seen) return;
      const { pixels, tokens, weights, dims: [blocks, , count] } = seen;
      const b = block.value - 1, patch = at()[1] * ACROSS + at()[0], length = tokens.length / blocks;
      const dim = length / count, mine = tokens.subarray(b * length, (b + 1) * length);
      marked.show(pixels, [SIDE, SIDE]);
      drawImage(source, pixels, [SIDE, SIDE], 3);
      const near = resemblance(mine, patch, dim), low = Math.min(...near);
      lit.draw(alike.canvas, source, near.map((v) => ((v - low) / (1 - low)) ** 6), [ACROSS, ACROSS]); // it takes the root
      const shades = directions(mine, dim).map(stretched);
      colours.show(range(3 * PATCHES).map((i) => shades[i % 3][Math.floor(i / 3)]), [ACROSS, ACROSS]);
      const query = from.value == "class" ? 0 : 1 + patch;
      const most = heads.map(({ canvas }, head) => {
        const start = ((b * HEADS + head) * count + query) * count;
        const looks = [...weights.subarray(start + 1, start + count)], top = Math.max(...looks);
        lit.draw(canvas, source, looks, [ACROSS, ACROSS]);
        const where = looks.indexOf(top), place = named([where % ACROSS, Math.floor(where / ACROSS)]);
        canvas.setAttribute("aria-label", `Head ${head + 1} looks most at ${place}`);
        return top;
      });
      say.say(`Block ${b + 1}, from ${query ? named(at()) : "the class token"}: head ${best(most) + 1} is the most `
        + `decided, with ${Math.round(100 * Math.max(...most))} % on one patch.`);
    }

    function look(pixels) {
      element.setAttribute("aria-busy", "true");
      worker.postMessage({ pixels, side: SIDE });
    }

    async function start() {
      begin.disabled = true;
      worker = new Worker(new URL("large_worker.mjs", BASE), { type: "module" });
      worker.onerror = () => fail("its program could not be loaded.");
      worker.onmessage = ({ data: { bytes, answer, error } }) => {
        if (bytes) say.say(`${Math.round(bytes / 1e6)} of ${size}`);
        if (error) fail(error);
        if (!answer) return;
        element.setAttribute("aria-busy", "false");
        if (!seen) unfold();
        seen = answer;
        show();
      };
      look(await opened(minivitPhotographs.chelsea, SIDE));
    }
    function fail(why) {
      element.setAttribute("aria-busy", "false");
      begin.disabled = false;
      say.say(`The model does not run here: ${why}`);
    }

    function unfold() {
      const own = ownPhoto(SIDE, "Your own photograph, which stays here", look, say.say);
      const thumbs = Object.entries(minivitPhotographs).map(([name, url]) =>
        button(h("img", { src: url, alt: "" }), async () => look(await opened(url, SIDE)), `Photograph: ${name}`));
      begin.replaceWith(
        row(h("div", { class: "part-digits", role: "group", "aria-label": "Photographs" }, ...thumbs), own),
        row(block.element, from.element));
      still.replaceWith(
        h("div", { class: "part-maps" }, ...[marked, alike, colours, ...heads].map((one) => one.element)),
        h("p", { class: "live-part-still" }, `${about.name} (${about.licence}), its weights rounded to 8 bits.`));
    }
    return { show, element };
  }
  const compute = { resemblance, directions };
  return { title: "A ViT of 22 million parameters", needs: ["photographs.js", "../lit.js"], compute, mount };
})();
